//go:build linux

package remote

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// The words by which our own binary is started on a host.
const (
	wordHost    = "__host"
	wordSlot    = "__slot"
	wordSum     = "__sum"
	wordSuspend = "__suspend"
)

// Main runs the host side of the program. args[0] is the word: "__host" (the
// helper: frames on standard input and output), "__slot" (a supervisor), "__suspend" or
// "__sum" (prints the SHA-256 of the executable in hex). It returns the exit
// status: 0, 1 after trouble (said on standard error), 2 for an unknown word.
func Main(args []string) int { return runWord(args, defaultLimits) }

func runWord(args []string, lim limits) int {
	word := ""
	if len(args) > 0 {
		word = args[0]
	}
	var err error
	switch word {
	case wordHost:
		err = hostMain(os.Stdin, os.Stdout, lim)
	case wordSlot:
		err = slotMain(args[1:], lim)
	case wordSuspend:
		err = suspendMain(args[1:])
	case wordSum:
		err = printSum(os.Stdout)
	default:
		fmt.Fprintf(os.Stderr, "dcs-tui: %q is not a command for people or hosts; see dcs-tui --help\n", word)
		return 2
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "dcs-tui %s: %v\n", word, err)
		return 1
	}
	return 0
}

// printSum hashes the running file itself, not whatever has its name by now.
func printSum(w io.Writer) error {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading our own executable: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("reading our own executable: %w", err)
	}
	_, err = fmt.Fprintf(w, "%x\n", h.Sum(nil))
	return err
}

// limits are the times after which the far side gives something up by itself.
// They are handed down from the program's entry, so that tests can be short.
type limits struct {
	silence time.Duration // a helper leaves when it has heard nothing for so long; its supervisors continue
	nowhere time.Duration // a supervisor leaves after it could not store its outcome for so long
	beat    time.Duration // the time between two heartbeats, and between two looks at the spool
	// lastSlot is how long a user who wants a slot waits before it uses one though others hold all.
	lastSlot time.Duration
	site     site
}

// defaultLimits are the limits of the program itself.
var defaultLimits = limits{silence: 30 * time.Second, nowhere: time.Minute, beat: 3 * time.Second, lastSlot: 30 * time.Second, site: site{self: os.Getuid()}}

// uptime is CLOCK_BOOTTIME: it runs on while the machine sleeps, so a lease that
// ran out in a suspended laptop has run out.
func uptime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

func wall() jobs.Stamp { return jobs.StampOf(time.Now()) }

// bootID tells one boot of this machine from the next; "" when it has none.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// keepDescriptors makes every descriptor but the standard three close on exec,
// those too that somebody let us inherit: sshd waits for each that a process
// below it holds, and jobs have no business with them.
func keepDescriptors() {
	if unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, _ := os.ReadDir("/proc/self/fd") // a kernel older than 5.11
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

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

// withDefaultSlack gives the calling thread the kernel's default, for a process that is started
// from it. The function that it returns takes that back.
func withDefaultSlack() (relax func()) {
	runtime.LockOSThread()
	set := func(d time.Duration) { unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0) }
	set(jobSlack)
	return func() {
		set(supervisorSlack)
		runtime.UnlockOSThread()
	}
}
