package memdisk

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"dcs-tui/jobs/rundir"
)

// Mount is one machine's view of a Server.
type Mount struct {
	Name string

	// Fault is called before each operation. If it returns an error, the operation fails with it
	// and has no effect, except with ShortWrite and LostWrites. The operations are mkdir, open,
	// readdir, stat, rename, remove, and syncdir; for a file, they are read, write, fstat,
	// truncate, sync, and close (which closes the file even if it fails). The path of a rename is
	// the new one. A nil Fault lets every operation succeed. Fault must not use the server.
	Fault func(op, path string) error

	// Stale is called before a directory is listed. If it returns true, the machine gets the
	// listing that it last saw, unless it has seen none yet or has changed the directory itself
	// since. A nil Stale makes every listing fresh.
	Stale func(dir string) bool

	server *Server
	boots  int
	seen   map[*node][]string
}

var _ rundir.Disk = (*Mount)(nil)

// do runs an operation under the server's lock, unless Fault makes it fail.
func (m *Mount) do(op, path string, f func() error) error {
	var err error
	if m.Fault != nil {
		err = m.Fault(op, path)
	}
	if err == nil {
		m.server.mu.Lock()
		defer m.server.mu.Unlock()
		err = f()
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// Mkdir creates a directory.
func (m *Mount) Mkdir(path string, perm fs.FileMode) error {
	return m.do("mkdir", path, func() error {
		if _, err := m.server.find(path); err == nil {
			return syscall.EEXIST
		}
		d, name, err := m.server.parent(path)
		if err == nil {
			err = m.server.canCreate()
		}
		if err != nil {
			return err
		}
		n := m.server.newNode(path, true)
		n.perm = uint32(perm.Perm())
		m.server.rename(d, nameChange{by: m, made: name, node: n})
		return nil
	})
}

// OpenFile opens or creates a file.
func (m *Mount) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	var f *file
	err := m.do("open", path, func() error {
		d, name, err := m.server.parent(path)
		if err != nil {
			return err
		}
		n := d.names[name]
		switch {
		case flag&os.O_APPEND != 0:
			return syscall.EINVAL
		case n == nil && flag&os.O_CREATE == 0:
			return syscall.ENOENT
		case n == nil:
			if err := m.server.canCreate(); err != nil {
				return err
			}
			n = m.server.newNode(path, false)
			n.perm = uint32(perm.Perm())
			m.server.rename(d, nameChange{by: m, made: name, node: n})
		case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
			return syscall.EEXIST
		case n.dir:
			return syscall.EISDIR
		case flag&os.O_TRUNC != 0 && len(n.data) > 0:
			m.server.write(n, write{by: m, truncate: true})
		}
		f = &file{m: m, n: n, path: path, flag: flag & (os.O_WRONLY | os.O_RDWR), boot: m.boots}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Names lists a directory, sorted.
func (m *Mount) Names(dir string) ([]string, error) {
	var names []string
	err := m.do("readdir", dir, func() error {
		d, err := m.server.findDirectory(dir)
		if err != nil {
			return err
		}
		if old, ok := m.seen[d]; ok && m.Stale != nil && m.Stale(dir) {
			names = slices.Clone(old)
			return nil
		}
		names = slices.Sorted(maps.Keys(d.names))
		m.seen[d] = slices.Clone(names)
		return nil
	})
	return names, err
}

// Stat describes a file or directory. Sys is a *syscall.Stat_t. Everything belongs to the user who
// runs the program.
func (m *Mount) Stat(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := m.do("stat", path, func() error {
		n, err := m.server.find(path)
		if err != nil {
			return err
		}
		info = stat{filepath.Base(path), *n}
		return nil
	})
	return info, err
}

// Lstat is the same as Stat, because there are no symbolic links.
func (m *Mount) Lstat(path string) (fs.FileInfo, error) { return m.Stat(path) }

// Rename moves a name within its directory. It replaces a file of the new name.
func (m *Mount) Rename(from, to string) error {
	return m.do("rename", to, func() error {
		d, old, err := m.server.parent(from)
		if err != nil {
			return err
		}
		d2, made, err := m.server.parent(to)
		if err != nil {
			return err
		}
		n, over := d.names[old], d2.names[made]
		switch {
		case n == nil:
			return syscall.ENOENT
		case d != d2:
			return syscall.EXDEV
		case over != nil && over.dir:
			return syscall.EEXIST // like package os
		case n == over:
			return nil
		case over != nil && n.dir:
			return syscall.ENOTDIR
		}
		m.server.rename(d, nameChange{by: m, gone: old, made: made, node: n})
		return nil
	})
}

// Remove removes the name of a file or of an empty directory.
func (m *Mount) Remove(path string) error {
	return m.do("remove", path, func() error {
		d, name, err := m.server.parent(path)
		if err != nil {
			return err
		}
		n := d.names[name]
		if n == nil {
			return syscall.ENOENT
		}
		if len(n.names) > 0 {
			return syscall.ENOTEMPTY
		}
		m.server.rename(d, nameChange{by: m, gone: name})
		return nil
	})
}

// SyncDir makes this machine's changes to the names of dir durable.
func (m *Mount) SyncDir(dir string) error {
	return m.do("syncdir", dir, func() error {
		d, err := m.server.findDirectory(dir)
		if err != nil {
			return err
		}
		for i := range d.renames {
			if d.renames[i].by == m {
				d.renames[i].durable = true
			}
		}
		d.settleNames()
		return nil
	})
}

// stat implements fs.FileInfo for a copy of a node.
type stat struct {
	name string
	node
}

func (s stat) Name() string       { return s.name }
func (s stat) Size() int64        { return int64(len(s.data)) }
func (s stat) IsDir() bool        { return s.dir }
func (s stat) ModTime() time.Time { return s.mod }

func (s stat) Mode() fs.FileMode {
	if s.dir {
		return fs.ModeDir | fs.FileMode(s.perm)
	}
	return fs.FileMode(s.perm)
}

func (s stat) Sys() any {
	kind := uint32(syscall.S_IFREG)
	if s.dir {
		kind = syscall.S_IFDIR
	}
	st := &syscall.Stat_t{Ino: s.ino, Nlink: 1, Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid()), Size: s.Size()}
	setMode(&st.Mode, kind|s.perm)
	return st
}

// setMode sets the mode of a Stat_t, whose size differs between systems.
func setMode[T uint16 | uint32](to *T, mode uint32) { *to = T(mode) }
