package client

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"sync"
)

// lastWords reads a far end's standard error to its end. Each line goes to the
// host's log. What explains its end is kept for an error: the first line of a
// crash, or else the last line.
type lastWords struct {
	log  func(line string) // may be nil
	done chan struct{}     // closed at the end of the stream

	mu    sync.Mutex
	crash string // the first line of a crash, "" if there was none
	last  string // the last line
}

func listen(r io.Reader, log func(line string)) *lastWords {
	l := &lastWords{log: log, done: make(chan struct{})}
	go l.run(r)
	return l
}

func (l *lastWords) run(r io.Reader) {
	defer close(l.done)
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		if s := clean(string(line)); s != "" {
			l.add(s)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// crashLine matches the first line that the Go runtime prints when it ends a program.
// Stacks and registers follow, and can be longer than everything else.
var crashLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(panic: |fatal error: |runtime: |unexpected fault address |SIG[A-Z0-9]+: )`)
})

func (l *lastWords) add(s string) {
	if l.log != nil {
		l.log(s)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = s
	if l.crash == "" && crashLine().MatchString(s) {
		l.crash = s
	}
}

// said returns a quotation of the line that best explains the end of the helper, for an
// error. It is empty if there is none.
func (l *lastWords) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.crash != "":
		return ": " + l.crash
	case l.last != "":
		return ": " + l.last
	}
	return ""
}
