package rundir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Location records where a run directory was. It tells a directory that was deleted
// from one that cannot be seen at the moment.
type Location struct {
	run  *Run
	dirs []located // the run directory, then each of its parents
}

// located is a directory and what it was.
type located struct {
	path string
	id   dirID
	err  error // id is not known
}

// dirID identifies a directory on this machine.
type dirID struct{ dev, ino uint64 }

// Locate records the identity of the run directory and of each of its parents.
func (r *Run) Locate() *Location {
	l := &Location{run: r}
	for dir := r.Dir; ; dir = filepath.Dir(dir) {
		id, err := l.identify(dir)
		l.dirs = append(l.dirs, located{dir, id, err})
		if dir == filepath.Dir(dir) {
			return l
		}
	}
}

func (l *Location) identify(dir string) (dirID, error) {
	info, err := l.run.Disk.Stat(dir)
	if err != nil {
		return dirID{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return dirID{}, errors.ErrUnsupported
	}
	return dirID{uint64(st.Dev), st.Ino}, nil
}

// Deleted reports whether the run directory was deleted, moved away, replaced, or
// emptied. It returns false while that is not certain: the file system may not be
// mounted, and a server may not answer or may not know the directory at the moment. The
// proof is a directory that is still the same one and lists without what it held.
func (l *Location) Deleted() bool {
	run := l.dirs[0]
	switch id, err := l.identify(run.path); {
	case run.err != nil:
		return false
	case err == nil && id == run.id:
		return l.lacks(run.path, JournalDir)
	case err == nil && id.dev != run.id.dev: // another file system is mounted there
		return false
	case err == nil:
		return l.isOtherRun()
	case !errors.Is(err, fs.ErrNotExist):
		return false
	}
	for i, above := range l.dirs[1:] {
		switch id, err := l.identify(above.path); {
		case err == nil:
			return above.err == nil && id == above.id && l.lacks(above.path, filepath.Base(l.dirs[i].path))
		case !errors.Is(err, fs.ErrNotExist):
			return false
		}
	}
	return false
}

// isOtherRun reports whether the directory in place of the run directory certainly does
// not hold the run. Its inode number alone does not show that: on FUSE it changes.
func (l *Location) isOtherRun() bool {
	if l.lacks(l.run.Dir, NonceFile) {
		return true
	}
	nonce, err := ReadFile(l.run.Disk, l.run.Path(NonceFile))
	return err == nil && strings.TrimSpace(string(nonce)) != l.run.Nonce
}

// lacks reports whether a directory lists without a name.
func (l *Location) lacks(dir, name string) bool {
	names, err := l.run.Disk.Names(dir)
	return err == nil && !slices.Contains(names, name)
}
