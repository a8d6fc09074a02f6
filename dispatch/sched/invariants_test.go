package sched

import (
	"reflect"
	"slices"

	"dcs-tui/jobs"
)

// check holds what must be true after every step.
func (w *world) check() {
	c := w.core
	if c.Defects != 0 {
		w.fatalf("the core made %d records that do not fit", c.Defects)
	}
	open := 0
	for _, h := range c.everyHost() {
		n, occ, run := 0, 0, 0
		for f := h.head; f != nil; f = f.next {
			n++
			occ += f.slots
			if f.started {
				run += f.slots
			}
			if a := c.table.Attempt(f.id); a == nil || !a.State.Open() {
				w.fatalf("attempt %s is in the books of %s and not open", f.id, h.spec.Name)
			}
		}
		if n != h.open || occ != h.occupied || run != h.running {
			w.fatalf("the books of %s are wrong: %d %d %d, counted %d %d %d", h.spec.Name, h.open, h.occupied, h.running, n, occ, run)
		}
		open += n
	}
	if open != len(c.flights) {
		w.fatalf("%d attempts in the books, %d on the hosts", len(c.flights), open)
	}
	if w.steps%16 != 0 {
		return
	}
	readyJobs, avoiding := 0, 0
	for i := range c.table.Jobs {
		j := &c.table.Jobs[i]
		if (c.queue.spots[i] != noSpot) != (j.State == jobs.Queued) {
			w.fatalf("job %d is %s and its spot in the queue is %d", i+1, j.State, c.queue.spots[i])
		}
		if c.queue.spots[i] == ready {
			readyJobs++
			if c.classOf(j).avoid != nil {
				avoiding++
			}
		}
	}
	running := c.Running()
	for id := jobs.ID(1); int(id) <= len(c.table.Jobs); id++ {
		isEnding := c.table.Job(id).State == jobs.Running && c.Standing(id) == Ending
		if got := slices.Contains(running.Ending, id); got != isEnding {
			w.fatalf("Running lists job %d as being ended: %v, want %v", id, got, isEnding)
		}
		if got, want := slices.Contains(running.Stragglers, id), c.Straggler(id); got != want {
			w.fatalf("Running lists job %d as a straggler: %v, want %v", id, got, want)
		}
	}
	inClasses := 0
	for _, cl := range c.queue.list {
		inClasses += cl.n
	}
	var retries, blocked int
	for _, sp := range c.queue.spots {
		switch sp {
		case retrying:
			retries++
		case afterOthers:
			blocked++
		}
	}
	if retries+avoiding != len(c.queue.due) || blocked != len(c.after.waits) {
		w.fatalf("%d jobs wait for a try or another host, %d entries; %d for others, %d entries", retries+avoiding, len(c.queue.due), blocked, len(c.after.waits))
	}
	if len(c.queue.anywhere) > readyJobs {
		w.fatalf("%d jobs may go anywhere, and %d are ready", len(c.queue.anywhere), readyJobs)
	}
	if readyJobs != c.queue.ready || readyJobs != inClasses {
		w.fatalf("%d jobs are ready, counted %d, in classes %d", readyJobs, c.queue.ready, inClasses)
	}
}

func (w *world) stuck() {
	for i := range w.core.table.Jobs {
		if !w.core.table.Jobs[i].State.Terminal() {
			w.logf("%s", w.core.Why(Time{w.now, w.wall()}, jobs.ID(i+1)))
		}
	}
	for _, v := range w.core.Hosts() {
		w.logf("%s %s %s slots %d usable %v running %d buffered %d", v.Name, v.State, v.Reason, v.Slots, v.Usable, v.Running, v.Buffered)
	}
	w.fatalf("the run does not end")
}

// atEnd holds what a finished run promises.
func (w *world) atEnd() {
	if w.finished.How != AllDone {
		w.fatalf("finished with %+v", *w.finished)
	}
	t := w.core.table
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if !j.State.Terminal() || j.Seq == 0 {
			w.fatalf("job %d ended as %s with result number %d", i+1, j.State, j.Seq)
		}
		ok := false
		for _, a := range j.Attempts {
			f := w.hosts[a.Host].attempts[a.ID]
			ok = ok || f != nil && f.state == fakeExited && f.outcome.OK() && a.Round == j.Round && a.State == jobs.AttemptExited
			if f != nil && (f.state == fakeRunning || f.state == fakeBuffered) && w.hosts[a.Host].linked {
				w.fatalf("attempt %s is still %v on %s, which answers", a.ID, f.state, a.Host)
			}
		}
		if (j.State == jobs.Succeeded) && !ok {
			w.fatalf("job %d succeeded, but no attempt of it did", i+1)
		}
		lost := false // its failure may come late, beside that of the attempt which replaced it
		for _, a := range j.Attempts {
			lost = lost || w.givenUp[a.ID]
		}
		if !lost && int(j.Failures) > w.cfg.Tries {
			w.fatalf("job %d was charged with %d failures of %d", i+1, j.Failures, w.cfg.Tries)
		}
	}
	replay := &jobs.Table{Specs: t.Specs}
	for i := range w.journal {
		if err := jobs.Fold(replay, &w.journal[i]); err != nil {
			w.fatalf("replay: %v", err)
		}
	}
	if !reflect.DeepEqual(replay, t) {
		w.fatalf("the journal does not give the state that the run had")
	}
}
