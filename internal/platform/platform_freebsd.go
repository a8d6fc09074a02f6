package platform

import (
	"crypto/rand"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// unknown is an identity that no other process has.
var unknown = sync.OnceValue(rand.Text)

// BootID identifies this boot of the machine. Systems without kern.boot_id (before 13.2) do not tell,
// so that nothing is proved about the processes of others.
func BootID() (string, error) {
	if boot, err := unix.Sysctl("kern.boot_id"); err == nil && boot != "" {
		return boot, nil
	}
	return unknown(), nil
}

// PIDNamespace identifies the set of processes that this process sees. A jail sees only its own, and
// cannot be told from other jails.
func PIDNamespace() (string, error) {
	if jailed, err := unix.SysctlUint32("security.jail.jailed"); err != nil || jailed != 0 {
		return "pid:[" + unknown() + "]", nil
	}
	return "pid:[0]", nil
}

// FindProcess proves only that there is no such process; then the error is ESRCH. The start time that
// FreeBSD shows changes with the clock.
func FindProcess(pid int) (Process, error) {
	if err := unix.Kill(pid, 0); err == unix.ESRCH {
		return Process{}, err
	}
	return Process{}, ErrHidden
}

// SetUserTimeout does nothing: FreeBSD has no such limit for every kind of connection.
func SetUserTimeout(int, time.Duration) error { return nil }

// FileIdentity returns nothing: copies of a file cannot be told from it.
func FileIdentity(string, fs.FileInfo) (inode, device uint64) { return 0, 0 }
