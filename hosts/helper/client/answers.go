package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxNoise is how much a login shell and the bootstrap may print before the
// helper's stream begins.
const maxNoise = 64 << 10

// errNoise says that the far end prints without end.
var errNoise = errors.New("prints without end")

// errTerminal is returned when a terminal on the way would change our bytes.
var errTerminal = errors.New("the command runs on a terminal of the far end")

// answers reads the lines of the bootstrap out of whatever else comes.
type answers struct {
	r     *bufio.Reader // at least maxNoise, so that wire.NewReader goes on with it
	nonce []byte        // with the blank that follows it
	seen  int           // bytes
	noise string        // the first line that was not for us
}

func newAnswers(r io.Reader, nonce string) *answers {
	return &answers{r: bufio.NewReaderSize(r, maxNoise), nonce: []byte(nonce + " ")}
}

// next returns the next answer: its word and the rest of its line. Noise without
// a newline may stand before an answer on the same line.
func (a *answers) next() (word, rest string, err error) {
	for {
		line, err := a.r.ReadSlice('\n')
		if a.seen += len(line); a.seen > maxNoise || errors.Is(err, bufio.ErrBufferFull) {
			a.keep(line)
			return "", "", errNoise
		}
		if err != nil {
			a.keep(line)
			return "", "", err
		}
		if _, after, ok := bytes.Cut(line, a.nonce); ok {
			if bytes.HasSuffix(after, []byte("\r\n")) {
				return "", "", errTerminal
			}
			word, rest, _ = strings.Cut(strings.TrimRight(string(after), "\n"), " ")
			return word, rest, nil
		}
		a.keep(line)
	}
}

func (a *answers) keep(line []byte) {
	if a.noise == "" {
		a.noise = clean(string(line[:min(len(line), 200)]))
	}
}

// said quotes the first line of noise for an error, "" if there was none.
func (a *answers) said() string {
	if a.noise == "" {
		return ""
	}
	return fmt.Sprintf("; it printed %q", a.noise)
}
