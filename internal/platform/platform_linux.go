package platform

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	getTermios      = unix.TCGETS
	setTermios      = unix.TCSETS
	setTermiosFlush = unix.TCSETSF
)

// SearchOnly is the flag to open a directory only to reach what is in it. On NFS, this needs no call to
// the server, unlike an open for reading. It is 0 on other systems.
const SearchOnly = unix.O_PATH

// Executable returns a path at which this process's program can be opened and started. It still names
// the same file after that was deleted or replaced.
func Executable() (string, error) { return "/proc/self/exe", nil }

// DiscardInput discards what was typed on a terminal and not read.
func DiscardInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }

// SyncData makes the content and the size of a file durable. On NFS it returns also the errors of
// earlier writes.
func SyncData(f *os.File) error {
	err := retryInterrupted(func() error { return unix.Fdatasync(int(f.Fd())) })
	if err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

// retryInterrupted repeats a system call that a signal interrupted, as package os does.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// BootID identifies this boot of the machine.
func BootID() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)), err
}

// PIDNamespace identifies the set of processes in which a pid is unique. Containers have sets of their own.
func PIDNamespace() (string, error) { return os.Readlink("/proc/self/ns/pid") }

// FindProcess returns a process. The error is fs.ErrNotExist or ESRCH if there is none.
func FindProcess(pid int) (Process, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, err
	}
	return parseStat(b)
}

// parseStat reads /proc/PID/stat. The name in parentheses may hold blanks and parentheses, so the
// fields are counted after the last one. Start is field 22: clock ticks since boot.
func parseStat(b []byte) (Process, error) {
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return Process{}, fmt.Errorf("not a /proc/PID/stat: %.60q", b)
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return Process{}, err
	}
	parent, err := strconv.Atoi(string(fields[1]))
	state := fields[0][0]
	return Process{Start: start, Parent: parent, Ended: state == 'Z' || state == 'X', Stopped: state == 'T'}, err
}

// AwaitExit waits until a child of this process has ended. It does not reap the child, so that its pid
// stays its own.
func AwaitExit(pid int) error {
	if awaitPidfd(pid) == nil {
		return nil
	}
	return retryInterrupted(func() error { return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) })
}

// awaitPidfd waits in the poller of the Go runtime until a child of this process has ended, so that
// the wait holds no thread. It returns an error if the kernel or the poller does not support that.
func awaitPidfd(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	unix.SetNonblock(fd, true) // otherwise package os does not poll it
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var pollErr error
	err = raw.Read(func(fd uintptr) (ended bool) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		var n int
		pollErr = retryInterrupted(func() (err error) {
			n, err = unix.Poll(fds, 0)
			return err
		})
		return n > 0 || pollErr != nil
	})
	return errors.Join(err, pollErr)
}

// PeerUID returns the effective user at the other end of a connected Unix socket.
func PeerUID(fd int) (int, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}

// SetUserTimeout limits how long sent bytes of a TCP connection may stay unacknowledged before the
// kernel closes it.
func SetUserTimeout(fd int, d time.Duration) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}

// FileIdentity returns what identifies a file on this machine: its inode number, which is 0 where it
// changes with every mount, and its device, which is 0 where that changes, as on NFS.
func FileIdentity(path string, info fs.FileInfo) (inode, device uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	var kind unix.Statfs_t
	if !ok || unix.Statfs(path, &kind) == nil && slices.Contains(unstableInodes, uint32(kind.Type)) {
		return 0, 0
	}
	if unix.Major(st.Dev) == 0 {
		return st.Ino, 0
	}
	return st.Ino, st.Dev
}

var unstableInodes = []uint32{unix.FUSE_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC}
