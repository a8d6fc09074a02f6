//go:build linux

package remote

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Timer slack is how much later than asked the kernel may wake a thread that sleeps. A
// new thread or process inherits it from the thread that makes it.
//
// The monitor thread of the Go runtime sleeps 20 µs at a time while anything happens,
// which makes dozens of context switches for each short job. Slack makes it sleep longer.
// The price is that timers are late by as much, and that a goroutine may wait as long for
// a processor that another one holds in a system call.
const (
	supervisorSlack = 20 * time.Millisecond
	helperSlack     = time.Millisecond
	jobSlack        = 50 * time.Microsecond // the kernel's default
)

// relaxTimers sets the timer slack of all threads of this process. In a program that is
// linked with C, which the Go runtime does not let do this, it does nothing.
func relaxTimers(d time.Duration) {
	syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(d), 0)
}

// usualSlack gives the calling thread the kernel's default, for a process that is started
// from it. The function that it returns takes that back.
func usualSlack() (relax func()) {
	runtime.LockOSThread()
	set := func(d time.Duration) { unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0) }
	set(jobSlack)
	return func() {
		set(supervisorSlack)
		runtime.UnlockOSThread()
	}
}
