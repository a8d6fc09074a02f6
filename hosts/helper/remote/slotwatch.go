//go:build linux

package remote

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// beatEvery is how often a host's beat file is touched while it runs jobs.
const beatEvery = 10 * time.Second

// watch looks after the running job from beside the loop, which is blocked
// waiting for it: timeout, requests to stop, the beat file. Short jobs without a
// timeout cost it nothing.
type watch struct {
	slot *slot

	mu       sync.Mutex
	cur      *current    // nil: no job runs
	leaving  bool        // the loop is over
	asked    bool        // a stop came in when no job ran: it may be for the next
	ticking  bool        // the timer of the beat is armed
	deadline *time.Timer // of the current job's timeout
	warning  *time.Timer // before that

	touching atomic.Bool // the beat file is being written; NFS may hang
}

// current is the running job.
type current struct {
	id     jobs.AttemptID
	pid    int
	left   map[int]uint64
	limit  int64         // of its memory, in bytes; 0: none
	used   int64         // when it exceeded the limit
	held   time.Duration // for how long jobs had been suspended when it began
	why    endCause      // the first
	ending chan struct{} // closed when its tree has been ended; nil: not asked to
}

// endCause is why we end a job.
type endCause uint8

const (
	endNone    endCause = iota
	endTimeout          // its timeout has passed
	endRequest          // the dispatcher asked
	endMemory           // it exceeded its memory limit
)

// begin is called by the loop when a job has started.
func (w *watch) begin(id jobs.AttemptID, pid int, timeout time.Duration, limit int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &current{id: id, pid: pid, limit: limit}
	c.held, _ = w.slot.ctl.suspended()
	w.cur = c
	if len(w.slot.left) > 0 {
		c.left = maps.Clone(w.slot.left)
	}
	if timeout > 0 {
		w.deadline = w.afterLocked(c, timeout, func() { w.stop(c, endTimeout) })
		if cfg := w.slot.cfg; cfg.Signal > 0 && cfg.WarnBefore < timeout {
			w.warning = w.afterLocked(c, timeout-cfg.WarnBefore, func() { w.warn(c) })
		}
	}
	if limit > 0 {
		time.AfterFunc(memoryEvery, func() { w.checkMemory(c) })
	}
	if !w.ticking {
		w.ticking = true
		time.AfterFunc(beatEvery, w.tick)
	}
	if w.asked {
		w.asked = false
		go w.look()
	}
}

// afterLocked calls do when c has run for d. Time in which jobs were suspended does not count.
func (w *watch) afterLocked(c *current, d time.Duration, do func()) *time.Timer {
	credit := c.held
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		total, to := w.slot.ctl.suspended()
		more := total - credit
		if to > uptime() { // the rest is not known yet
			more = max(more, time.Second)
		}
		switch {
		case w.cur != c:
		case more > 0:
			credit += more
			timer.Reset(more)
		default:
			go do()
		}
	})
	return timer
}

// end is called by the loop when the job's shell has ended. It waits until a
// tree that is being ended has ended. used is what the job used if it exceeded its
// memory limit.
func (w *watch) end() (why endCause, used int64, suspended time.Duration) {
	w.mu.Lock()
	c := w.cur
	w.cur = nil
	if w.deadline != nil {
		w.deadline.Stop()
		w.deadline = nil
		if w.warning != nil {
			w.warning.Stop()
			w.warning = nil
		}
	}
	total, _ := w.slot.ctl.suspended()
	suspended = max(0, total-c.held)
	ending := c.ending
	why, used = c.why, c.used
	w.mu.Unlock()
	if ending != nil {
		<-ending
	}
	if why == endRequest {
		again(func() error { return remove(w.slot.spool.path(dirStop, c.id.String())) })
	}
	return why, used, suspended
}

// idle is called by the loop when it will run no further job.
func (w *watch) idle() {
	w.mu.Lock()
	w.leaving = true
	w.mu.Unlock()
}

// listen takes the helper's signal: look into stop/, or see that the run is over.
func (w *watch) listen(signals <-chan os.Signal) {
	for s := range signals {
		if s != unix.SIGUSR1 {
			continue // a terminal that closed, a polite shutdown: the job decides for itself
		}
		w.mu.Lock()
		leaving := w.leaving
		w.asked = w.cur == nil
		w.mu.Unlock()
		if leaving && w.slot.ctl.at(ctlEnd).Load() != 0 {
			os.Exit(0)
		}
		w.look()
	}
}

