//go:build linux

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// heartbeatFileInterval is the interval at which the heartbeat file of a host is updated while jobs
// run.
const heartbeatFileInterval = 10 * time.Second

// watch handles timeouts, requests to stop, memory limits, and the heartbeat file while the loop
// waits for the job. It costs short jobs without a timeout nothing.
type watch struct {
	slot *slot

	mu        sync.Mutex
	current   *current    // nil: no job runs
	leaving   bool        // the loop is over
	earlyStop bool        // a stop request came while no job ran, so it may be for the next job
	ticking   bool        // the timer for the heartbeat file is armed
	deadline  *time.Timer // timeout of the current job
	warning   *time.Timer // warning before the timeout
	freedAt   uint32      // number of garbage collections when unused memory was last released

	heartbeat single // writes the heartbeat file; NFS may hang
}

// current is the running job.
type current struct {
	id              jobs.AttemptID
	pid             int
	leftBehind      map[int]uint64
	memoryLimit     int64         // of its memory, in bytes; 0: none
	usedMemory      int64         // memory in use when it exceeded the limit
	suspendedBefore time.Duration // for how long jobs had been suspended when it began
	ticks           int           // calls of tick since it began
	why             endCause      // the first cause
	treeEnded       chan struct{} // closed when its tree has been ended; nil: not requested
}

// endCause is the reason why the supervisor ends a job.
type endCause uint8

const (
	endNone    endCause = iota
	endTimeout          // its timeout has passed
	endRequest          // the dispatcher requested it
	endMemory           // it exceeded its memory limit
)

// begin is called by the loop when a job has started.
func (w *watch) begin(id jobs.AttemptID, pid int, timeout time.Duration, limit int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &current{id: id, pid: pid, memoryLimit: limit}
	c.suspendedBefore, _ = w.slot.control.suspended()
	w.current = c
	if len(w.slot.leftBehind) > 0 {
		c.leftBehind = maps.Clone(w.slot.leftBehind)
	}
	if timeout > 0 {
		w.deadline = w.afterLocked(c, timeout, func() { w.stop(c, endTimeout) })
		if cfg := w.slot.config; cfg.Signal > 0 && cfg.WarnBefore < timeout {
			w.warning = w.afterLocked(c, timeout-cfg.WarnBefore, func() { w.warn(c) })
		}
	}
	if limit > 0 {
		time.AfterFunc(memoryInterval, func() { w.checkMemory(c) })
	}
	if !w.ticking {
		w.ticking = true
		time.AfterFunc(heartbeatFileInterval, w.tick)
	}
	if w.earlyStop {
		w.earlyStop = false
		go w.checkStopRequests()
	}
}

// jobTimer starts the timer of a job's timeout. Tests replace it.
var jobTimer = time.AfterFunc

// afterLocked calls do when c has run for d, not counting time in which jobs were suspended.
func (w *watch) afterLocked(c *current, d time.Duration, do func()) *time.Timer {
	credit := c.suspendedBefore
	var timer *time.Timer
	timer = jobTimer(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		total, to := w.slot.control.suspended()
		more := total - credit
		if to > uptime() { // still suspended
			more = max(more, time.Second)
		}
		switch {
		case w.current != c:
		case more > 0:
			credit += more
			timer.Reset(more)
		default:
			go do()
		}
	})
	return timer
}

// end is called by the loop when the job's shell has ended. If the tree is being ended, it waits
// for that. used is the memory in use when the job exceeded its limit.
func (w *watch) end() (why endCause, used int64, suspended time.Duration) {
	w.mu.Lock()
	c := w.current
	w.current = nil
	if w.deadline != nil {
		w.deadline.Stop()
		w.deadline = nil
		if w.warning != nil {
			w.warning.Stop()
			w.warning = nil
		}
	}
	total, _ := w.slot.control.suspended()
	suspended = max(0, total-c.suspendedBefore)
	ending := c.treeEnded
	why, used = c.why, c.usedMemory
	w.mu.Unlock()
	if ending != nil {
		<-ending
	}
	return why, used, suspended
}

// markLeaving records that the loop is over and runs no further job.
func (w *watch) markLeaving() {
	w.mu.Lock()
	w.leaving = true
	w.mu.Unlock()
}

