//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// supervisorComm is the name of a supervisor that ps and top show.
const supervisorComm = "dcs-tui-slot"

// wakeFD is the descriptor of the wake pipe in a supervisor.
const wakeFD = 3

var errNoProc = errors.New("/proc is not mounted on this host; it is needed to run jobs")

// slot is a supervisor: it takes one spec after the other and runs it. All but
// watch belongs to the one goroutine of the loop.
type slot struct {
	spool      spool
	ctl        *control
	cfg        *slotConfig
	by         holder
	generation int64

	in, taken, free, reports int      // descriptors
	env                      []string // common to all jobs
	progress                 string
	cookies                  string // what all our cookies begin with

	shardID string // the shard directory that shardFD is open on
	shardFD int

	left    map[int]uint64 // pid: start of children that earlier jobs left behind
	watch   watch
	tokens  tokens
	pending pending
	buf     []byte // specs are read into it
	line    []byte // reports are written in it

	used    usedSlots
	oom     oomScore
	scopes  scopes
	disks   single        // looks whether disks are full
	nowhere time.Duration // how long an outcome without a place is kept
	cut     bool          // spool and attempts are gone, and with them our work
	stops   single        // looks for stop files
}

// slotMain is `__slot SPOOL INDEX GENERATION`. It returns when there is nothing
// left to do for it.
func slotMain(args []string, lim limits) error {
	if len(args) != 3 {
		return errors.New("this is started by the helper, not by people")
	}
	index, err1 := strconv.Atoi(args[1])
	generation, err2 := strconv.ParseInt(args[2], 10, 64)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%q %q are not a slot and a generation", args[1], args[2])
	}
	s := &slot{spool: spool{args[0]}, generation: generation, shardFD: -1, left: map[int]uint64{}, nowhere: lim.nowhere}
	if err := s.open(index); err != nil {
		return err
	}
	s.loop()
	return nil
}

// open makes the process what it must be and opens what it needs.
func (s *slot) open(index int) error {
	keepDescriptors()
	// Keep the process small: its size is the minimum of what is measured as a
	// job's peak memory. Two, not one: with one the runtime takes the only processor
	// away from each blocking call at once, and wakes its monitor for each return.
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(20)
	relaxTimers(supervisorSlack)
	// Children that lose their parent come to us, so the tree can be found.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	os.WriteFile("/proc/self/comm", []byte(supervisorComm), 0)
	var err error
	if s.cfg, err = s.spool.readConfig(s.generation); err != nil {
		return err
	}
	if s.cfg.Nice != 0 {
		niceAll(s.cfg.Nice)
	}
	if s.ctl, err = openControl(s.spool.dir); err != nil {
		return err
	}
	self, ok := readProc(os.Getpid())
	if !ok {
		return errNoProc
	}
	s.by = holder{index, self.pid, self.start}
	for _, d := range []struct {
		fd    *int
		name  string
		flags int
	}{
		{&s.in, dirIn, unix.O_RDONLY | unix.O_DIRECTORY},
		{&s.taken, dirTaken, unix.O_RDONLY | unix.O_DIRECTORY},
		{&s.free, dirFree, unix.O_RDONLY | unix.O_DIRECTORY},
		// Opened for both, so that it is there whether a helper reads it or not.
		{&s.reports, fileReports, unix.O_RDWR | unix.O_NONBLOCK},
	} {
		if *d.fd, err = openat(unix.AT_FDCWD, s.spool.path(d.name), d.flags, 0); err != nil {
			return fmt.Errorf("opening %s: %w", s.spool.path(d.name), err)
		}
	}
	s.tokens = openTokens(wakeFD)
	s.ctl.serving(index).Store(int64(s.by.PID))
	s.cookies = cookie(s.cfg.Run, s.cfg.Host, "")
	s.progress = s.spool.path(dirProgress) + "/"
	s.env = baseEnv(os.Environ(), s.cfg, index)
	s.buf = make([]byte, 16<<10)
	s.oom = openOOM()
	s.watch.slot = s
	// Caught, not ignored: what is ignored stays ignored in jobs.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	go s.watch.listen(signals)
	return nil
}

// niceAll sets the priority of every thread: on Linux it is a thread's property,
// and jobs inherit it from whichever thread starts them.
func niceAll(nice int) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
		}
	}
}

// loop takes tokens until none will come, or we are one too many.
func (s *slot) loop() {
	for !s.cut && !s.isSuperfluous() {
		s.reap()
		generation, id, ok := s.nextToken()
		if !ok || id.Job == 0 {
			break // the helper is gone and the pipe is drained, or we are asked to leave
		}
		s.awaitSlots(1, s.ctl.lease())
		if s.isSuperfluous() {
			// The token was for somebody; the spec stays where it is.
			s.report(&report{Kind: repTrouble, Attempt: id, Why: tokenReturned})
			break
		}
		if s.stopAsked() {
			break // the spec stays where it is, for the next helper
		}
		before := s.pending.await(s)
		s.run(generation, id)
		if s.pending.cur.Load() == before { // nothing was started that would have carried it
			s.flushPending()
		}
	}
	s.flushPending()
	s.leave()
}

// tokenReturned asks the helper for another token for that attempt.
const tokenReturned = "token returned"

// isSuperfluous reports whether this supervisor should take nothing more.
func (s *slot) isSuperfluous() bool {
	return int64(s.by.Slot) > s.ctl.at(ctlLimit).Load() ||
		s.generation != s.ctl.at(ctlGeneration).Load() || s.ctl.at(ctlEnd).Load() != 0
}

