package sim

import (
	"time"

	"dcs-tui/jobs"
)

// truth is what really happened on the hosts, whoever knows of it.
type truth struct {
	facts   map[jobs.AttemptID]*fact
	live    map[jobs.ID][]jobs.AttemptID
	records int // durable ones so far
	sent    map[jobs.AttemptID]*host

	finished map[jobs.ID]bool // jobs with an attempt that succeeded, whether or not a dispatcher knows it
}

// fact is what happened to an attempt.
type fact struct {
	id        jobs.AttemptID
	starts    int
	alive     bool
	host      *host
	boot      int
	since     time.Duration
	ended     *jobs.Outcome // as its supervisor saw it; nil while it runs, or if nobody saw it
	forgotten bool          // its host lost its disk's last writes with the power
}

func (t *truth) init() {
	t.facts = map[jobs.AttemptID]*fact{}
	t.live = map[jobs.ID][]jobs.AttemptID{}
	t.finished = map[jobs.ID]bool{}
	t.sent = map[jobs.AttemptID]*host{}
}

func (t *truth) of(id jobs.AttemptID) *fact { return t.facts[id] }

// starts is the start of a job's process.
func (t *truth) starts(w *World, r *run) {
	id, h := r.s.id, r.h
	w.logf("START %s on %s", id, h.name)
	f := t.facts[id]
	if f == nil {
		f = &fact{id: id}
		t.facts[id] = f
	}
	// When the record of it was damaged and its host lost the claim with the power, nobody
	// can know of it.
	if f.starts++; f.starts > 1 && !(w.damaged && f.forgotten) {
		w.broken(StartsOnce, "%s starts again, on %s", id, h.name)
	}
	if w.cuts && t.finished[id.Job] {
		w.broken(OneResult, "%s starts on %s, and its job has succeeded", id, h.name)
	}
	f.alive, f.host, f.boot, f.since = true, h, h.boot, w.now
	e := w.ledger.entry(id)
	switch {
	case w.damaged && (e == nil || e.vague):
	case e != nil && !w.damaged && e.machine != h.id:
		w.broken(SettledByItsMachine, "%s starts on %s, and is recorded as launched on %s", id, h.id, e.machine)
	case e == nil || e.host != h.name:
		w.broken(RecordBeforeStart, "%s starts on %s", id, h.name)
	case e.spec != nil && !e.spec.Same(r.s.spec):
		w.broken(RunsAsEdited, "%s starts on %s by another specification than the journal has", id, h.name)
	case !e.open:
		w.broken(NoStartAfterEnd, "%s starts on %s and is recorded as %s", id, h.name, e.last)
	}
	w.checkHeld(r)
	if n, most := h.busy(), w.most(h.name); n > most {
		w.broken(SlotsHold, "%s has %d slots busy of %d", h.name, n, most)
	}
	copies := 1
	for _, other := range t.live[id.Job] {
		o, n := w.ledger.entry(other), id.N
		if w.damaged && (e == nil || e.vague || o == nil || o.vague) {
			if e != nil && !e.vague && !w.mayCopy(e.spec) && (o == nil || !o.lost) && w.life != nil && w.life.listed[t.facts[other].host] > t.facts[other].since {
				w.broken(OneLiveAttempt, "%s starts on %s while %s runs, of which its host had told", id, h.name, other)
			}
			continue
		}
		if w.mayCopy(e.spec) {
			if o.lost {
				continue
			}
			if copies++; copies > w.cfg.Copies {
				w.broken(CopiesHold, "%s starts on %s, and %d others run", id, h.name, copies-1)
			}
			continue
		}
		// Allowed only if the other had been given up before this one was launched.
		if other.N > n || !o.lost || o.lostAt > e.launched {
			w.broken(OneLiveAttempt, "%s starts on %s while %s runs on %s", id, h.name, other, o.host)
		}
	}
	t.live[id.Job] = append(t.live[id.Job], id)
}

// dies is the end of the process, whoever sees it.
func (t *truth) dies(r *run) {
	id := r.s.id
	r.h.w.logf("END %s on %s", id, r.h.name)
	t.facts[id].alive = false
	live := t.live[id.Job]
	for i := range live {
		if live[i] == id {
			t.live[id.Job] = append(live[:i:i], live[i+1:]...)
			return
		}
	}
}

// sawEnd notes the outcome that its supervisor has seen.
func (t *truth) sawEnd(r *run) {
	o := *r.outcome
	t.facts[r.s.id].ended = &o
	t.finished[r.s.id.Job] = t.finished[r.s.id.Job] || o.OK()
}

// forget notes that a host may not know any more what it has claimed.
func (t *truth) forget(h *host) {
	for _, f := range t.facts {
		f.forgotten = f.forgotten || f.host == h
	}
}
