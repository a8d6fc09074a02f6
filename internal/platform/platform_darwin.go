package platform

import (
	"io/fs"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// BootID identifies this boot of the machine.
func BootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

// PIDNamespace identifies the set of processes in which a pid is unique. macOS has only one.
func PIDNamespace() (string, error) { return "pid:[0]", nil }

// statStop and statZombie are values of P_stat (sys/proc.h).
const (
	statStop   = 4
	statZombie = 5
)

// FindProcess returns a process. The error is ESRCH if there is none.
func FindProcess(pid int) (Process, error) {
	if err := unix.Kill(pid, 0); err == unix.ESRCH { // sysctl has no error for it
		return Process{}, err
	}
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Process{}, err
	}
	return Process{
		Start:   uint64(p.Proc.P_starttime.Nano()),
		Parent:  int(p.Eproc.Ppid),
		Ended:   p.Proc.P_stat == statZombie,
		Stopped: p.Proc.P_stat == statStop,
	}, nil
}

// SetUserTimeout limits for how long the kernel sends unacknowledged bytes of a TCP connection again
// before it closes it. It counts seconds.
func SetUserTimeout(fd int, d time.Duration) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RXT_CONNDROPTIME, int(d.Seconds()))
}

// FileIdentity returns the inode number of a file, which is 0 where it changes with every mount. The
// device is always 0, because the number of a drive changes when it is connected again.
func FileIdentity(path string, info fs.FileInfo) (inode, device uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	var kind unix.Statfs_t
	if !ok || unix.Statfs(path, &kind) == nil &&
		slices.Contains(unstableInodes, unix.ByteSliceToString(kind.Fstypename[:])) {
		return 0, 0
	}
	return st.Ino, 0
}

// unstableInodes are kinds of file systems whose inode numbers may change: on servers of other systems,
// of programs, and where they are positions on the drive.
var unstableInodes = []string{
	"smbfs", "afpfs", "webdav", "ftp", "macfuse", "osxfuse", "fuse-t", "msdos", "exfat", "lifs",
}
