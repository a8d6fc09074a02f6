//go:build darwin || freebsd

package platform

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios      = unix.TIOCGETA
	setTermios      = unix.TIOCSETA
	setTermiosFlush = unix.TIOCSETAF
)

// SearchOnly is the flag to open a directory only to reach what is in it; 0: there is none.
const SearchOnly = 0

// Executable returns the path of this process's program, which may have been replaced since it was
// started.
func Executable() (string, error) { return os.Executable() }

// DiscardInput discards what was typed on a terminal and not read.
func DiscardInput(fd int) error {
	const fread = 1 // FREAD of sys/fcntl.h
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread)
}

// SyncData makes the content and the size of a file durable. On macOS, package os uses F_FULLFSYNC,
// because fsync(2) does not flush the cache of the drive.
func SyncData(f *os.File) error { return f.Sync() }

// AwaitExit waits until a child of this process has ended. It does not reap the child, so that its pid
// stays its own.
func AwaitExit(pid int) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return err
	}
	defer unix.Close(queue)
	var exit unix.Kevent_t
	unix.SetKevent(&exit, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	exit.Fflags = unix.NOTE_EXIT
	changes, got := []unix.Kevent_t{exit}, make([]unix.Kevent_t, 1)
	for {
		_, err := unix.Kevent(queue, changes, got, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		// A failed change is reported as an event. ESRCH: the child has ended already.
		case got[0].Flags&unix.EV_ERROR != 0 && got[0].Data != 0 && syscall.Errno(got[0].Data) != unix.ESRCH:
			return syscall.Errno(got[0].Data)
		default:
			return nil
		}
	}
}

// PeerUID returns the effective user at the other end of a connected Unix socket.
func PeerUID(fd int) (int, error) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
