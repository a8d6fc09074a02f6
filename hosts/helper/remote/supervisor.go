//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// supervisorComm is the name of supervisors in ps and top.
const supervisorComm = "dcs-tui-slot"

// wakeFD is the descriptor of the wake pipe in a supervisor.
const wakeFD = 3

var errNoProc = errors.New("/proc is not mounted on this host; it is needed to run jobs")

// slot is a supervisor, which runs one spec after the other. All fields but watch are owned by
// the goroutine of loop.
type slot struct {
	spool      spool
	control    *control
	config     *slotConfig
	holder     holder
	generation int64

	spoolDirs
	reportFD     int      // descriptor
	env          []string // common to all jobs
	progress     string
	cookiePrefix string // common prefix of the cookies of our jobs

	startedAt time.Duration // uptime at the start of the job

	shardID string // name of the directory that shardFD is open on
	shardFD int

	leftBehind map[int]uint64 // pid: start of children that earlier jobs left behind
	watch      watch
	tokens     tokens
	pending    pending
	buf        []byte // for reading specs
	line       []byte // for writing reports

	claim        claim
	cores        coreClaim
	oom          oomScore
	processes    processLimits
	scopes       scopes
	diskCheck    single        // runs checks for full disks
	storeTimeout time.Duration // see limits
	dataRemoved  bool          // the spool and the attempts were removed, so there is nothing left to do
	stopCheck    single        // runs looks for stop files
}

// slotMain is `__slot SPOOL INDEX GENERATION`. It returns when the supervisor has nothing left to
// do.
func slotMain(args []string, limits limits) error {
	if len(args) != 3 {
		return errors.New("this is started by the helper, not by people")
	}
	index, err1 := strconv.Atoi(args[1])
	generation, err2 := strconv.ParseInt(args[2], 10, 64)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%q %q are not a slot and a generation", args[1], args[2])
	}
	s := &slot{spool: spool{args[0]}, generation: generation, shardFD: -1, leftBehind: map[int]uint64{},
		storeTimeout: limits.storeTimeout}
	if err := s.open(index); err != nil {
		return err
	}
	s.loop()
	return nil
}

// open initializes the process.
func (s *slot) open(index int) error {
	keepDescriptors()
	// Keep the process small: there are many, and its size is the minimum of the peak memory that
	// is measured for jobs.
	debug.SetGCPercent(20)
	relaxTimers(supervisorSlack) // while there are few threads, because later ones inherit it
	reserveThreads(supervisorThreads)
	// Orphans of the job become our children, so that the tree can be found.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	os.WriteFile("/proc/self/comm", []byte(supervisorComm), 0)
	var err error
	if s.config, err = s.spool.readConfig(s.generation); err != nil {
		return err
	}
	guard(s.spool.dir)
	guard(s.config.Dir)
	if s.config.Nice != 0 {
		niceAll(s.config.Nice)
	}
	if s.control, err = openControl(s.spool.dir); err != nil {
		return err
	}
	self, ok := readProc(os.Getpid())
	if !ok {
		return errNoProc
	}
	s.holder = holder{index, self.pid, self.start}
	if s.spoolDirs, err = s.spool.openDirs(); err != nil {
		return err
	}
	if s.reportFD, err = openFIFO(s.spool.path(fileReports)); err != nil {
		return fmt.Errorf("opening %s: %w", s.spool.path(fileReports), err)
	}
	s.tokens = openTokens(wakeFD)
	s.control.serving(index).Store(int64(s.holder.PID))
	s.cookiePrefix = cookie(s.config.Run, s.config.Host, "")
	s.progress = s.spool.path(dirProgress) + "/"
	s.env = baseEnv(os.Environ(), s.config, index)
	s.buf = make([]byte, 16<<10)
	s.oom = openOOM()
	s.processes = openProcessLimits()
	s.watch.slot = s
	// Catch these signals: jobs would inherit that they are ignored.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	go s.watch.listen(signals)
	return nil
}

// niceAll sets the priority of every thread: on Linux it belongs to the thread, and a job inherits
// it from the thread that starts it.
func niceAll(nice int) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
		}
	}
}

// loop takes tokens until no more will come or this supervisor should leave.
func (s *slot) loop() {
	for !s.dataRemoved && !s.isSuperfluous() {
		s.reap()
		generation, id, ok := s.nextToken()
		if !ok || id.Job == 0 {
			break // the helper is gone and the pipe is empty, or we are asked to leave
		}
		s.awaitSlots(1, s.control.lease())
		if s.isSuperfluous() {
			// The spec stays where it is, and another supervisor gets a token.
			s.report(&report{Kind: repReturned, Attempt: id})
			break
		}
		if s.isStopRequested() {
			break // the spec stays where it is, for the next helper
		}
		before := s.pending.await(s)
		s.run(generation, id)
		if s.pending.report.Load() == before { // no start has sent the pending report
			s.flushPending()
		}
	}
	s.flushPending()
	s.waitForDescendants()
}

// isSuperfluous reports whether this supervisor should take nothing more.
func (s *slot) isSuperfluous() bool {
	return int64(s.holder.Slot) > s.control.word(ctlLimit).Load() ||
		s.generation != s.control.word(ctlGeneration).Load() || s.control.word(ctlEnd).Load() != 0
}

