package runview

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results"
)

// A HostDetail covers an hour, or the time for which the host is known.
const (
	maxHistoryTime = time.Hour
	minHistoryTime = 5 * time.Minute
)

// HostDetail holds what a host was doing from Begin until Until. Until is the present, or the last
// known time of a run that nobody dispatches.
type HostDetail struct {
	Name    string
	Begin   time.Time
	Until   time.Time
	Samples []live.Sample // oldest first; some are older
	Runs    []SlotRun     // by Began; at most the newest maxSlotRuns
}

// SlotRun is an attempt in a slot of a host.
type SlotRun struct {
	Slot int // 1, 2, …; 0: unknown
	// Running, Ending, Suspended, Away, Succeeded, Failed, TimedOut, or Canceled; Retry: it was lost, or asked
	// to be run again later.
	Phase        Phase
	Began, Ended time.Time // Ended is HostDetail.Until if it has not ended
}

const (
	maxSlotRuns = 20_000
	// Results are numbered nearly in the order in which attempts end. After so many jobs whose
	// attempts all ended too early, no later ones follow.
	maxTooEarly = 100

	hostInterval   = 2 * time.Second  // between two HostDetails of a host
	sampleInterval = 10 * time.Second // between reads of its samples
	hostTimeout    = 15 * time.Second // after the last request for it, no samples are read
)

// hostHistory is the host in the last Query, and what has been read about it.
type hostHistory struct {
	name    string
	askedAt time.Time
	readAt  time.Time // zero: not yet
	samples []live.Sample
	detail  *HostDetail // nil: none was made since the samples were read
	madeAt  time.Time
}

// hostDetail returns the history of a host. Its samples may follow in a later version. mu is held.
func (v *View) hostDetail(name string) *HostDetail {
	now := time.Now()
	h := &v.host
	if h.name != name {
		*h = hostHistory{name: name}
	}
	h.askedAt = now
	if h.readAt.IsZero() {
		v.pollSoon()
	}
	if h.detail == nil || now.Sub(h.madeAt) >= hostInterval {
		h.detail, h.madeAt = v.newHostDetail(name, h.samples), now
	}
	return h.detail
}

// hostToRead returns the host whose samples must be read, or "". mu is held.
func (v *View) hostToRead(now time.Time) string {
	if h := &v.host; now.Sub(h.askedAt) < hostTimeout && (h.readAt.IsZero() || now.Sub(h.readAt) >= sampleInterval) {
		return h.name
	}
	return ""
}

// setSamples sets the samples of a host. mu is held.
func (v *View) setSamples(name string, list []live.Sample, now time.Time) {
	h := &v.host
	if name == "" || h.name != name {
		return
	}
	h.readAt = now
	if n := len(list); n > 0 && (len(h.samples) == 0 || !list[n-1].At.Equal(h.samples[len(h.samples)-1].At)) {
		h.samples, h.detail = list, nil
		v.changed()
	}
}

func (v *View) newHostDetail(name string, samples []live.Sample) *HostDetail {
	d := &HostDetail{Name: name, Until: v.now(), Samples: samples}
	byResult := v.rowsByResult()
	if !v.facts.dispatched {
		d.Until = v.lastKnown(byResult, samples)
	}
	begin := d.Until.Add(-maxHistoryTime)
	read, tooEarly := 0, 0
	add := func(id jobs.ID) {
		r := &v.rows[id-1]
		if v.names.Values[r.host] != name && r.attempts < 2 {
			return
		}
		read++
		j := v.reader.Job(v.table, id)
		if j == nil {
			return
		}
		isLate := false // also on another host
		for i, a := range j.Attempts {
			x, ok := v.slotRun(j, i, d.Until)
			if !ok || !x.Ended.After(begin) {
				continue
			}
			isLate = true
			if a.Host == name {
				d.Runs = append(d.Runs, x)
			}
		}
		tooEarly++
		if isLate {
			tooEarly = 0
		}
	}
	for i := range v.rows {
		if r := &v.rows[i]; r.attempts > 0 && !r.phase.Terminal() && read < maxSlotRuns {
			add(jobs.ID(i + 1))
		}
	}
	tooEarly = 0
	for i := len(byResult) - 1; i >= 0 && read < maxSlotRuns && tooEarly < maxTooEarly; i-- {
		add(jobs.ID(byResult[i]))
	}
	slices.SortStableFunc(d.Runs, func(a, b SlotRun) int { return a.Began.Compare(b.Began) })
	d.Begin = d.Until.Add(-minHistoryTime)
	if len(d.Runs) > 0 && d.Runs[0].Began.Before(d.Begin) {
		d.Begin = d.Runs[0].Began
	}
	if len(samples) > 0 && samples[0].At.Before(d.Begin) {
		d.Begin = samples[0].At
	}
	if d.Begin.Before(begin) {
		d.Begin = begin
	}
	return d
}