// leave stays while there are descendants: as their subreaper we are the only
// one who can find them all.
func (s *slot) leave() {
	s.releaseSlots()
	s.ctl.serving(s.by.Slot).CompareAndSwap(int64(s.by.PID), 0)
	settle(s.spool, s.cfg, s.by)
	s.watch.idle()
	for s.ctl.at(ctlEnd).Load() == 0 {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
			return // no child is left
		}
	}
}

// reap collects children of earlier jobs that have ended since.
func (s *slot) reap() {
	for len(s.left) > 0 {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.ECHILD {
			clear(s.left)
		}
		if err != nil || pid <= 0 {
			return
		}
		delete(s.left, pid)
	}
}

// report writes lines for the helper, or drops them: it never waits.
func (s *slot) report(rs ...*report) {
	s.line = s.reportIn(s.line[:0], rs...)
}

// reportIn is report with a buffer of the caller's, which is returned.
func (s *slot) reportIn(line []byte, rs ...*report) []byte {
	for _, r := range rs {
		r.By = s.by
		if r.Why != "" && r.Why != tokenReturned && s.isAlone() {
			fmt.Fprintln(os.Stderr, r.Why) // the next helper finds it in the log
		}
		have := len(line)
		line = r.append(line)
		if len(line) > maxReport && have > 0 { // together they are too long for one write
			unix.Write(s.reports, line[:have])
			line = append(line[:0], line[have:]...)
		}
	}
	if len(line) <= maxReport {
		unix.Write(s.reports, line)
	}
	return line
}

// isAlone reports whether the helper that started this supervisor is gone. What a supervisor
// has to say then goes to its log, standard error: the FIFO forgets it when the last
// supervisor leaves.
func (s *slot) isAlone() bool {
	fds := []unix.PollFd{{Fd: int32(s.tokens.fd)}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLHUP != 0
}

// shard opens the directory of a job's attempt files, making it if need be. The
// last one stays open.
func (s *slot) shard(id jobs.ID) (int, error) {
	name := jobs.ShardDir(id)
	if name == s.shardID {
		return s.shardFD, nil
	}
	s.forgetShard()
	dir := filepath.Join(s.cfg.Dir, "attempts", name)
	fd, err := openDir(dir)
	if errors.Is(err, unix.ENOENT) {
		if err := makeDirs(dir); err != nil {
			return -1, err
		}
		fd, err = openDir(dir)
	}
	if err != nil {
		return -1, fmt.Errorf("opening %s: %w", dir, err)
	}
	s.shardID, s.shardFD = name, fd
	return fd, nil
}

func (s *slot) forgetShard() {
	if s.shardFD >= 0 {
		closeFile(s.shardFD, s.shardID)
	}
	s.shardID, s.shardFD = "", -1
}

// pendingReport is the pending report of an attempt whose sentinel is in place. It
// waits until the next job has been started, when there is one: the slot is busy
// again first, and two reports travel in one write.
type pendingReport struct {
	a    *attempt
	exit *report
}

// pending holds the pending report. The loop sends it, with the next start or without; a
// timer does when the next start takes long, because a file system hangs. Who
// takes it out of cur sends it.
type pending struct {
	cur   atomic.Pointer[pendingReport]
	armed atomic.Bool
}

// pendingInterval is how often the timer looks: what it sees twice has waited too long.
const pendingInterval = 300 * time.Millisecond

// await is called before the next job is begun. It makes sure that what is pending
// is paid in time whatever happens, and returns it. Under a stream of short jobs
// the timer costs nothing for each: it is armed a few times a second.
func (d *pending) await(s *slot) *pendingReport {
	o := d.cur.Load()
	if o != nil && d.armed.CompareAndSwap(false, true) {
		time.AfterFunc(pendingInterval, func() { d.look(s, nil) })
	}
	return o
}

// look sends what was pending at the last look already, and looks again later if
// there is anything.
func (d *pending) look(s *slot, last *pendingReport) {
	o := d.cur.Load()
	if o != nil && o == last && d.cur.CompareAndSwap(o, nil) {
		s.release(o.a)
		s.reportIn(nil, o.exit)
		o = nil
	}
	if o == nil {
		// Reports that become pending from here on are handled by the next await.
		d.armed.Store(false)
		if o = d.cur.Load(); o == nil || !d.armed.CompareAndSwap(false, true) {
			return
		}
	}
	time.AfterFunc(pendingInterval, func() { d.look(s, o) })
}

// flushPending releases the attempt whose report is pending, and reports it.
func (s *slot) flushPending() {
	if o := s.pending.cur.Swap(nil); o != nil {
		s.drop(o.a, o.exit)
	}
}

// stopTimeout is how long a supervisor waits for the listing of the run directory.
const stopTimeout = 2 * time.Second

// stopAsked reports whether a stop file in the run directory asks that nothing more is
// started. While there is a helper, the dispatcher handles stop files, and stopAsked
// does not look. A directory that does not respond within stopTimeout counts as having
// none: the claim waits for that directory, too, unless the attempts of this host are
// elsewhere.
func (s *slot) stopAsked() bool {
	if s.cfg.RunDir == "" || !s.isAlone() {
		return false
	}
	var asked atomic.Bool
	s.stops.do(stopTimeout, func() {
		run := &rundir.Run{Dir: s.cfg.RunDir, Disk: onlyRead}
		names, _, err := run.StopFiles()
		asked.Store(err == nil && len(names) > 0)
	})
	return asked.Load()
}
