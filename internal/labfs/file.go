//go:build linux

package labfs

import (
	"cmp"
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// file is an open file of a client.
type file struct {
	fd         int
	name       string // the name under which it was opened
	isReadOnly bool   // it is open only for reading
	isDirty    bool   // written since its last flush; guarded by the node's lock
}

// chunk is a write that the client has accepted and the server does not have yet.
type chunk struct {
	f    *file
	off  int64
	data []byte
}

// Open implements fs.NodeOpener. Opening asks the server for the attributes, as NFS does.
func (n *node) Open(ctx context.Context, flags uint32) (h fs.FileHandle, fuseFlags uint32, errno syscall.Errno) {
	errno = n.m.call(ctx, Open, n.lastName(), func() syscall.Errno {
		if flags&(unix.O_WRONLY|unix.O_RDWR|unix.O_TRUNC) != 0 && n.m.faults.readOnly.Load() {
			return syscall.EROFS
		}
		fd, errno := n.m.s.openHandle(n.handle, int(flags)&^(unix.O_APPEND|fuse.FMODE_EXEC))
		if errno == 0 {
			h = &file{fd: fd, name: n.lastName(), isReadOnly: flags&unix.O_ACCMODE == unix.O_RDONLY}
			n.NotifyContent(-1, 0)
		}
		return errno
	})
	return h, fuse.FOPEN_DIRECT_IO, errno
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32,
	out *fuse.EntryOut) (inode *fs.Inode, h fs.FileHandle, fuseFlags uint32, errno syscall.Errno) {
	fd := -1
	errno = n.callInDir(ctx, Create, name, func(dir int) syscall.Errno {
		var err error
		fd, err = unix.Openat(dir, name, int(flags)&^unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, mode)
		if err != nil {
			return fs.ToErrno(err)
		}
		o, errno := objectOf(fd)
		if errno == 0 {
			inode = n.child(ctx, name, o, out)
		}
		return errno
	})
	if errno != 0 {
		if fd >= 0 {
			unix.Close(fd)
		}
		return nil, nil, 0, errno
	}
	return inode, &file{fd: fd, name: name}, fuse.FOPEN_DIRECT_IO, 0
}

// Read implements fs.NodeReader. It returns the server's data, overlaid with what this client has
// written.
func (n *node) Read(ctx context.Context, h fs.FileHandle, dest []byte,
	off int64) (res fuse.ReadResult, errno syscall.Errno) {
	errno = n.m.call(ctx, Read, h.(*file).name, func() syscall.Errno {
		k, err := unix.Pread(h.(*file).fd, dest, off)
		if err != nil {
			return fs.ToErrno(err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, c := range n.pending {
			from, to := max(off, c.off), min(off+int64(len(dest)), c.off+int64(len(c.data)))
			if from < to {
				if gap := int(from - off); gap > k {
					clear(dest[k:gap])
				}
				copy(dest[from-off:to-off], c.data[from-c.off:])
				k = max(k, int(to-off))
			}
		}
		res = fuse.ReadResultData(dest[:k])
		return 0
	})
	return res, errno
}

// Write implements fs.NodeWriter.
func (n *node) Write(ctx context.Context, h fs.FileHandle, data []byte,
	off int64) (written uint32, errno syscall.Errno) {
	errno = n.m.call(ctx, Write, h.(*file).name, func() syscall.Errno {
		f := h.(*file)
		n.mu.Lock()
		defer n.mu.Unlock()
		f.isDirty = true
		written = uint32(len(data))
		c := chunk{f, off, data}
		if n.m.opts.WriteBack {
			c.data = append([]byte(nil), data...)
			n.pending = append(n.pending, c)
			return 0
		}
		return n.store(c)
	})
	return written, errno
}

// store writes a chunk to the server, if there is space.
func (n *node) store(c chunk) syscall.Errno {
	if n.m.faults.full.Load() {
		var st unix.Stat_t
		if err := unix.Fstat(c.f.fd, &st); err != nil {
			return fs.ToErrno(err)
		}
		if c.off+int64(len(c.data)) > st.Size {
			return syscall.ENOSPC
		}
	}
	for len(c.data) > 0 {
		k, err := unix.Pwrite(c.f.fd, c.data, c.off)
		if err != nil {
			return fs.ToErrno(err)
		}
		c.data, c.off = c.data[k:], c.off+int64(k)
	}
	return 0
}

// size returns the length of the file for this client.
func (n *node) size(server uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.pending {
		server = max(server, uint64(c.off)+uint64(len(c.data)))
	}
	return server
}

// send sends the pending chunks to the server. Chunks that the server refuses are lost, and their
// error is reported once.
func (n *node) send() (errno syscall.Errno) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.pending {
		errno = cmp.Or(errno, n.store(c))
	}
	n.pending = nil
	return errno
}

// clearDirty marks f as flushed, and reports whether the flush may have anything to report.
func (n *node) clearDirty(f *file) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := f.isDirty
	f.isDirty = false
	return was || len(n.pending) > 0
}

// Flush implements fs.NodeFlusher. The kernel calls it at each close. It asks the server only if
// the file is open for writing and was written.
func (n *node) Flush(ctx context.Context, h fs.FileHandle) syscall.Errno {
	if f := h.(*file); f.isReadOnly || !n.clearDirty(f) {
		return 0
	}
	return n.sync(ctx, Flush, h.(*file).name)
}

// Fsync implements fs.NodeFsyncer.
func (n *node) Fsync(ctx context.Context, h fs.FileHandle, _ uint32) syscall.Errno {
	name := n.lastName()
	if f, ok := h.(*file); ok { // a directory has nothing to sync
		n.clearDirty(f)
		name = f.name
	}
	return n.sync(ctx, Fsync, name)
}

// sync sends the pending chunks. After an error they are lost.
func (n *node) sync(ctx context.Context, op Op, name string) syscall.Errno {
	errno := n.m.call(ctx, op, name, n.send)
	if errno != 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.pending = nil
	}
	return errno
}

