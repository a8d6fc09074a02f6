package sim

import (
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// Worlds of bad hosts. The first host is always good. The others are bad for a time: from the
// beginning or later, for ever or until they recover, for all queues or for one. A job is broken,
// and fails everywhere, or it fails only on a host that is bad. The only faults are deaths of
// dispatchers, helpers, and supervisors, and links that break. So whatever becomes of a job shows
// whether the core blames the right one.

// blameAll makes every world a world of bad hosts.
var blameAll bool

// blame holds what is wrong in a world of bad hosts.
type blame struct {
	spells     map[string]spell // by host
	broken     map[jobs.ID]bool
	takes      [2]time.Duration // bounds of the run time of a job that succeeds
	fails      [2]time.Duration // bounds of that of one that fails
	failedGood map[string]bool  // by host: a job that is not broken has failed there
	// Jobs that failed on a host that became good again before it could be known for bad.
	unlucky   map[jobs.ID]bool
	succeeded map[string]bool // by queue: a job has succeeded
}

// spell is the time in which a host is bad.
type spell struct {
	from, to time.Duration
	queue    string // "*": all queues
}

// drawBlame makes the world one of bad hosts.
func (w *World) drawBlame() {
	t := w.choices
	b := &blame{spells: map[string]spell{}, broken: map[jobs.ID]bool{}, failedGood: map[string]bool{},
		unlucky: map[jobs.ID]bool{}, succeeded: map[string]bool{}}
	w.blame = b
	w.cfg = sched.Config{Tries: 2 + t.Draw(2), GiveUpAfter: 100 * time.Hour}
	if t.OneIn(6) {
		w.cfg.Tries, w.cfg.ForgiveHosts = 1, true
	}
	w.faultsLeft = t.Draw(12)
	short, middle, long := 50*time.Millisecond, 10*time.Second, 5*time.Minute
	b.takes = [][2]time.Duration{{0, short}, {time.Second, middle}, {time.Minute, long}}[t.Draw(3)]
	b.fails = [][2]time.Duration{{0, 30 * time.Millisecond}, b.takes}[t.Draw(2)]
	share := []int{0, 0, 10, 30, 90, 100}[t.Draw(6)] // percent of broken jobs
	for i := range 2 + t.Draw(6) {
		w.drawHost(i)
		spec := w.inventoryFile[i]
		spec.Tags, spec.LostAfter, spec.MaxLoad = []string{"big"}, 0, 0
		spec.Quiet, spec.Queues, spec.Yield = nil, nil, false
		// Where most jobs are broken, three bad hosts look like good ones.
		if i == 0 || t.OneIn(3) || share > 30 && len(b.spells) == 2 {
			continue
		}
		s := spell{to: 1000 * time.Hour, queue: []string{"*", "", "second"}[t.Draw(3)]}
		if t.Draw(2) == 1 {
			s.from = w.between(0, 2*b.takes[1])
		}
		if t.OneIn(3) {
			s.to = s.from + w.between(10*time.Second, 20*b.takes[1]+time.Minute)
		}
		b.spells[spec.Name] = s
	}
	for i := range 20 + t.Draw(80) {
		o := jobs.NoOptions
		if t.OneIn(3) {
			o = &jobs.Options{Queue: "second"}
		}
		id := jobs.ID(i + 1)
		w.specs = append(w.specs, &jobs.Spec{ID: id, Line: i + 1, Command: "true", Options: o})
		b.broken[id] = t.Draw(100) < share
	}
}

// fate returns how long a job runs on a host, and how it ends.
func (b *blame) fate(w *World, h *host, s *jobs.Spec) (time.Duration, *jobs.Outcome) {
	bad := b.spells[h.name]
	isBad := w.now >= bad.from && w.now < bad.to && (bad.queue == "*" || bad.queue == s.Queue)
	if !b.broken[s.ID] && !isBad {
		return w.between(b.takes[0], b.takes[1]), &jobs.Outcome{}
	}
	if !b.broken[s.ID] {
		b.failedGood[h.name] = true
		b.unlucky[s.ID] = b.unlucky[s.ID] || bad.to < 1000*time.Hour
	}
	return w.between(b.fails[0], b.fails[1]), &jobs.Outcome{Exit: 1}
}

// checkBlame checks a record of a job's result in a world of bad hosts.
func (w *World) checkBlame(a *account, r *jobs.Record) {
	if w.blame == nil {
		return
	}
	b, queue := w.blame, a.spec.Queue
	switch {
	case r.Next == jobs.Succeeded && b.broken[r.Job]:
		w.fail(TrueOutcome, "job %d is broken and succeeded", r.Job)
	case r.Next == jobs.Succeeded:
		b.succeeded[queue] = true
	// Where nothing has succeeded, nobody can tell good hosts from bad ones.
	case r.Next == jobs.Failed && r.Kind != jobs.KindLost && !b.broken[r.Job] && !b.unlucky[r.Job] &&
		b.succeeded[queue]:
		w.fail(BadHostCostsNothing, "job %d failed: %s", r.Job, a.hostsText())
	}
}

// checkExecutions checks that a job that is launched has not run too often in its round.
func (w *World) checkExecutions(a *account, r *jobs.Record) {
	n := 0
	for _, e := range a.attempts {
		if e.round == a.round && e.hasOutcome {
			n++
		}
	}
	if most := 3*w.tries(r.Job) + len(w.inventoryFile); w.blame != nil && n >= most {
		w.fail(ExecutionsBounded, "%s is launched after %d executions: %s", r.Attempt(), n, a.hostsText())
	}
}

// checkProbation checks that a host is on probation only if a job has failed there that is not
// broken.
func (w *World) checkProbation(l *dispatcher) {
	if w.blame == nil {
		return
	}
	for _, v := range l.core.Hosts() {
		if v.OnProbation && !w.blame.failedGood[v.Name] {
			w.fail(NoFalseProbation, "%s is on probation, and only broken jobs have failed there", v.Name)
		}
	}
}

// hostsText lists the hosts of the attempts of a job.
func (a *account) hostsText() string {
	text := ""
	for _, e := range a.attempts {
		text += " " + e.host
	}
	return text
}
