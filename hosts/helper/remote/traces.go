//go:build linux

package remote

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A check leaves nothing on a host but the program. The uid that it sends in place of
// that of a run is unique, so everything below a directory of that name is its own.

// checkedDir returns the directory that a check creates below dir, and the path that it
// must remove at its end. If dir does not exist yet, the check uses a directory of its
// own in its place: another host with the same work_dir, or a run that begins there,
// could not tell who must remove dir.
func checkedDir(dir, uid string) (own, remove string) {
	missing := ""
	for d := dir; filepath.Dir(d) != d; d = filepath.Dir(d) {
		var st unix.Stat_t
		// What is not known counts as existing, and a link to nothing does exist: a run
		// would fail there, so the check must not try another directory.
		if err := statat(unix.AT_FDCWD, d, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = d
	}
	if missing == "" {
		own = filepath.Join(dir, uid)
		return own, own
	}
	remove = missing + "." + uid
	return filepath.Join(remove+strings.TrimPrefix(dir, missing), uid), remove
}

// removeTraces removes what a check has created.
func (h *helper) removeTraces() {
	if !h.open.Check {
		return
	}
	within(filesTime, func() {
		if h.spool.dir != "" {
			removeTree(h.spool.dir)
			run := filepath.Dir(h.spool.dir)
			for _, dir := range []string{run, filepath.Dir(run)} {
				unlinkat(unix.AT_FDCWD, dir, unix.AT_REMOVEDIR) // fails while it is in use by others
			}
		}
		if h.checked != "" {
			removeTree(h.checked)
		}
	})
}
