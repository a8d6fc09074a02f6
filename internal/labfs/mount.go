//go:build linux

package labfs

import (
	"io"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Options describe how a client behaves.
type Options struct {
	Stale     time.Duration // how long names, missing names, and attributes are cached
	WriteBack bool          // written data reaches the server at fsync or close
}

// Mount is one client's view of a server.
type Mount struct {
	Dir string // where it is mounted

	s      *Server
	opts   Options
	gate   gate
	faults faults
	fuse   *fuse.Server
	served chan struct{} // closed when the mount is no longer served
}

var mounts atomic.Int64

// Mount mounts the server for one more client. The mount ends with the test.
func (s *Server) Mount(o Options) *Mount {
	s.t.Helper()
	m := &Mount{s: s, opts: o, served: make(chan struct{})}
	m.gate.closing = make(chan struct{})
	m.Dir = filepath.Join(filepath.Dir(s.Dir), "mount"+strconv.FormatInt(mounts.Add(1), 10))
	if err := os.Mkdir(m.Dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	root, errno := lookUp(s.fd, ".")
	if errno != 0 {
		s.t.Fatalf("the server's directory has no handle: %v", errno)
	}
	raw := fs.NewNodeFS(m.node("", root), &fs.Options{
		EntryTimeout: &o.Stale, AttrTimeout: &o.Stale, NegativeTimeout: &o.Stale,
		RootStableAttr: &fs.StableAttr{Ino: root.stat.Ino, Gen: 1},
	})
	// A child that inherited the device would keep the mount, and everything that hangs in it,
	// alive after this process has ended. So nothing is forked before the device is marked.
	syscall.ForkLock.RLock()
	var err error
	m.fuse, err = fuse.NewServer(raw, m.Dir, &fuse.MountOptions{
		DirectMountStrict: true, AllowOther: true, FsName: "labfs", Name: "labfs",
		DisableXAttrs: true, DisableReadDirPlus: true, DisableSplice: true,
		Logger: log.New(io.Discard, "", 0), // aborted connections are expected
	})
	closeDevicesOnExec()
	syscall.ForkLock.RUnlock()
	if err != nil {
		skipOrFail(s.t, "FUSE cannot be mounted here: %v", err)
	}
	go func() {
		defer close(m.served)
		m.fuse.Serve()
	}()
	s.t.Cleanup(m.close)
	return m
}

// closeDevicesOnExec sets close-on-exec on each descriptor of the FUSE device.
func closeDevicesOnExec() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); to == "/dev/fuse" {
			if fd, err := strconv.Atoi(e.Name()); err == nil {
				unix.CloseOnExec(fd)
			}
		}
	}
}

// close ends the mount by aborting its connection. This works even if calls hang in it, or files
// are open on it, also in other mount namespaces.
func (m *Mount) close() {
	close(m.gate.closing)
	if err := unix.Unmount(m.Dir, unix.MNT_FORCE|unix.MNT_DETACH); err != nil {
		m.s.t.Errorf("unmounting %s: %v", m.Dir, err)
		return
	}
	select {
	case <-m.served:
	case <-time.After(30 * time.Second):
		m.s.t.Errorf("the mount %s is still served after its end", m.Dir)
	}
}
