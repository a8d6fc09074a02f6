package runview

import (
	"cmp"
	"math"

	"dcs-tui/internal/heap"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
)

// list holds the short rows of all jobs, and their counts. View.mu guards it.
type list struct {
	rows []row // job id - 1
	// Returns a function like spec for another goroutine.
	specs      func() func(id uint32) *jobs.Spec
	spec       func(id uint32) *jobs.Spec    // valid until the next call
	options    jobs.Numbering[*jobs.Options] // distinct options of jobs
	names      jobs.Numbering[string]        // of hosts; 0: none
	edited     map[jobs.ID]bool              // jobs whose specification has changed since their rows were made
	phases     [Phases]int
	stragglers int
	sent       int
	edition    uint64 // grows with each change of a row
	generation int    // grows when all rows are remade

	runs      map[uint32]struct{} // jobs that run or are sent to a host
	retries   heap.Heap[retry]    // jobs that wait for their next try
	retriedAt jobs.Stamp          // when retries were last checked
	children  map[uint32][]uint32 // jobs by the job that they depend on
	stale     jobSet              // rows to remake
	fleet     fleet
	groups    groups
	dated     bool // some job has a deadline
	// Rank of the hardness by number of the options; 0: it has none. See rankHardness.
	hardness      []uint32
	numHardnesses int // options with a hardness
	known         vocabulary
}

func (l *list) init(declared []*metrics.Metric) {
	l.names.Number("")
	l.runs = map[uint32]struct{}{}
	l.edited = map[jobs.ID]bool{}
	l.children = map[uint32][]uint32{}
	l.known.metrics = nil
	for _, c := range declared {
		l.known.metrics = append(l.known.metrics, c.Name)
	}
}

// hostNumber returns the number of a host, or 0 if there are too many.
func (l *list) hostNumber(name string) uint16 {
	if n := l.names.Number(name); n <= math.MaxUint16 {
		return uint16(n)
	}
	return 0
}

// setRow stores a row.
func (l *list) setRow(c *rowUpdate) {
	i := int(c.id) - 1
	if i > len(l.rows) {
		return // update adds rows in order
	}
	fresh := i == len(l.rows)
	if fresh {
		l.rows = append(l.rows, row{phase: Phases})
		l.known.addParams(c.spec)
		l.updateDependents(c)
	}
	old := l.rows[i]
	c.row.host, c.row.options = l.hostNumber(c.host), uint32(l.options.Number(cmp.Or(c.spec.Options, jobs.NoOptions)))
	if c.failed {
		c.row.group = uint16(l.groups.causes.Number(c.failure))
	}
	if isRunningPhase(c.row.phase) && isRunningPhase(old.phase) && old.attempts == c.row.attempts {
		c.row.progress = old.progress
	}
	edited := l.edited[c.id]
	delete(l.edited, c.id)
	if c.row == old && !edited {
		if old.phase == Retry && old.when <= l.retriedAt { // the clock was set back
			l.retries.Push(retry{old.when, uint32(c.id)})
		}
		return
	}
	l.edition++
	if !fresh {
		l.count(uint32(c.id), &old, -1)
	}
	l.rows[i] = c.row
	l.count(uint32(c.id), &c.row, 1)
	if !fresh && old.phase != c.row.phase && (old.phase.Terminal() || c.row.phase.Terminal()) {
		for _, kid := range l.children[uint32(c.id)] {
			l.stale.add(jobs.ID(kid))
		}
	}
}

func (l *list) updateDependents(c *rowUpdate) {
	l.dated = l.dated || c.spec.Options != nil && !c.spec.Deadline.IsZero()
	for dep := range c.spec.After().All() {
		if dep > 0 && dep != c.id {
			l.children[uint32(dep)] = append(l.children[uint32(dep)], uint32(c.id))
			if int(dep) <= len(l.rows) && l.rows[dep-1].phase.Terminal() && c.row.phase == Waits {
				l.stale.add(c.id)
			}
		}
	}
}

// count adds a row to the counts, or takes an old one away.
func (l *list) count(id uint32, r *row, by int) {
	l.phases[r.phase] += by
	if r.flags&straggler != 0 {
		l.stragglers += by
	}
	if r.flags&notStarted != 0 {
		l.sent += by
	}
	switch isOld := by < 0; {
	case isRunningPhase(r.phase) && isOld:
		delete(l.runs, id)
	case isRunningPhase(r.phase):
		l.runs[id] = struct{}{}
	case r.phase == Retry && !isOld:
		l.retries.Push(retry{r.when, id})
	}
}

// isRunningPhase reports whether a job runs or may start at any moment.
func isRunningPhase(p Phase) bool { return p <= Sent }

// markRunning marks all rows as stale that depend on the fleet.
func (l *list) markRunning() {
	for id := range l.runs {
		l.stale.add(jobs.ID(id))
	}
}

// retry is a job that waits for its next try until at.
type retry struct {
	at jobs.Stamp
	id uint32
}

// Before implements heap.Ordered.
func (r retry) Before(o retry) bool { return r.at < o.at }

// row holds what sorting, filtering, and counting need of a job. It has only 48 bytes because
// there may be a million.
type row struct {
	// Running: since when (sent: when it was sent); Retry: until when; finished: its CPU time.
	when     jobs.Stamp
	took     float32 // finished: run time of the attempt that counts, in seconds
	seq      uint32  // number of its result, 0: none
	mem      uint32  // peak, KiB
	priority int32
	options  uint32 // index into options
	attempts uint16
	failures uint16
	host     uint16 // index into names
	group    uint16 // index into groups; 0: none
	exit     uint16 // 0: not known, 1 + code, or bySignal + number
	progress uint16 // in 1/10,000; noProgress
	phase    Phase
	flags    uint8
}