// listen handles the helper's signal, which means that stop/ has changed or the run has ended.
func (w *watch) listen(signals <-chan os.Signal) {
	for s := range signals {
		if s != unix.SIGUSR1 {
			continue // for example from a terminal that closes; the job decides for itself
		}
		w.mu.Lock()
		leaving := w.leaving
		w.earlyStop = w.current == nil
		w.mu.Unlock()
		if leaving && w.slot.control.word(ctlEnd).Load() != 0 {
			os.Exit(0)
		}
		w.checkStopRequests()
	}
}

// checkStopRequests ends the current job if stop/ requests that.
func (w *watch) checkStopRequests() {
	w.mu.Lock()
	c := w.current
	w.mu.Unlock()
	if c == nil {
		return
	}
	switch _, err := stat(w.slot.spool.path(dirStop, c.id.String())); {
	case err == nil:
		w.stop(c, endRequest)
	case !errors.Is(err, unix.ENOENT): // unknown
		time.AfterFunc(retryPauses[1], w.checkStopRequests)
	}
}

// warn sends the warning signal to the tree of c, unless it has ended or is being ended.
func (w *watch) warn(c *current) {
	w.mu.Lock()
	runs := w.current == c && c.treeEnded == nil
	w.mu.Unlock()
	if runs {
		sendWarning(w.tree(c)(scanOwn()), w.slot.config.Signal)
	}
}

// stop ends the tree of c, unless it has ended or is being ended.
func (w *watch) stop(c *current, why endCause) {
	w.mu.Lock()
	if w.current != c {
		w.mu.Unlock()
		return
	}
	if c.why == endNone {
		c.why = why
	}
	if c.treeEnded != nil {
		w.mu.Unlock()
		return
	}
	c.treeEnded = make(chan struct{})
	w.mu.Unlock()
	grace := w.slot.config.Grace
	if why == endMemory {
		grace = 0 // it may grow in the meantime
	}
	go func() {
		defer close(c.treeEnded)
		e := &ending{w.tree(c), w.childOf(c), func() bool { return w.slot.isElsewhere(c.id) }}
		if left := e.run(grace); len(left) > 0 {
			line := (&report{Kind: repTrouble, Attempt: c.id, By: w.slot.holder,
				Why: fmt.Sprintf("%s could not be ended: these processes cannot be killed: %s", c.id,
					listProcs(left))}).append(nil)
			unix.Write(w.slot.reportFD, line)
		}
	}()
}

// childOf returns a function that reports whether a process is our child and belongs to c: it has
// its cookie, or it has none (a process can clear its environment) and was not left by an earlier
// job.
func (w *watch) childOf(c *current) func(p proc) bool {
	mine := w.slot.cookiePrefix + c.id.String()
	return func(p proc) bool {
		if p.ppid != w.slot.holder.PID || c.leftBehind[p.pid] == p.start && p.start != 0 {
			return false
		}
		mark := cookieOf(p.pid)
		return mark == mine || mark == ""
	}
}

// tree chooses all processes of c.
func (w *watch) tree(c *current) chooser {
	return jobTree(w.slot.cookiePrefix+c.id.String(), groupOf(c.pid, w.slot.holder),
		map[int]bool{w.slot.holder.PID: true}, w.childOf(c))
}

// tick updates the heartbeat file while a job runs. It continues jobs that nobody else is left to
// continue, and releases memory when a job turns out to be long.
func (w *watch) tick() {
	w.mu.Lock()
	running, isLong := w.current != nil, false
	if running {
		w.current.ticks++
		isLong = w.current.ticks == 2
	}
	w.ticking = running
	w.mu.Unlock()
	if !running {
		return
	}
	if isLong {
		w.releaseMemory() // before the next tick can begin, which uses freedAt, too
	}
	time.AfterFunc(heartbeatFileInterval, w.tick)
	if s := w.slot; s.control.isSuspendOverdue() {
		s.spool.resume(s.control, s.cookiePrefix)
	}
	w.heartbeat.tryRun(0, w.writeHeartbeatFile)
}

// releaseMemory returns unused memory to the kernel, of which short jobs leave a third of the process.
// That takes a garbage collection, which needs memory of its own, so a process that has had none
// since the last time is left as it is.
func (w *watch) releaseMemory() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NumGC == w.freedAt {
		return
	}
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m)
	w.freedAt = m.NumGC
}