// look ends the current job if the helper asks for it.
func (w *watch) look() {
	w.mu.Lock()
	c := w.cur
	w.mu.Unlock()
	if c == nil {
		return
	}
	switch _, err := stat(w.slot.spool.path(dirStop, c.id.String())); {
	case err == nil:
		w.stop(c, endRequest)
	case !errors.Is(err, unix.ENOENT): // whether we are asked is not known yet
		time.AfterFunc(pauses[1], w.look)
	}
}

// warn sends the warning signal to the tree of c, unless it is over or being ended.
func (w *watch) warn(c *current) {
	w.mu.Lock()
	runs := w.cur == c && c.ending == nil
	w.mu.Unlock()
	if runs {
		warn(w.tree(c), w.slot.cfg.Signal)
	}
}

// stop ends the tree of c, unless it is over or being ended already.
func (w *watch) stop(c *current, why endCause) {
	w.mu.Lock()
	if w.cur != c {
		w.mu.Unlock()
		return
	}
	if c.why == endNone {
		c.why = why
	}
	if c.ending != nil {
		w.mu.Unlock()
		return
	}
	c.ending = make(chan struct{})
	w.mu.Unlock()
	grace := w.slot.cfg.Grace
	if why == endMemory {
		grace = 0 // it may grow further meanwhile
	}
	go func() {
		defer close(c.ending)
		if left := endChasing(w.tree(c), w.child(c), grace); len(left) > 0 {
			line := (&report{kind: repTrouble, attempt: c.id, by: w.slot.by,
				why: fmt.Sprintf("%s could not be ended, these processes do not die: %s", c.id, name(left))}).append(nil)
			unix.Write(w.slot.reports, line)
		}
	}()
}

// child says of a process whether it is a child of ours that belongs to c: one with
// its cookie, or one without any (a process can clear its environment) that was not
// left by an earlier job.
func (w *watch) child(c *current) func(p proc) bool {
	mine := w.slot.cookies + c.id.String()
	return func(p proc) bool {
		if p.ppid != w.slot.by.pid || c.left[p.pid] == p.start && p.start != 0 {
			return false
		}
		mark, _ := cookieOf(p.pid)
		return mark == mine || mark == ""
	}
}

// tree chooses all that belongs to c: by cookie, by process group, everything below
// such a process, and the children that fell to us.
func (w *watch) tree(c *current) choose {
	mine := w.slot.cookies + c.id.String()
	group := groupOf(c.pid, w.slot.by)
	spare := map[int]bool{w.slot.by.pid: true}
	child := w.child(c)
	return func(t table) []proc {
		var roots []int
		for pid, p := range t {
			if child(p) {
				roots = append(roots, pid)
			}
		}
		for _, p := range withCookie(func(s string) bool { return s == mine }, group, spare)(t) {
			roots = append(roots, p.pid)
		}
		return t.pick(append(t.under(roots...), roots...), spare)
	}
}

// tick touches the beat file while a job runs, and stops when none does. It continues jobs that
// nobody is left to continue.
func (w *watch) tick() {
	w.mu.Lock()
	running := w.cur != nil
	w.ticking = running
	w.mu.Unlock()
	if !running {
		return
	}
	time.AfterFunc(beatEvery, w.tick)
	if s := w.slot; s.ctl.overdue() {
		s.spool.resume(s.ctl, s.cookies)
	}
	w.touch()
}

// touch writes the time into the host's beat file, once in beatEvery for all
// supervisors of the host. It blocks only its own goroutine when NFS hangs.
func (w *watch) touch() {
	if !w.touching.CompareAndSwap(false, true) {
		return // the last one still hangs
	}
	defer w.touching.Store(false)
	last := w.slot.ctl.at(ctlBeat)
	now, was := int64(uptime()), last.Load()
	if now-was < int64(beatEvery*9/10) || !last.CompareAndSwap(was, now) {
		return
	}
	path := attempts.BeatFile(w.slot.cfg.Dir, w.slot.cfg.Host)
	fd, err := openat(unix.AT_FDCWD, path, unix.O_WRONLY|unix.O_CREAT, 0o600)
	if err == nil {
		finish(fd, path, fmt.Appendf(nil, "%019d %s\n", wall(), w.slot.cfg.Boot))
	}
}
