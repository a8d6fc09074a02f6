package cli

import (
	"io"
	"strings"
	"testing"

	"dcs-tui/internal/cli/console"
)

// endless is a reader without an end. It counts the bytes that were read.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.n += len(p)
	return len(p), nil
}

// Standard input is not read to its end to find out whether it is a template. Input
// without an end is refused at its first line, and the bytes that were read for the
// test are read again.
func TestStandardInputIsBounded(t *testing.T) {
	in := &endless{}
	a := &app{con: console.To(io.Discard), stdin: in}
	if _, _, err := a.readStdin(&gridFlags{}); err == nil || !strings.Contains(err.Error(), "the line is longer than 4 MiB") || in.n > 32<<20 {
		t.Errorf("%v after %d bytes", err, in.n)
	}
	const n = 400_000 // longer than the part that is examined
	a.stdin = strings.NewReader(strings.Repeat("true\n", n))
	if specs, _, err := a.readStdin(&gridFlags{}); err != nil || len(specs) != n {
		t.Errorf("%d jobs, %v", len(specs), err)
	}
}

// values is not run, and what does run it is named.
func TestStreamedTemplate(t *testing.T) {
	next := readingJobs(strings.NewReader("[ -e x ] && echo [x]\n[x] 1 2\n"))
	if s, err := next(); err != nil || s.Command != "[ -e x ] && echo [x]" {
		t.Fatal(s, err)
	}
	if _, err := next(); err == nil || !strings.Contains(err.Error(), "standard input:2: this is a template, which dcs-tui grid - reads") {
		t.Error(err)
	}
}
