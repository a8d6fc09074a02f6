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
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The subcommands with which our own binary is started on a host.
const (
	wordHost    = "__host"
	wordSlot    = "__slot"
	wordSum     = "__sum"
	wordSuspend = "__suspend"
)

// ownUID is our user. It is kept because a look at the claims of a host needs it hundreds of times, and
// each call of os.Getuid is a system call.
var ownUID = os.Getuid()

// Main runs the host side of the program. args[0] is the subcommand: "__host" (the helper,
// with frames on standard input and output), "__slot" (a supervisor), "__suspend" (the
// suspender), or "__sum" (prints the SHA-256 of the executable in hex). It returns the exit
// status: 0, 1 after an error, which is printed to standard error, or 2 for an unknown
// subcommand.
func Main(args []string) int { return runWord(args, defaultLimits) }

func runWord(args []string, limits limits) int {
	word := ""
	if len(args) > 0 {
		word = args[0]
	}
	var err error
	switch word {
	case wordHost:
		err = hostMain(os.Stdin, os.Stdout, limits)
	case wordSlot:
		err = slotMain(args[1:], limits)
	case wordSuspend:
		err = suspendMain(args[1:])
	case wordSum:
		err = printSum(os.Stdout)
	default:
		fmt.Fprintf(os.Stderr, "dcs-tui: %q is not a command; see dcs-tui --help\n", word)
		return 2
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "dcs-tui %s: %v\n", word, err)
		return 1
	}
	return 0
}

// printSum hashes the running file, not the file that has its name by now.
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

// limits are timeouts and intervals of the host side. Tests shorten them.
type limits struct {
	// A helper that receives nothing for this time leaves; its supervisors stay.
	silence      time.Duration
	storeTimeout time.Duration // a supervisor that cannot store an outcome for this time leaves
	heartbeat    time.Duration // interval of looks at the spool, and of heartbeats unless Open says otherwise
	lastSlot     time.Duration // a run whose part is empty for this time may use one slot that others hold
	site         site

	endsSessions bool // for the hello; see leaveSession
}

// defaultLimits are the limits outside of tests.
var defaultLimits = limits{silence: 30 * time.Second, storeTimeout: time.Minute, heartbeat: 3 * time.Second,
	lastSlot: hosts.LastSlotDelay, site: site{selfUID: ownUID}}

// uptime returns CLOCK_BOOTTIME. It includes the time during which the machine sleeps, so
// that a lease also runs out on a suspended laptop.
func uptime() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration { return readClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func readClock(id int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// wallClock returns the time of day, which somebody may set while a job runs. Tests replace it.
var wallClock = func() jobs.Stamp { return jobs.StampOf(time.Now()) }

// bootID identifies this boot of the machine; "" if it is unknown.
var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// keepDescriptors sets close-on-exec on all descriptors but the standard three, including
// inherited ones: sshd waits until every process below it has closed them.
func keepDescriptors() {
	if unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, _ := os.ReadDir("/proc/self/fd") // kernels older than 5.11
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// Timer slack is the time by which the kernel may delay the wakeup of a sleeping thread.
// Threads and processes inherit it from the thread that creates them.
//
// The monitor thread of the Go runtime sleeps 20 µs at a time while anything happens. That
// costs dozens of context switches per short job. A larger slack makes it sleep longer.
// The price is that timers fire later by as much, and that a goroutine may wait as long for
// a processor that another one holds in a system call.
const (
	supervisorSlack = 20 * time.Millisecond
	helperSlack     = time.Millisecond
	jobSlack        = 50 * time.Microsecond // the kernel's default
)

// relaxTimers sets the timer slack of all threads of this process. It has no effect in a
// program that is linked with C, where the Go runtime does not support it.
func relaxTimers(d time.Duration) {
	syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(d), 0)
}

// withDefaultSlack gives the calling thread the kernel's default slack, for a process that
// the thread is about to start. The returned function undoes that.
func withDefaultSlack() (relax func()) {
	runtime.LockOSThread()
	set := func(d time.Duration) { unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0) }
	set(jobSlack)
	return func() {
		set(supervisorSlack)
		runtime.UnlockOSThread()
	}
}