// waitForDescendants waits for all descendants: only their subreaper can find all of them.
func (s *slot) waitForDescendants() {
	s.claim.remove()
	s.cores.file.remove()
	s.control.serving(s.holder.Slot).CompareAndSwap(int64(s.holder.PID), 0)
	placeKeptFiles(s.spool, s.config, s.holder)
	s.watch.markLeaving()
	for s.control.word(ctlEnd).Load() == 0 {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
			return // no child is left
		}
	}
}

// reap collects ended children of earlier jobs.
func (s *slot) reap() {
	for len(s.leftBehind) > 0 {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.ECHILD {
			clear(s.leftBehind)
		}
		if err != nil || pid <= 0 {
			return
		}
		delete(s.leftBehind, pid)
	}
}

// report writes reports for the helper. It does not block: reports may be lost.
func (s *slot) report(rs ...*report) {
	s.line = s.reportIn(s.line[:0], rs...)
}

// reportIn is report with the caller's buffer, which it returns.
func (s *slot) reportIn(line []byte, rs ...*report) []byte {
	for _, r := range rs {
		r.By = s.holder
		if r.Why != "" && s.isAlone() {
			fmt.Fprintln(os.Stderr, r.Why) // the next helper reports the log
		}
		have := len(line)
		line = r.append(line)
		if len(line) > maxReport && have > 0 { // too long for one write
			unix.Write(s.reportFD, line[:have])
			line = append(line[:0], line[have:]...)
		}
	}
	if len(line) <= maxReport {
		unix.Write(s.reportFD, line)
	}
	return line
}

// isAlone reports whether the helper that started this supervisor is gone. Messages to people then
// go to the log, standard error, because the FIFO loses them when the last supervisor leaves.
func (s *slot) isAlone() bool {
	fds := []unix.PollFd{{Fd: int32(s.tokens.fd)}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLHUP != 0
}

// shard opens the directory of a job's attempt files, creating it if necessary. The last one stays
// open.
func (s *slot) shard(id jobs.ID) (int, error) {
	name := jobs.ShardDir(id)
	if name == s.shardID {
		return s.shardFD, nil
	}
	s.forgetShard()
	dir := filepath.Join(s.config.Dir, "attempts", name)
	fd, err := openDirBelow(s.config.Dir, "attempts", name)
	if errors.Is(err, unix.ENOENT) {
		if err := makeDirs(dir); err != nil {
			return -1, err
		}
		fd, err = openDirBelow(s.config.Dir, "attempts", name)
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

// pendingReport is the report of an attempt whose sentinel was written. It is sent after the start
// of the next job, if there is one: the slot is busy sooner, and one write sends both reports.
type pendingReport struct {
	a    *attempt
	exit *report
}

// pending holds the pending report. The loop sends it, or a timer if the next start takes long
// because a file system hangs. Whoever removes it from report sends it.
type pending struct {
	report atomic.Pointer[pendingReport]
	armed  atomic.Bool
}

// pendingInterval is the interval of the timer, which sends a report that it sees twice.
const pendingInterval = 300 * time.Millisecond

// await is called before the start of a job. It makes sure that the pending report is sent soon in
// any case, and returns it. Under a stream of short jobs the timer is armed only a few times a
// second.
func (d *pending) await(s *slot) *pendingReport {
	o := d.report.Load()
	if o != nil && d.armed.CompareAndSwap(false, true) {
		time.AfterFunc(pendingInterval, func() { d.sendOverdue(s, nil) })
	}
	return o
}

// sendOverdue sends the report that was pending at the last look, and arms the timer again if there
// is another one.
func (d *pending) sendOverdue(s *slot, last *pendingReport) {
	o := d.report.Load()
	if o != nil && o == last && d.report.CompareAndSwap(o, nil) {
		s.release(o.a)
		s.reportIn(nil, o.exit)
		o = nil
	}
	if o == nil {
		// From here on the next await arms the timer.
		d.armed.Store(false)
		o = d.report.Load()
		if o == nil || !d.armed.CompareAndSwap(false, true) {
			return
		}
	}
	time.AfterFunc(pendingInterval, func() { d.sendOverdue(s, o) })
}

// flushPending sends the pending report and releases its attempt.
func (s *slot) flushPending() {
	if o := s.pending.report.Swap(nil); o != nil {
		s.releaseAndReport(o.a, o.exit)
	}
}

// stopTimeout bounds the listing of the run directory.
var stopTimeout = 2 * time.Second // tests lengthen it

// isStopRequested reports whether a stop file in the run directory forbids new starts. It looks
// only if there is no helper, because otherwise the dispatcher handles stop files. A directory that
// does not respond within stopTimeout counts as having none.
func (s *slot) isStopRequested() bool {
	if s.config.RunDir == "" || !s.isAlone() {
		return false
	}
	var asked atomic.Bool
	s.stopCheck.tryRun(stopTimeout, func() {
		run := &rundir.Run{Dir: s.config.RunDir, Disk: rundir.WithCalls(s.config.RunDir, call)}
		names, _, err := run.StopFiles()
		asked.Store(err == nil && len(names) > 0)
	})
	return asked.Load()
}
