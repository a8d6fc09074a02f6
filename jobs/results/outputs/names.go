package outputs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"dcs-tui/jobs/rundir"
)

// names are the listings of one Read: each directory is listed once, by whoever
// asks first. Safe for concurrent use.
type names struct {
	disk rundir.Disk
	mu   sync.Mutex
	dirs map[string]*listed
}

type listed struct {
	once sync.Once
	set  map[string]struct{}
	err  error // nil for a directory that is not there: it shows nothing
}

// shows says whether a listing showed the file.
func (n *names) shows(path string) (bool, error) {
	l := n.list(filepath.Dir(path))
	_, ok := l.set[filepath.Base(path)]
	if ok {
		return true, nil
	}
	return false, l.err
}

func (n *names) list(dir string) *listed {
	n.mu.Lock()
	l := n.dirs[dir]
	if l == nil {
		if n.dirs == nil {
			n.dirs = map[string]*listed{}
		}
		l = &listed{}
		n.dirs[dir] = l
	}
	n.mu.Unlock()
	l.once.Do(func() { l.read(n, dir) })
	return l
}

// read lists dir. One that cannot be seen is looked for in the listing of the
// directory above it, which makes its name visible if another machine made it.
func (l *listed) read(n *names, dir string) {
	found, err := n.disk.Names(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if above := filepath.Dir(dir); above != dir {
			if _, ok := n.list(above).set[filepath.Base(dir)]; ok {
				found, err = n.disk.Names(dir)
			}
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		l.err = err
	}
	l.set = make(map[string]struct{}, len(found))
	for _, name := range found { // what came before an error counts
		l.set[name] = struct{}{}
	}
}
