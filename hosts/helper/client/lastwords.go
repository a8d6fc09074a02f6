package client

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
)

// maxWords is how much of a helper's standard error is kept in memory.
const maxWords = 64 << 10

// lastWords reads a far end's standard error to its end. Each line goes to the
// host's log, the last ones are kept for the error that follows a crash (D9).
type lastWords struct {
	log  func(line string) // may be nil
	done chan struct{}     // closed at the end of the stream

	mu    sync.Mutex
	lines []string
	bytes int
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

func (l *lastWords) add(s string) {
	if l.log != nil {
		l.log(s)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, s)
	l.bytes += len(s)
	for l.bytes > maxWords {
		l.bytes -= len(l.lines[0])
		l.lines = l.lines[1:]
	}
}

// said quotes what explains an end best, for an error: the line of a panic, else
// the last line; "" if there is none.
func (l *lastWords) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		return ""
	}
	best := l.lines[len(l.lines)-1]
	for _, s := range l.lines {
		if strings.HasPrefix(s, "panic: ") || strings.HasPrefix(s, "fatal error: ") {
			best = s
		}
	}
	return ": " + best
}
