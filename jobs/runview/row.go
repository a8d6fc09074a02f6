package runview

import (
	"math"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// row is what sorting, filtering and counting need of a job: 48 bytes, for there may
// be a million.
type row struct {
	when     jobs.Stamp // running: since when (sent: when it was sent); Retry: until when; finished: its CPU time
	took     float32    // it is over: seconds that the attempt that counts has run
	seq      uint32     // number of its result, 0: none
	mem      uint32     // peak, KiB
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
	urgent uint8 = 1 << iota
	straggler
)

const (
	bySignal   = 0x200
	noProgress = math.MaxUint16
)

// change is a row as it is now, with what only the board's own lists can turn into
// numbers.
type change struct {
	id      jobs.ID
	spec    *jobs.Spec
	row     row
	host    string
	failed  bool // cause and last are those of a failure
	state   jobs.JobState
	reason  string
	outcome *jobs.Outcome
}

// phase says where a job stands, and which attempt that rests on, nil if none.
func (v *View) phase(id jobs.ID, j *jobs.Job) (Phase, *jobs.Attempt) {
	_, ending := v.table.Cancels[id]
	switch j.State {
	case jobs.Running:
		p, a := v.open(j)
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
		case v.waits(j) || len(j.Open()) > 0: // for other jobs, or until an attempt of an earlier round is over
			return Waits, last
		}
		return Queued, last
	case jobs.Succeeded:
		return Succeeded, results.Counted(j)
	case jobs.Failed:
		return Failed, results.Counted(j)
	case jobs.TimedOut:
		return TimedOut, results.Counted(j)
	case jobs.Cancelled:
		return Cancelled, results.Counted(j)
	}
	return Skipped, nil
}

// open is phase for a job with an attempt that may be alive: the newest that has
// started, or else the newest.
func (v *View) open(j *jobs.Job) (Phase, *jobs.Attempt) {
	var at *jobs.Attempt
	best := Handed
	for _, a := range j.Attempts {
		if !a.State.Open() {
			continue
		}
		if at == nil || at.State == jobs.AttemptLaunching || a.State == jobs.AttemptRunning {
			at = a
		}
		started, known := a.State == jobs.AttemptRunning, v.state != nil
		switch {
		case known && v.links[a.Host] && started:
			best = Running
		case best == Handed && (known && !v.links[a.Host] || !known && started):
			best = Away
		}
	}
	return best, at
}

// waits says whether a queued job waits for others.
func (v *View) waits(j *jobs.Job) bool {
	if j.Spec.Options == nil {
		return false
	}
	for _, dep := range j.Spec.After {
		if dep < 1 || int(dep) > v.table.NumJobs() || v.table.State(dep) != jobs.Succeeded {
			return true
		}
	}
	return false
}

// lastTry is the newest attempt of this round that has run, of a job that waits.
func lastTry(j *jobs.Job) *jobs.Attempt {
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		if a := j.Attempts[i]; a.Round == j.Round && !a.NeverRan() && !a.State.Open() {
			return a
		}
	}
	return nil
}

// triesOf is how many tries a job may have in all.
func (v *View) triesOf(j *jobs.Job) int {
	if j.Spec.Options != nil && j.Spec.Tries > 0 {
		return j.Spec.Tries
	}
	return v.tries()
}

// startOf is when an attempt started, on its host's clock as far as that can be right.
func (v *View) startOf(a *jobs.Attempt) jobs.Stamp {
	if a.Started == 0 {
		return 0
	}
	return min(max(a.Started, a.Launched), max(jobs.StampOf(v.now()), a.Launched))
}

// change makes the short row of a job. The result is valid as long as j is.
func (v *View) change(id jobs.ID, j *jobs.Job) change {
	p, a := v.phase(id, j)
	c := change{id: id, spec: j.Spec, state: j.State, reason: j.Reason, row: row{
		phase: p, priority: j.Priority, seq: uint32(min(j.Seq, math.MaxUint32)),
		attempts: clip(len(j.Attempts)), failures: clip(int(j.Failures)), progress: noProgress,
	}}
	if v.straggles(id, p) {
		c.row.flags |= straggler
	}
	if j.Urgent {
		c.row.flags |= urgent
	}
	if p == Retry {
		c.row.when = j.Retry
	}
	if a != nil {
		c.host = a.Host
		switch p {
		case Ending, Running, Away:
			c.row.when = v.startOf(a)
		case Handed:
			c.row.when = a.Launched
		}
		if o := a.Outcome; o != nil {
			c.outcome = o
			c.row.exit = exitOf(o)
			c.row.mem = uint32(min(o.MaxRSSBytes>>10, math.MaxUint32))
			if p.Terminal() && o.Started != 0 {
				c.row.took = float32(o.Elapsed().Seconds())
				c.row.when = jobs.Stamp(o.CPU)
			}
		}
	}
	switch {
	case p == Failed || p == TimedOut:
		c.failed = true
	case !p.Terminal() && j.Failures > 0:
		if f := lastTry(j); f != nil && f.Outcome != nil && !f.Outcome.OK() {
			c.failed, c.outcome, c.state, c.reason = true, f.Outcome, jobs.Failed, f.Reason
		}
	}
	return c
}

// straggles reports whether a job runs far longer than others of its queue.
func (v *View) straggles(id jobs.ID, p Phase) bool {
	return v.state != nil && runs(p) && v.state.Stragglers.Has(id)
}

func clip(n int) uint16 { return uint16(min(max(n, 0), math.MaxUint16)) }

// exitOf packs how a command ended.
func exitOf(o *jobs.Outcome) uint16 {
	switch {
	case o.Signal != "":
		if n := jobs.SignalNumber(o.Signal); n > 0 {
			return bySignal + uint16(n)
		}
		return 0
	case o.Error != "" && o.Exit == 0:
		return 0
	}
	return 1 + uint16(o.Exit&0xff)
}
