//go:build linux

package labfs

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// node is a client's view of one object of the server.
type node struct {
	fs.Inode
	m      *Mount
	handle unix.FileHandle

	mu   sync.Mutex
	name string // the last part of its path, as last used
	// For a directory: the inode of each name that was looked up; 0: there was none.
	knownNames map[string]uint64
	pending    []chunk // for a file: writes that were not sent to the server yet
}

func (m *Mount) node(name string, o object) *node {
	return &node{m: m, handle: o.handle, name: name, knownNames: map[string]uint64{}}
}

// child returns the inode of an object that was found under a name in n.
func (n *node) child(ctx context.Context, name string, o object, out *fuse.EntryOut) *fs.Inode {
	inode := n.NewInode(ctx, n.m.node(name, o), fs.StableAttr{Mode: o.stat.Mode & syscall.S_IFMT, Ino: o.stat.Ino,
		Gen: 1})
	c := inode.Operations().(*node) // the existing node, if the object is known
	c.mu.Lock()
	c.name = name
	c.mu.Unlock()
	out.Attr.FromStat(&o.stat)
	out.Attr.Size = c.size(out.Attr.Size)
	n.recordName(name, o.stat.Ino)
	return inode
}

func (n *node) lastName() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// recordName records what the client believes about a name, so that refresh can check it.
func (n *node) recordName(name string, ino uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.knownNames[name] = ino
}

// withDir calls f with the directory open on the server.
func (n *node) withDir(f func(dir int) syscall.Errno) syscall.Errno {
	return n.withObject(unix.O_RDONLY|unix.O_DIRECTORY, f)
}

// callInDir makes a call with the directory open on the server.
func (n *node) callInDir(ctx context.Context, op Op, name string, do func(dir int) syscall.Errno) syscall.Errno {
	return n.m.call(ctx, op, name, func() syscall.Errno { return n.withDir(do) })
}

// withObject calls f with the object open on the server.
func (n *node) withObject(flags int, f func(fd int) syscall.Errno) syscall.Errno {
	fd, errno := n.m.s.openHandle(n.handle, flags)
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	return f(fd)
}

// Lookup implements fs.NodeLookuper. The kernel caches a missing name, unless the reply to its
// creation will be lost: an NFS client forgets a name for which the answer was "exists".
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (inode *fs.Inode, errno syscall.Errno) {
	inode, errno = n.entry(ctx, Lookup, name, out, func(int) error { return nil })
	switch {
	case errno != syscall.ENOENT:
	case n.m.faults.losesReply(name):
		out.SetEntryTimeout(time.Nanosecond)
	default:
		n.recordName(name, 0)
	}
	return inode, errno
}

// Getattr implements fs.NodeGetattrer.
func (n *node) Getattr(ctx context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	stat := func(fd int) syscall.Errno {
		var st syscall.Stat_t
		if err := syscall.Fstat(fd, &st); err != nil {
			return fs.ToErrno(err)
		}
		out.FromStat(&st)
		out.Size = n.size(out.Size)
		return 0
	}
	return n.m.call(ctx, Getattr, n.lastName(), func() syscall.Errno {
		if file, ok := f.(*file); ok {
			return stat(file.fd)
		}
		return n.withObject(unix.O_PATH, stat)
	})
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.entry(ctx, Mkdir, name, out, func(dir int) error { return unix.Mkdirat(dir, name, mode) })
}

// Symlink implements fs.NodeSymlinker.
func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.entry(ctx, Symlink, name, out, func(dir int) error { return unix.Symlinkat(target, dir, name) })
}

// Link implements fs.NodeLinker.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string,
	out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	t := target.(*node)
	return n.entry(ctx, Link, name, out, func(dir int) error {
		fd, errno := n.m.s.openHandle(t.handle, unix.O_PATH)
		if errno != 0 {
			return errno
		}
		defer unix.Close(fd)
		t.mu.Lock()
		t.name = name
		t.mu.Unlock()
		return unix.Linkat(fd, "", dir, name, unix.AT_EMPTY_PATH)
	})
}

// entry carries out do in the directory, and returns the inode that the name has then.
func (n *node) entry(ctx context.Context, op Op, name string, out *fuse.EntryOut,
	do func(dir int) error) (inode *fs.Inode, errno syscall.Errno) {
	errno = n.callInDir(ctx, op, name, func(dir int) syscall.Errno {
		if err := do(dir); err != nil {
			return fs.ToErrno(err)
		}
		o, errno := lookUp(dir, name)
		if errno == 0 {
			inode = n.child(ctx, name, o, out)
		}
		return errno
	})
	return inode, errno
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.removeName(ctx, Unlink, name, func(dir int) error { return unix.Unlinkat(dir, name, 0) })
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.removeName(ctx, Rmdir, name, func(dir int) error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

func (n *node) removeName(ctx context.Context, op Op, name string, do func(dir int) error) syscall.Errno {
	return n.callInDir(ctx, op, name, func(dir int) syscall.Errno {
		err := do(dir)
		if err == nil {
			n.recordName(name, 0)
		}
		return fs.ToErrno(err)
	})
}

// Rename implements fs.NodeRenamer.
func (n *node) Rename(ctx context.Context, name string, to fs.InodeEmbedder, newName string,
	flags uint32) syscall.Errno {
	target := to.(*node)
	return n.callInDir(ctx, Rename, newName, func(dir int) syscall.Errno {
		return target.withDir(func(toDir int) syscall.Errno {
			o, errno := lookUp(dir, name)
			if errno != 0 {
				return errno
			}
			if err := unix.Renameat2(dir, name, toDir, newName, uint(flags)); err != nil {
				return fs.ToErrno(err)
			}
			n.recordName(name, 0)
			target.recordName(newName, o.stat.Ino)
			return 0
		})
	})
}

// Readlink implements fs.NodeReadlinker.
func (n *node) Readlink(ctx context.Context) (target []byte, errno syscall.Errno) {
	errno = n.m.call(ctx, Getattr, n.lastName(), func() syscall.Errno {
		return n.withObject(unix.O_PATH|unix.O_NOFOLLOW, func(fd int) syscall.Errno {
			target = make([]byte, unix.PathMax)
			k, err := unix.Readlinkat(fd, "", target)
			target = target[:max(0, k)]
			return fs.ToErrno(err)
		})
	})
	return target, errno
}

// Statfs implements fs.NodeStatfser.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	return n.m.call(ctx, Statfs, n.lastName(), func() syscall.Errno {
		var st syscall.Statfs_t
		if err := syscall.Fstatfs(n.m.s.fd, &st); err != nil {
			return fs.ToErrno(err)
		}
		if n.m.faults.full.Load() {
			st.Bfree, st.Bavail = 0, 0
		}
		out.FromStatfsT(&st)
		return 0
	})
}
