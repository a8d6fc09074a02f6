//go:build linux

package labfs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "dcs-tui/internal/cli" // the program under test: when it changes, cached results of these tests do not count
)

// program is the binary under test, built once.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dcs-labfs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "dcs-tui")
	build := exec.Command("go", "build", "-o", program, "dcs-tui")
	build.Stderr = os.Stderr
	code := 1
	if build.Run() == nil {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}