// writeHeartbeatFile writes the time into the host's heartbeat file, once per heartbeatFileInterval
// for all supervisors of the host.
func (w *watch) writeHeartbeatFile() {
	last := w.slot.control.word(ctlHeartbeat)
	now, was := int64(uptime()), last.Load()
	if now-was < int64(heartbeatFileInterval*9/10) || !last.CompareAndSwap(was, now) {
		return
	}
	path := attempts.HeartbeatFile(w.slot.config.Dir, w.slot.config.Host)
	fd, err := openOwn(path, 0)
	if err == nil {
		writeAndClose(fd, path, fmt.Appendf(nil, "%019d %s\n", wallClock(), w.slot.config.Boot))
	}
}

// A job with a memory limit (mem=) is ended when its processes exceed it together. If the user's
// systemd offers scopes, the kernel enforces the limit at every instant. Otherwise the supervisor
// sums the memory of the processes at intervals.

const (
	memoryInterval = 500 * time.Millisecond
	// memoryCost bounds the CPU time of the sums: the pause before the next one is so many times
	// the CPU time of the last one. Its duration says nothing, because the supervisor has a low
	// priority and processes may hang.
	memoryCost = 200
)

// checkMemory ends c if it exceeds its memory limit. Otherwise it checks again later, until c has
// ended.
func (w *watch) checkMemory(c *current) {
	w.mu.Lock()
	over := w.current != c || c.treeEnded != nil
	w.mu.Unlock()
	if over {
		return
	}
	var used int64
	pause := memoryPause(func() { used = w.memoryOf(c) })
	if used > c.memoryLimit {
		w.mu.Lock()
		c.usedMemory = used
		w.mu.Unlock()
		w.stop(c, endMemory)
		return
	}
	time.AfterFunc(pause, func() { w.checkMemory(c) })
}

// memoryPause calls sum and returns the pause before the next sum.
func memoryPause(sum func()) time.Duration {
	before := cpuTime()
	sum()
	return max(memoryInterval, memoryCost*(cpuTime()-before))
}

// memoryOf returns the memory of the processes of c. The sum of their resident sizes is cheap but
// counts shared pages several times. If it exceeds the limit, the proportional sizes are summed.
func (w *watch) memoryOf(c *current) (used int64) {
	t := scanOwn()
	for pid, start := range c.leftBehind {
		if t[pid].start == start { // left by an earlier job
			delete(t, pid)
		}
	}
	pids := t.descendants(w.slot.holder.PID)
	for _, pid := range pids {
		used += t[pid].rss
	}
	if used <= c.memoryLimit {
		return used
	}
	used = 0
	hungProcs.each(pids, func(pid int) func() {
		n := proportionalMemory(pid)
		return func() { used += n }
	})
	return used
}

// proportionalMemory returns the memory of a process with its part of shared pages (Pss). If the
// kernel does not report that, shared pages do not count.
func proportionalMemory(pid int) int64 {
	if _, rest, ok := bytes.Cut(procFile(pid, "smaps_rollup"), []byte("\nPss:")); ok {
		return int64(parseNumber(bytes.TrimLeft(rest, " "))) << 10
	}
	if w := bytes.Fields(procFile(pid, "statm")); len(w) > 2 {
		return max(0, int64(parseNumber(w[1]))-int64(parseNumber(w[2]))) * int64(pageSize)
	}
	return 0
}

// setMemoryEnd sets Memory in the outcome of a job that was ended for its memory.
func (s *slot) setMemoryEnd(limit int64, why endCause, used int64, o *jobs.Outcome) {
	switch {
	case why == endMemory:
		o.Memory, o.MaxRSSBytes = jobs.MemoryLimit, max(o.MaxRSSBytes, used)
	case why != endNone || o.Signal != "SIGKILL" && o.Exit != 128+9 || !s.oom.hasKilled():
	case limit > 0 && s.scopes.path != "":
		o.Memory, o.MaxRSSBytes = jobs.MemoryLimit, max(o.MaxRSSBytes, limit)
	default:
		o.Memory = jobs.OutOfMemory
	}
}

// scopes starts jobs in scopes of the user's systemd.
type scopes struct {
	searched bool
	path     string // of systemd-run; "": scopes are not offered
}

