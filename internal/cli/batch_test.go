package cli

import (
	"io"
	"strings"
	"testing"

	"dcs-tui/internal/cli/console"
)

// endless gives the same byte for ever, and counts how many were taken.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.n += len(p)
	return len(p), nil
}

// Standard input is not kept as a whole to find out whether it is a template: one
// without an end is refused at its first line, and what was looked at is read again.
func TestStandardInputIsBounded(t *testing.T) {
	in := &endless{}
	a := &app{con: console.To(io.Discard), stdin: in}
	if _, _, err := a.readStdin(&gridFlags{}); err == nil || !strings.Contains(err.Error(), "the line is longer than 4 MiB") || in.n > 32<<20 {
		t.Errorf("%v after %d bytes", err, in.n)
	}
	const n = 400_000 // longer than what is looked at
	a.stdin = strings.NewReader(strings.Repeat("true\n", n))
	if specs, _, err := a.readStdin(&gridFlags{}); err != nil || len(specs) != n {
		t.Errorf("%d jobs, %v", len(specs), err)
	}
}
