//go:build linux

package remote

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A check looks at a host and leaves nothing there but the program. The name that
// it gives in the place of a run's is its own, so everything below that name is too.

// checkedDir returns the directory that a check makes below dir, and what it must
// remove in the end. What does not exist yet gets a name of its own:
// another host that has the same work_dir, or a run that begins there, could not tell
// who must remove it.
func checkedDir(dir, uid string) (own, remove string) {
	missing := ""
	for d := dir; filepath.Dir(d) != d; d = filepath.Dir(d) {
		if _, err := stat(d); err == nil {
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

// removeTraces removes what a check has made.
func (h *helper) removeTraces() {
	if !h.open.Check {
		return
	}
	within(filesTime, func() {
		if h.spool.dir != "" {
			removeTree(h.spool.dir)
			run := filepath.Dir(h.spool.dir)
			for _, dir := range []string{run, filepath.Dir(run)} {
				unlinkat(unix.AT_FDCWD, dir, unix.AT_REMOVEDIR) // fails while others use it
			}
		}
		if h.checked != "" {
			removeTree(h.checked)
		}
	})
}
