// Package progtest is what tests of the real program share, whatever hosts and file
// systems they give it: it builds the program, keeps what it says while it runs, and
// finds what it leaves behind. It is for tests only, and knows nothing about runs and jobs.
package progtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Build builds the program in dir and returns where it is. What the compiler says goes
// to standard error; env is added to its environment. Its callers import internal/cli:
// when that changes, cached results of their tests do not count. Runs of this process do
// not share slots with others on this machine, unless they ask for it: tests run beside
// each other.
func Build(dir string, env ...string) (program string, err error) {
	os.Setenv("DCS_TUI_RUN_SHARE", "off")
	program = filepath.Join(dir, "dcs-tui")
	build := exec.Command("go", "build", "-o", program, "dcs-tui")
	build.Env = append(os.Environ(), env...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building the program: %w", err)
	}
	return program, nil
}

// Buffer may be read while a process still writes to it. The zero value is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds to the buffer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
