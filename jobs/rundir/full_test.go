package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullFileSystemsAreExplained checks that the error of a full file system names what is used up,
// that callers find the error of the kernel in it, and that nothing is invented if the file system
// has both or does not answer.
func TestFullFileSystemsAreExplained(t *testing.T) {
	t.Cleanup(func() { statfs = unix.Statfs })
	plain := func(no syscall.Errno) error { return &fs.PathError{Op: "open", Path: "/run/live.json", Err: no} }
	full := unix.Statfs_t{Blocks: 100, Files: 393_216}
	bytes := unix.Statfs_t{Blocks: 100, Files: 100, Ffree: 1}
	neither := unix.Statfs_t{Blocks: 100, Bavail: 1, Files: 100, Ffree: 1}
	noInodes := unix.Statfs_t{Blocks: 100, Bavail: 1} // btrfs: as many as fit
	for _, c := range []struct {
		err  error
		st   *unix.Statfs_t
		want string // "": unchanged
	}{
		{plain(syscall.ENOSPC), &full, "no inode is free of 393216"},
		{fmt.Errorf("making the claim: %w", plain(syscall.ENOSPC)), &full, "no inode is free of 393216"},
		{plain(syscall.ENOSPC), &bytes, "no byte is free"},
		{plain(syscall.ENOSPC), &neither, ""},
		{plain(syscall.ENOSPC), &noInodes, ""},
		{plain(syscall.ENOSPC), nil, ""},
		{plain(syscall.EDQUOT), nil, "a quota of bytes or files is used up"},
		{plain(syscall.EIO), &full, ""},
		{nil, &full, ""},
	} {
		statfs = func(dir string, st *unix.Statfs_t) error {
			if c.st == nil || dir != "/run" {
				return syscall.EIO
			}
			*st = *c.st
			return nil
		}
		got := ExplainFull(c.err, "/run")
		switch {
		case c.want == "":
			if got != c.err {
				t.Errorf("%v became %v", c.err, got)
			}
		case !errors.Is(got, c.err) || !IsFull(got) || strings.Count(got.Error(), c.want) != 1 ||
			!strings.HasPrefix(got.Error(), c.err.Error()+" ("):
			t.Errorf("%v became %v, want %q once", c.err, got, c.want)
		}
	}
}