// rowsByResult returns the finished jobs in the order of the numbers of their results.
func (v *View) rowsByResult() []uint32 {
	newest := uint32(0)
	for i := range v.rows {
		newest = max(newest, v.rows[i].seq)
	}
	list := make([]uint32, min(int64(newest), v.table.Seq)+1)
	for i := range v.rows {
		if r := &v.rows[i]; r.phase.Terminal() && r.seq > 0 && int(r.seq) < len(list) {
			list[r.seq] = uint32(i + 1)
		}
	}
	return slices.DeleteFunc(list, func(id uint32) bool { return id == 0 }) // numbers without a job
}

// lastKnown returns the last time that is known of a run that nobody dispatches.
func (v *View) lastKnown(byResult []uint32, samples []live.Sample) (at time.Time) {
	if n := len(samples); n > 0 {
		at = samples[n-1].At
	}
	for _, id := range slices.Backward(byResult) {
		if j := v.reader.Job(v.table, jobs.ID(id)); j != nil && len(j.Attempts) > 0 {
			if o := LastOutcome(j); o != nil && o.Ended.Time().After(at) {
				at = o.Ended.Time()
			}
			break
		}
	}
	return at
}

// slotRun describes an attempt. It returns false if the attempt is not known to have started.
func (v *View) slotRun(j *jobs.Job, i int, until time.Time) (x SlotRun, ok bool) {
	a, o := j.Attempts[i], j.Attempts[i].Outcome
	start := v.startOf(a)
	if o != nil {
		start = cmp.Or(o.Started, start)
	}
	if start == 0 || a.NeverRan() {
		return x, false
	}
	x = SlotRun{Slot: int(a.Slot), Began: start.Time()}
	switch {
	case a.State.Open():
		x.Phase, x.Ended = v.fleet.attemptPhase(a), until
		if _, ending := v.table.Cancels[j.Spec.ID]; ending {
			x.Phase = Ending
		}
		return x, true
	case a.State == jobs.AttemptSuperseded, a.State == jobs.AttemptCanceled:
		x.Phase = Canceled
	case a.State == jobs.AttemptLost, a.Postponed():
		x.Phase = Retry
	case o != nil && o.OK():
		x.Phase = Succeeded
	case o != nil && o.TimedOut:
		x.Phase = TimedOut
	default:
		x.Phase = Failed
	}
	end := start
	switch {
	case o != nil && o.Ended != 0:
		end = max(start, o.Ended)
	case i+1 < len(j.Attempts): // it was given up before the next one
		end = max(start, j.Attempts[i+1].Launched)
	}
	x.Ended = end.Time()
	return x, true
}

// fleet holds the phase of jobs that have started on each host that can be reached: Running or
// Suspended. It is nil if nobody dispatches the run.
type fleet map[string]Phase

// fleetOf returns the hosts of what the dispatcher published; nil: nobody dispatches the run.
func fleetOf(s *live.State) fleet {
	if s == nil {
		return nil
	}
	f := fleet{}
	for i := range s.Hosts {
		switch h := &s.Hosts[i]; {
		case h.Linked && h.Suspended > 0:
			f[h.Name] = Suspended
		case h.Linked:
			f[h.Name] = Running
		}
	}
	return f
}

// attemptPhase returns the phase of an attempt that may be alive: Running, Suspended, Away, or Sent.
func (f fleet) attemptPhase(a *jobs.Attempt) Phase {
	phase, isLinked := f[a.Host]
	started := a.State == jobs.AttemptRunning
	switch {
	case isLinked && started:
		return phase
	case !isLinked && (started || f != nil):
		return Away
	}
	return Sent
}

// jobPhase returns the phase of a job with attempts that may be alive, which is that of the one that
// makes the most progress.
func (f fleet) jobPhase(j *jobs.Job) Phase {
	best := Sent
	for _, a := range j.Open() {
		best = min(best, f.attemptPhase(a))
	}
	return best
}

// CountIdle counts the running jobs that do not run at the moment. s is what the dispatcher
// published; nil: nobody dispatches the run.
func CountIdle(t *jobs.Table, s *live.State) (n results.Idle) {
	f := fleetOf(s)
	for j := range t.RowsIn(jobs.Running) {
		switch {
		case OpenAttempt(j).State == jobs.AttemptLaunching:
			n.Sent++
		case f.isSuspended(t, j):
			n.Suspended++
		}
	}
	return n
}

// isSuspended reports whether a running job is suspended. One that is being canceled is not.
func (f fleet) isSuspended(t *jobs.Table, j *jobs.Job) bool {
	_, ending := t.Cancels[j.Spec.ID]
	return !ending && f.jobPhase(j) == Suspended
}

// SuspendedJobs returns a function that reports whether a running job is suspended. s is as in
// CountIdle.
func SuspendedJobs(t *jobs.Table, s *live.State) func(*jobs.Job) bool {
	f := fleetOf(s)
	return func(j *jobs.Job) bool { return f.isSuspended(t, j) }
}