// scopeTimeout bounds the questions to the user's systemd.
const scopeTimeout = 10 * time.Second

// command returns the command to put before a job's shell in order to limit its memory, or nil if
// scopes are not offered. systemd-run replaces itself by the shell, so the process stays our child.
func (s *scopes) command(limit int64) []string {
	if !s.searched {
		s.searched = true
		s.path = findScopes()
	}
	if s.path == "" {
		return nil
	}
	return append([]string{s.path}, scopeArgs(limit)...)
}

// scopeArgs returns the arguments of systemd-run. The kernel ends all processes of the scope when
// they exceed the limit. Swapping would only delay that.
func scopeArgs(limit int64) []string {
	return []string{"--user", "--scope", "--quiet", "--collect", "-p", "MemoryMax=" + strconv.FormatInt(limit, 10),
		"-p", "MemorySwapMax=0", "-p", "OOMPolicy=kill", "--"}
}

// findScopes returns the path of systemd-run if scopes can be used. They can not without lingering,
// because the user's systemd would then end, with all jobs, with the user's last session. The limit
// is read back, because without cgroup v2 it has no effect.
func findScopes() string {
	path, err := exec.LookPath("systemd-run")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopeTimeout)
	defer cancel()
	if !isLingering(ownUID) {
		return ""
	}
	const limit = 64 << 20
	show := `IFS=: read -r _ _ group < /proc/self/cgroup && cat "/sys/fs/cgroup$group/memory.max"`
	got, err := exec.CommandContext(ctx, path, append(scopeArgs(limit), "/bin/sh", "-c", show)...).Output()
	if err != nil || string(bytes.TrimSpace(got)) != fmt.Sprint(limit) {
		return ""
	}
	return path
}

// oomShare raises the oom_score_adj of jobs, as if they held half of the machine's memory in
// addition. So the kernel ends a job before its supervisor and the programs of other people, but
// not before a program that holds nearly all of the memory. Raising the score needs no privilege.
const oomShare = 500

const maxOOM = 1000 // proc(5)

// oomScore controls the oom_score_adj of this process and of the jobs that it starts.
type oomScore struct {
	fd       int // -1: the score cannot be set
	own, job []byte
	kills    uint64        // number on this machine at countAt
	countAt  time.Duration // boot clock; 0: never
}

// openOOM returns the score of this process. Jobs run even if it cannot be set.
func openOOM() oomScore {
	const path = "/proc/self/oom_score_adj"
	o := oomScore{fd: -1}
	own, err := os.ReadFile(path)
	o.own = bytes.TrimSpace(own)
	n, err2 := strconv.Atoi(string(o.own))
	if err != nil || err2 != nil || n >= maxOOM {
		return o
	}
	o.job = strconv.AppendInt(nil, int64(min(n+oomShare, maxOOM)), 10)
	if o.fd, err = unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		o.fd = -1
	}
	return o
}

// oomFresh is the maximum age of the number of kills when a job begins.
const oomFresh = 10 * time.Second

// begin counts the processes that the kernel has ended because memory ran out. It is called when a
// job begins, and counts again only if the last count is old.
func (o *oomScore) begin() {
	if now := uptime(); o.countAt == 0 || now-o.countAt > oomFresh {
		o.kills, o.countAt = oomKills(), now
	}
}

// hasKilled reports whether the kernel has ended processes for that reason since begin.
func (o *oomScore) hasKilled() bool {
	before := o.kills
	o.kills, o.countAt = oomKills(), uptime()
	return o.kills > before
}

var vmstatFile = "/proc/vmstat" // tests replace it

// oomKills returns the number of such kills on this machine. It is 0 on kernels older than 4.13.
func oomKills() uint64 {
	_, rest, _ := bytes.Cut(readProcFile(vmstatFile), []byte("\noom_kill "))
	return parseNumber(rest)
}

// raise raises the score of this process, and thus of children that it starts before withdraw.
// Children have the score from their first instruction on.
func (o *oomScore) raise() {
	if o.fd >= 0 {
		unix.Pwrite(o.fd, o.job, 0)
	}
}

func (o *oomScore) restore() {
	if o.fd >= 0 {
		unix.Pwrite(o.fd, o.own, 0)
	}
}
