package jobs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxLine bounds a line of a jobs file, so that a file of another kind is not
// read into memory whole.
const maxLine = 4 << 20

// lineReader gives the lines of a jobs file, each as soon as it is complete.
type lineReader struct {
	r    *bufio.Reader
	line int    // number of the line last read
	long []byte // a line that does not fit the reader's buffer
	skip bool   // the line after one that is too long can be read

	failed bool // the reader itself
}

// errNotText ends the reading of a file.
var errNotText = errors.New("this is not a text file: a jobs file has one shell command a line")

// next returns a line without its end (\n or \r\n), valid until the next call.
// At the end it is io.EOF. Unless the reader failed, the next line can be read after an
// error.
func (l *lineReader) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if err == nil && len(l.long) == 0 {
			l.line++
			return l.clean(part)
		}
		l.long = append(l.long, part...)
		switch {
		case err == nil || err == io.EOF && len(l.long) > 0:
			l.line++
			return l.clean(l.long)
		case err != bufio.ErrBufferFull:
			l.failed = err != io.EOF
			return nil, err
		case len(l.long) > maxLine:
			for l.skip && err == bufio.ErrBufferFull {
				_, err = l.r.ReadSlice('\n')
			}
			l.line++
			return nil, fmt.Errorf("the line is longer than %d MiB; put the work into a script and call that", maxLine>>20)
		}
	}
}

func (l *lineReader) clean(line []byte) ([]byte, error) {
	if l.line == 1 {
		if bytes.HasPrefix(line, []byte("\xff\xfe")) || bytes.HasPrefix(line, []byte("\xfe\xff")) {
			return nil, errors.New("this is UTF-16 text: save it as UTF-8")
		}
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return nil, fmt.Errorf("%w; it holds a NUL byte", errNotText)
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// continues says whether a line ends in a backslash that is not itself escaped.
func continues(line []byte) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// errStrayBlank is of a line that looks as if it went on in the next.
var errStrayBlank = errors.New(`a blank follows the \ at the end of this line, so it does not go on in the next: take the blank away, or put it in quotes if it is meant`)

// strayBlank returns the column of a blank after the \ that a line ends in, which no editor
// shows; 0 if there is none.
func strayBlank(line []byte) int {
	bare := bytes.TrimRight(line, blanks)
	if len(bare) == len(line) || !continues(bare) {
		return 0
	}
	return utf8.RuneCount(bare) + 1
}

// blanks may stand before a command, and make an empty line.
const blanks = " \t\r\v\f"