// Release implements fs.NodeReleaser.
func (n *node) Release(_ context.Context, h fs.FileHandle) syscall.Errno {
	return fs.ToErrno(unix.Close(h.(*file).fd))
}

// Setattr implements fs.NodeSetattrer. It sends the pending chunks first.
func (n *node) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return n.m.call(ctx, Setattr, n.lastName(), func() syscall.Errno {
		if errno := n.send(); errno != 0 {
			return errno
		}
		if f, ok := h.(*file); ok {
			return setattr(f.fd, in, out)
		}
		flags := unix.O_RDONLY
		if _, sized := in.GetSize(); sized {
			flags = unix.O_RDWR
		}
		return n.withObject(flags, func(fd int) syscall.Errno { return setattr(fd, in, out) })
	})
}

// setattr sets the attributes in in, and returns the new ones in out.
func setattr(fd int, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if mode, ok := in.GetMode(); ok {
		if err := unix.Fchmod(fd, mode); err != nil {
			return fs.ToErrno(err)
		}
	}
	if size, ok := in.GetSize(); ok {
		if err := unix.Ftruncate(fd, int64(size)); err != nil {
			return fs.ToErrno(err)
		}
	}
	atime, aok := in.GetATime()
	mtime, mok := in.GetMTime()
	if aok || mok {
		if err := unix.UtimesNanoAt(fd, "", []unix.Timespec{timeSpec(atime, aok), timeSpec(mtime, mok)},
			unix.AT_EMPTY_PATH); err != nil {
			return fs.ToErrno(err)
		}
	}
	var st syscall.Stat_t
	err := syscall.Fstat(fd, &st)
	out.FromStat(&st)
	return fs.ToErrno(err)
}

func timeSpec(t time.Time, given bool) unix.Timespec {
	if !given {
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	}
	return unix.NsecToTimespec(t.UnixNano())
}
