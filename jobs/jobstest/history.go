// Package jobstest generates seeded histories of runs for the tests of Fold and of the journal. The
// histories are legal by construction. The package is only for tests.
package jobstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// History returns n specifications and the records of a run with them. There are about steps
// records of every kind except jobs.KindEpoch, with retries, copies, lost hosts that return, and
// requeued rounds. The same seed gives the same history.
func History(seed uint64, n, steps int) ([]*jobs.Spec, []jobs.Record) {
	specs := Specs(n)
	h := &history{rng: rand.New(rand.NewPCG(seed, 42)), table: &jobs.Table{Specs: slices.Clone(specs)}}
	for range steps {
		h.step()
	}
	return specs, h.records
}

// Continue continues a recovered run. It returns steps records that are legal for the table, and
// changes the table. After damage, the numbers of attempts leave gaps.
func Continue(seed uint64, t *jobs.Table, steps int) []jobs.Record {
	h := &history{rng: rand.New(rand.NewPCG(seed, 43)), table: t}
	for range steps {
		if id := jobs.ID(1 + h.rng.IntN(len(t.Jobs)+1)); t.Damaged && h.chance(10) && int(id) <= len(t.Jobs) &&
			!t.Job(id).State.Terminal() {
			h.emit(jobs.Record{Kind: jobs.KindLaunching, Job: id, N: len(t.Job(id).Attempts) + 1 + h.rng.IntN(12),
				Host: "melon9"})
		}
		if len(t.Jobs) > 0 || len(t.Specs) > 0 {
			h.step()
		}
	}
	return h.records
}

// After returns dependencies on the success of jobs.
func After(ids ...jobs.ID) (after jobs.Dependencies) {
	for _, id := range ids {
		after.Add(id, jobs.AfterSuccess)
	}
	return after
}

// Specs returns n plain specifications.
func Specs(n int) []*jobs.Spec {
	specs := make([]*jobs.Spec, n)
	for i := range specs {
		specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Line: 2*i + 1, Command: fmt.Sprintf("echo %d", i),
			Options: jobs.NoOptions}
	}
	return specs
}

type history struct {
	rng     *rand.Rand
	table   *jobs.Table
	records []jobs.Record
	now     jobs.Stamp
}

func (h *history) emit(r jobs.Record) {
	h.now += jobs.Stamp(h.rng.Int64N(int64(time.Minute)))
	r.At = h.now
	if err := jobs.Fold(h.table, &r); err != nil {
		panic(fmt.Sprintf("jobstest: the history is not legal: %v (%+v)", err, r))
	}
	h.records = append(h.records, r)
}

func (h *history) chance(percent int) bool { return h.rng.IntN(100) < percent }

func (h *history) step() {
	t := h.table
	if rest := len(t.Specs) - len(t.Jobs); rest > 0 && (len(t.Jobs) == 0 || h.chance(10)) {
		h.emit(jobs.Record{Kind: jobs.KindAccepted, Job: jobs.ID(len(t.Jobs) + 1), Count: 1 + h.rng.IntN(rest)})
		return
	}
	id := jobs.ID(1 + h.rng.IntN(len(t.Jobs)))
	j := t.Job(id)
	switch h.rng.IntN(12) {
	case 0:
		switch p := h.rng.IntN(100) - 50; {
		case p > 10 && j.State == jobs.Running:
			h.emit(jobs.Record{Kind: jobs.KindCanceling, Job: id, Reason: "canceled by a person", Request: "cancel-1"})
		case p < -46:
			h.emit(jobs.Record{Kind: jobs.KindHost, Host: fmt.Sprintf("melon%d", -p%2), Count: -p % 3, Slot: -p % 4})
		case p < -44:
			h.emit(jobs.Record{Kind: jobs.KindPause, Count: -p % 2})
		case p < -40:
			r := jobs.Record{Kind: jobs.KindRequest, Request: fmt.Sprintf("requeue-%d", p), Count: 1}
			if p%2 == 0 {
				r.Count, r.Reason = 0, "there is no such job"
			}
			h.emit(r)
		default:
			h.emit(jobs.Record{Kind: jobs.KindPriority, Job: id, Priority: p})
		}
	case 1:
		if h.chance(30) {
			h.instance()
			return
		}
		h.emit(jobs.Record{Kind: jobs.KindEvent, Job: id, Host: "melon1",
			Reason: "said \"something\"\nin two lines, ünïcode \u2028 and \x01"})
	case 2:
		h.emit(jobs.Record{Kind: jobs.KindAcked, Seq: h.rng.Int64N(t.Seq + 1)})
	case 3:
		if j.State != jobs.Running && len(j.Open()) == 0 && h.chance(25) {
			h.edit(j)
		} else if j.State.Terminal() {
			h.emit(jobs.Record{Kind: jobs.KindRound, Job: id, Reason: "requeued by a person"})
		} else if len(j.Open()) == 0 {
			h.emit(h.next(jobs.Record{Kind: jobs.KindJob, Job: id,
				Reason: "skipped: a job as hard timed out"}, jobs.Skipped))
		}
	case 4, 5, 6:
		if !j.State.Terminal() && (len(j.Open()) == 0 || h.chance(20)) {
			h.emit(jobs.Record{Kind: jobs.KindLaunching, Job: id, N: len(j.Attempts) + 1,
				Host: fmt.Sprintf("melon%d", h.rng.IntN(4))})
		}
	default:
		if len(j.Attempts) > 0 {
			h.attempt(j, j.Attempts[h.rng.IntN(len(j.Attempts))])
		}
	}
	if t.Unfinished() == 0 && h.chance(30) {
		h.emit(jobs.Record{Kind: jobs.KindEnded})
		h.emit(jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedDone})
	}
}

