//go:build linux

package remote

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Issue 3.6: trouble with a file system that may be over by itself is told apart
// from what a person must mend.
func TestPassingTrouble(t *testing.T) {
	for err, want := range map[error]bool{
		unix.ENOSPC: true, unix.EDQUOT: true, unix.EROFS: true, unix.ESTALE: true, unix.EIO: true,
		unix.EACCES: false, unix.ENOTDIR: false, unix.EPERM: false,
	} {
		wrapped := fmt.Errorf("no job can be run here: %w", &fs.PathError{Op: "create", Path: "/x", Err: err})
		if got := passing(wrapped); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// DESIGN 5: the reply to making or removing a file was lost and its repeat is answered
// "exists" or "no such file". The trial of a directory does not fail for it.
func TestTrialWithLostReplies(t *testing.T) {
	for _, op := range []string{"create", "unlink"} {
		dir := filepath.Join(t.TempDir(), "attempts")
		lost := 0
		fault = func(o, path string, after bool) error {
			if o != op || !after || lost > 0 {
				return nil
			}
			lost++
			if op == "create" {
				return unix.EEXIST
			}
			return unix.ENOENT
		}
		err := tryWrite(temps{dir, "ws1", holder{1, 2, 3}})
		fault = nil
		if err != nil || lost != 1 {
			t.Errorf("%s: %v, %d lost", op, err, lost)
		}
		if names, _ := os.ReadDir(dir); len(names) != 0 {
			t.Errorf("%s: left behind: %v", op, names)
		}
	}
}
