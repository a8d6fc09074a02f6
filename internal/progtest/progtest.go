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
// The compiler's messages go to standard error. Callers must import internal/cli, so that a change of it
// invalidates the cached results of their tests. Runs of this process do not share slots with others on
// this machine unless they request it, because tests run concurrently, and are not in the index of runs
// of whoever tests.
func Main(m *testing.M, program *string) int {
	return runWith(m, program, func(string) error {
		return inDir(".", "go", "build", "-ldflags=-s -w", "-o", *program, "dcs-tui")
	})
}

// MainReleased is Main with a program as users have it, by `make build`: it carries programs for hosts.
// The package of the tests must be two levels below the root of the repository.
func MainReleased(m *testing.M, program *string) int {
	return runWith(m, program, func(dir string) error {
		hosts := filepath.Join(dir, "hosts")
		if err := inDir("../..", "scripts/host-programs", hosts); err != nil {
			return err
		}
		return inDir("../..", "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-ldflags=-s -w", "-overlay",
			filepath.Join(hosts, "overlay.json"), "-o", *program, ".") // its paths are below the root
	})
}

// runWith runs the tests with a program that build builds, in a directory that is removed at the end.
func runWith(m *testing.M, program *string, build func(dir string) error) int {
	dir, err := os.MkdirTemp("", "dcs-progtest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("DCS_TUI_RUN_SHARE", "off")
	os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	*program = filepath.Join(dir, "dcs-tui")
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "building the program:", err)
		return 1
	}
	return m.Run()
}

func inDir(dir string, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd.Run()
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
