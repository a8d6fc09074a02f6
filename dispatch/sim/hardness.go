package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// Checks of hardness that do not use the code of dispatch/sched.

// hardOptions are the options of jobs with a hardness. There are two queues with a grid of three by
// three each. One option of each grid has another text, which makes it incomparable to the rest,
// like an instance with a different answer of the command.
var hardOptions = makeHardOptions()

func makeHardOptions() (all []*jobs.Options) {
	for i := range 18 {
		part := "o.0"
		if i%9 == 4 {
			part = "o.1"
		}
		o := &jobs.Options{Hardness: []string{strconv.Itoa(i % 3), part, strconv.Itoa(8 + i/3%3)},
			Timeout: 10 * time.Second}
		if i >= 9 {
			o.Queue = "second"
		}
		all = append(all, o)
	}
	return all
}

// tooHard reports whether a job need not run because of the timeout of another.
func tooHard(s, late *jobs.Spec) bool {
	if len(s.Hardness) == 0 || len(s.Hardness) != len(late.Hardness) || s.Queue != late.Queue || s.File != late.File ||
		s.Timeout == 0 || s.Timeout > late.Timeout {
		return false
	}
	for i := range s.Hardness {
		a, err := strconv.Atoi(s.Hardness[i])
		b, _ := strconv.Atoi(late.Hardness[i])
		if err != nil && s.Hardness[i] != late.Hardness[i] || a < b {
			return false
		}
	}
	return true
}

// checkHardness checks a launch. After damage to the journal, attempts appear on hosts although no
// record names them, and a timeout may be forgotten.
func (w *World) checkHardness(t *jobs.Table, r *jobs.Record) {
	if t.Damaged || t.Counts[jobs.TimedOut] == 0 {
		return
	}
	spec := t.Spec(r.Job)
	for id := jobs.ID(1); int(id) <= t.NumJobs(); id++ {
		if t.State(id) != jobs.TimedOut {
			continue
		}
		if late := t.Spec(id); tooHard(spec, late) {
			w.fail(HarderSkipped, "%s is launched (hardness %v), and job %d (%v) has timed out", r.Attempt(),
				spec.Hardness, id, late.Hardness)
		}
	}
}

// checkStopped checks the running jobs at the end of a turn. While requests are pending, the core
// waits: an edit may let the job that timed out run again. An edit itself waits during a takeover.
func (w *World) checkStopped(l *dispatcher, t *jobs.Table) {
	if t.Counts[jobs.TimedOut] == 0 || t.Counts[jobs.Running] == 0 || t.Damaged || l.core.PendingRequests() > 0 {
		return
	}
	var late []*jobs.Spec
	var running []jobs.ID
	for i := range jobs.ID(t.NumJobs()) {
		switch id := i + 1; {
		case len(t.OptionsOf(id).Hardness) == 0:
		case t.State(id) == jobs.TimedOut:
			late = append(late, t.Spec(id))
		case t.State(id) == jobs.Running:
			running = append(running, id)
		}
	}
	for _, id := range running {
		spec := t.Spec(id)
		if !slices.ContainsFunc(late, func(o *jobs.Spec) bool { return tooHard(spec, o) }) {
			continue
		}
		why := l.core.Why(l.now(), id)
		if t.Cancels[id].Reason == "" && !strings.Contains(why, "is being stopped") {
			w.fail(HarderStopped, "job %d (hardness %v): %s", id, spec.Hardness, why)
		}
	}
}

// checkSkipped checks the durable record of a skipped job.
func (w *World) checkSkipped(a *account, r *jobs.Record) {
	if len(a.spec.After()) > 0 && strings.Contains(r.Reason, ", which it comes after") || w.damaged {
		return
	}
	for i := range w.ledger.jobs {
		if o := &w.ledger.jobs[i]; o.isOver && o.result == jobs.TimedOut && tooHard(a.spec, o.spec) {
			return
		}
	}
	w.fail(SkippedForCause, "job %d (hardness %v) is skipped: %s", r.Job, a.spec.Hardness, r.Reason)
}
