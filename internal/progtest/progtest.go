// Package progtest contains what the tests of the real program share, whatever hosts and file
// systems they use. It builds the program, keeps its output while it runs, finds the processes that
// it leaves behind, and checks what the test's jobs wrote. It is for tests only.
package progtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Main builds the program, sets program to its path, runs the tests, and returns their exit code.
// The compiler's messages go to standard error. env is added to the compiler's environment. Callers
// must import internal/cli, so that a change of it invalidates the cached results of their tests.
// Runs of this process do not share slots with others on this machine unless they request it,
// because tests run concurrently, and are not in the index of runs of whoever tests.
func Main(m *testing.M, program *string, env ...string) int {
	dir, err := os.MkdirTemp("", "dcs-progtest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("DCS_TUI_RUN_SHARE", "off")
	os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	*program = filepath.Join(dir, "dcs-tui")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", *program, "dcs-tui")
	build.Env = append(os.Environ(), env...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the program:", err)
		return 1
	}
	return m.Run()
}

// Buffer collects output and may be read while a process still writes to it. The zero value is
// empty.
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

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
