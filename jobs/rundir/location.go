package rundir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
)

// Location is where a run directory was when it was located. It tells a directory that
// was deleted from one that cannot be seen for the moment.
type Location struct {
	disk Disk
	dirs []located // the run directory, then each directory above it
}

// located identifies a directory.
type located struct {
	path     string
	dev, ino uint64
	ok       bool // dev and ino are known
}

// Locate notes which directory the run directory is, and which ones are above it.
func (r *Run) Locate() *Location {
	l := &Location{disk: r.Disk}
	for dir := r.Dir; ; dir = filepath.Dir(dir) {
		at := located{path: dir}
		at.dev, at.ino, at.ok = l.identity(dir)
		l.dirs = append(l.dirs, at)
		if dir == filepath.Dir(dir) {
			return l
		}
	}
}

func (l *Location) identity(dir string) (dev, ino uint64, ok bool) {
	info, err := l.disk.Stat(dir)
	if err != nil {
		return 0, 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return uint64(st.Dev), st.Ino, true
}

// Deleted reports whether the run directory was deleted, moved away, replaced, or
// emptied. It is false while that is not certain: for a file system that is not mounted,
// or a server that does not answer or knows the directory no more for the moment. The
// proof is a directory that is still the one that it was and lists without what it held.
func (l *Location) Deleted() bool {
	dir := l.dirs[0]
	_, err := l.disk.Stat(dir.path)
	switch dev, ino, ok := l.identity(dir.path); {
	case !dir.ok:
		return false
	case ok && dev == dir.dev && ino == dir.ino:
		names, err := l.disk.Names(dir.path)
		return err == nil && !slices.Contains(names, JournalDir)
	case ok: // another: it was replaced, or another file system is mounted there
		return dev == dir.dev
	case !errors.Is(err, fs.ErrNotExist):
		return false
	}
	for i, above := range l.dirs[1:] {
		dev, ino, ok := l.identity(above.path)
		if !ok {
			if _, err := l.disk.Stat(above.path); !errors.Is(err, fs.ErrNotExist) {
				return false
			}
			continue // look further up
		}
		if !above.ok || dev != above.dev || ino != above.ino {
			return false
		}
		names, err := l.disk.Names(above.path)
		return err == nil && !slices.Contains(names, filepath.Base(l.dirs[i].path))
	}
	return false
}
