package rundir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
)

// Location records where a run directory was. It tells a directory that was deleted
// from one that cannot be seen at the moment.
type Location struct {
	disk Disk
	dirs []located // the run directory, then each of its parents
}

// located identifies a directory.
type located struct {
	path     string
	dev, ino uint64
	ok       bool // dev and ino are known
}

// Locate records the identity of the run directory and of each of its parents.
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
// emptied. It returns false while that is not certain: the file system may not be
// mounted, and a server may not answer or may not know the directory at the moment. The
// proof is a directory that is still the same one and lists without what it held.
func (l *Location) Deleted() bool {
	dir := l.dirs[0]
	_, err := l.disk.Stat(dir.path)
	switch dev, ino, ok := l.identity(dir.path); {
	case !dir.ok:
		return false
	case ok && dev == dir.dev && ino == dir.ino:
		names, err := l.disk.Names(dir.path)
		return err == nil && !slices.Contains(names, JournalDir)
	case ok: // another directory: replaced, or another file system is mounted there
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
