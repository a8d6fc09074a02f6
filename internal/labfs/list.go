//go:build linux

package labfs

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Opendir implements fs.NodeOpendirer. Opening a directory to list it asks the server again and so
// makes the names visible that other clients created. On NFS, this is the only way.
func (n *node) Opendir(ctx context.Context) syscall.Errno {
	return n.m.call(ctx, List, n.lastName(), n.refresh)
}

// refresh makes the kernel forget cached names that are no longer right. The kernel holds no lock
// of the directory while it opens it.
func (n *node) refresh() syscall.Errno {
	var changed []string
	errno := n.withDir(func(dir int) syscall.Errno {
		n.mu.Lock()
		defer n.mu.Unlock()
		for name, ino := range n.knownNames {
			var st unix.Stat_t
			now := uint64(0)
			if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				now = st.Ino
			}
			if now != ino {
				delete(n.knownNames, name)
				changed = append(changed, name)
			}
		}
		return 0
	})
	for _, name := range changed {
		n.NotifyEntry(name)
	}
	return errno
}

// Readdir implements fs.NodeReaddirer.
func (n *node) Readdir(ctx context.Context) (stream fs.DirStream, errno syscall.Errno) {
	errno = n.m.call(ctx, List, n.lastName(), func() syscall.Errno {
		fd, errno := n.m.s.openHandle(n.handle, unix.O_RDONLY|unix.O_DIRECTORY)
		if errno != 0 {
			return errno
		}
		// The name under which the entries are looked up.
		d := os.NewFile(uintptr(fd), fmt.Sprintf("/proc/self/fd/%d", fd))
		defer d.Close()
		entries, err := d.ReadDir(-1)
		if err != nil {
			return syscall.EIO
		}
		var list []fuse.DirEntry
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // removed in the meantime
			}
			st := info.Sys().(*syscall.Stat_t)
			list = append(list, fuse.DirEntry{Name: e.Name(), Mode: st.Mode, Ino: st.Ino})
		}
		stream = fs.NewListDirStream(list)
		return 0
	})
	return stream, errno
}
