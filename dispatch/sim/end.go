package sim

import (
	"fmt"

	"dcs-tui/jobs"
)

func text(v any) string { return fmt.Sprintf("%+v", v) }

// atEnd holds what a finished run promises.
func (w *World) atEnd() {
	g := &w.ledger
	if !g.ended {
		w.broken(CleanEnd, "the run is over, and the journal does not say so")
	}
	if len(g.jobs) != len(w.specs) {
		w.broken(RunEnds, "%d jobs of %d were accepted", len(g.jobs), len(w.specs))
	}
	for i := range g.jobs {
		a := &g.jobs[i]
		if !a.over {
			w.broken(RunEnds, "job %d has no result", i+1)
		}
		for n := range a.attempts {
			if a.attempts[n].open {
				w.broken(RunEnds, "the fate of %d.%d is not known", i+1, n+1)
			}
		}
	}
	for _, r := range w.people.requests {
		if g.requests[r.Name] == 0 {
			w.broken(RequestsOnce, "%s was never taken in", r.Name)
		}
	}
	for seq := int64(1); seq <= g.seq && !w.damaged; seq++ { // damage may take a result before anybody has seen it
		if _, ok := w.consumer.got[seq]; !ok {
			w.broken(ResultsShown, "result %d of job %d was never shown", seq, g.seqs[seq])
		}
	}
	for id := range jobs.ID(len(w.specs)) {
		for _, live := range w.truth.live[id+1] {
			if w.cleaned(w.truth.of(live).host) {
				w.broken(NothingLeft, "%s is alive", live)
			}
		}
	}
	w.checkCloud()
	for _, h := range w.hosts {
		if len(h.in) > 0 && w.cleaned(h) {
			w.broken(NothingLeft, "%s waits in the spool of %s", h.in[0].id, h.name)
		}
	}
}