// edit gives a job another command, a timeout, and now and then bytes that JSON cannot hold.
func (h *history) edit(j *jobs.Job) {
	command, timeout := fmt.Sprintf("echo 'edited <%d> \u2028'",
		h.rng.IntN(100)), time.Duration(h.rng.IntN(3))*time.Minute
	if h.chance(20) {
		command += " \xff\n"
	}
	change := jobs.Change{Command: &command, Timeout: &timeout}
	s, err := change.Apply(j.Spec)
	if err != nil {
		panic(err)
	}
	h.emit(jobs.Record{Kind: jobs.KindEdited, Job: s.ID, Spec: s, Reason: "edited by a person"})
}

// attempt makes something happen to one attempt, if anything can.
func (h *history) attempt(j *jobs.Job, a *jobs.Attempt) {
	r := jobs.Record{Job: a.ID.Job, N: a.ID.N, Host: a.Host, Slot: 1 + h.rng.IntN(8)}
	late := a.State == jobs.AttemptLost
	if !a.State.Open() && (!late || h.chance(70)) {
		return
	}
	others := 0
	for _, o := range j.Open() {
		if o != a {
			others++
		}
	}
	back := jobs.Queued // the job's next state if this attempt gives no result
	if others > 0 {
		back = jobs.Running
	}
	switch pick := h.rng.IntN(10); {
	case pick < 3 && (!late || !j.State.Terminal()):
		r.Kind, r.Started = jobs.KindRunning, h.now-1
		h.emit(r)
	case pick == 3 && !late:
		r.Kind, r.Reason = jobs.KindLost, "no heartbeat for 60 s"
		h.emit(h.next(r, back))
	case pick == 4 && !late:
		r.Kind, r.Reason = jobs.KindSuperseded, "another copy was faster"
		h.emit(h.next(r, back))
	case pick == 5:
		r.Kind, r.Reason = jobs.KindCanceled, "canceled by a person"
		h.emit(h.next(r, jobs.Canceled))
	case pick < 8:
		r.Kind, r.Outcome = jobs.KindExited, &jobs.Outcome{Started: h.now - 5e9, Ended: h.now, CPU: time.Second,
			MaxRSSBytes: 1 << 20}
		h.emit(h.next(r, jobs.Succeeded))
	default:
		r.Kind, r.Charged = jobs.KindExited, true
		r.Outcome = &jobs.Outcome{Exit: 1 + h.rng.IntN(126), Started: h.now - 5e9, Ended: h.now,
			LastLine: "Traceback \\ \"quoted\""}
		if h.chance(30) {
			r.Outcome.Exit, r.Outcome.Signal = 0, "SIGKILL"
		}
		to := back
		switch {
		case j.Failures >= 2 && others == 0:
			to = jobs.Failed
		case back == jobs.Queued:
			r.Retry = h.now + 2e9
		}
		h.emit(h.next(r, to))
	}
}

// next sets the state of the job after a record. A job that has ended keeps its state.
func (h *history) next(r jobs.Record, to jobs.JobState) jobs.Record {
	if j := h.table.Job(r.Job); j.State.Terminal() {
		r.Next, r.Charged, r.Retry = j.State, false, 0
		return r
	}
	r.Next = to
	if to.Terminal() {
		r.Seq = h.table.Seq + 1
	}
	return r
}

// instance creates an instance or changes its state.
func (h *history) instance() {
	name := fmt.Sprintf("dcs-history-%d", h.rng.IntN(3))
	next := map[jobs.InstanceState]jobs.InstanceState{
		"":                       jobs.InstanceCreating,
		jobs.InstanceCreating:    jobs.InstanceUp,
		jobs.InstanceUp:          jobs.InstanceTerminating,
		jobs.InstanceTerminating: jobs.InstanceGone,
		jobs.InstanceGone:        jobs.InstanceTerminating,
	}
	h.emit(jobs.Record{Kind: jobs.KindInstance, Host: name, How: string(next[h.table.Instances[name].State]),
		Reason: "cloud"})
}