const (
	urgent  uint8 = 1 << iota
	retried       // queued: it has failed in its round
	straggler
	notStarted // running: none of its attempts is known to have started
)

const (
	bySignal   = 0x200
	noProgress = math.MaxUint16
)

// rowUpdate is the new row of a job, before its texts are replaced by numbers.
type rowUpdate struct {
	id      jobs.ID
	spec    *jobs.Spec
	row     row
	host    string
	failed  bool // failure is counted among the failures by cause
	failure results.Failure
}

// phase returns the phase of a job and the attempt that determines it, or nil if none.
func (v *View) phase(id jobs.ID, j *jobs.Job) (Phase, *jobs.Attempt) {
	_, ending := v.table.Cancels[id]
	switch j.State {
	case jobs.Running:
		p, a := v.fleet.jobPhase(j), OpenAttempt(j)
		if ending || v.state != nil && v.state.Ending.Has(id) {
			p = Ending
		}
		return p, a
	case jobs.Queued:
		last := lastTry(j)
		switch {
		case ending:
			return Ending, last
		case j.Retry > jobs.StampOf(v.now()):
			return Retry, last
		case v.isWaiting(j) || len(j.Open()) > 0: // for other jobs, or for attempts of an earlier round
			return Waits, last
		}
		return Queued, last
	case jobs.Skipped:
		return Skipped, nil
	}
	return phaseOf[j.State], j.CountedAttempt()
}

// phaseOf holds the phase of jobs in each state, as far as the state alone determines it.
var phaseOf = [...]Phase{
	jobs.Queued: Queued, jobs.Running: Running, jobs.Succeeded: Succeeded, jobs.Failed: Failed,
	jobs.TimedOut: TimedOut, jobs.Canceled: Canceled, jobs.Skipped: Skipped,
}

// isWaiting reports whether a queued job waits for others.
func (v *View) isWaiting(j *jobs.Job) bool {
	for dep, on := range j.Spec.After().All() {
		if dep < 1 || int(dep) > v.table.NumJobs() || !on.IsMet(v.table.State(dep)) {
			return true
		}
	}
	return false
}

// lastTry returns the newest attempt of the current round that has run and is over, or nil if there
// is none.
func lastTry(j *jobs.Job) *jobs.Attempt {
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		if a := j.Attempts[i]; a.Round == j.Round && !a.NeverRan() && !a.State.Open() {
			return a
		}
	}
	return nil
}

// triesOf returns the maximum number of tries of a job.
func (v *View) triesOf(j *jobs.Job) int {
	if j.Spec.Options != nil && j.Spec.Tries > 0 {
		return j.Spec.Tries
	}
	return v.tries()
}

// startOf returns when an attempt started, by its host's clock, limited to what is possible by the
// dispatcher's clock.
func (v *View) startOf(a *jobs.Attempt) jobs.Stamp {
	if a.Started == 0 {
		return 0
	}
	return min(max(a.Started, a.Launched), max(jobs.StampOf(v.now()), a.Launched))
}

// change returns the short row of a job. The result is valid as long as j is.
func (v *View) change(id jobs.ID, j *jobs.Job) rowUpdate {
	p, a := v.phase(id, j)
	c := rowUpdate{id: id, spec: j.Spec, row: row{
		phase: p, priority: j.Priority, seq: uint32(min(j.Seq, math.MaxUint32)),
		attempts: clipUint16(len(j.Attempts)), failures: clipUint16(int(j.Failures)), progress: noProgress,
	}}
	if v.isStraggler(id, p) {
		c.row.flags |= straggler
	}
	if j.Urgent {
		c.row.flags |= urgent
	}
	if j.State == jobs.Running && OpenAttempt(j).State == jobs.AttemptLaunching {
		c.row.flags |= notStarted
	}
	switch {
	case p == Retry:
		c.row.when = j.Retry
	case p == Queued && j.HasFailed():
		c.row.flags |= retried
	}
	if a != nil {
		c.host = a.Host
		switch p {
		case Ending, Running, Suspended, Away:
			c.row.when = v.startOf(a)
		case Sent:
			c.row.when = a.Launched
		}
		if o := a.Outcome; o != nil {
			c.row.exit = exitOf(o)
			c.row.mem = uint32(min(o.MaxRSSBytes>>10, math.MaxUint32))
			if p.Terminal() && o.Started != 0 {
				c.row.took = float32(o.Elapsed().Seconds())
				c.row.when = jobs.Stamp(o.CPU)
			}
		}
	}
	c.failure, c.failed = failureOf(p, j, a)
	return c
}

// isStraggler reports whether a job runs much longer than others of its queue.
func (v *View) isStraggler(id jobs.ID, p Phase) bool {
	return v.state != nil && isRunningPhase(p) && v.state.Stragglers.Has(id)
}

func clipUint16(n int) uint16 { return uint16(min(max(n, 0), math.MaxUint16)) }

// exitOf encodes how a command ended.
func exitOf(o *jobs.Outcome) uint16 {
	switch {
	case o.Signal != "":
		if n := jobs.SignalNumber(o.Signal); n > 0 {
			return bySignal + uint16(n)
		}
		return 0
	case o.Error != "" && o.Exit == 0 && !o.Unreturned:
		return 0
	}
	return 1 + uint16(o.Exit&0xff)
}
