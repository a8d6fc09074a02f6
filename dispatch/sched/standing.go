package sched

import "dcs-tui/jobs"

// Standing is where a job stands that is not over, beyond what the table says.
type Standing uint8

// The standings.
const (
	IsOver    Standing = iota
	IsReady            // may be launched
	Retrying           // waits for its next try, until Job.Retry
	Waits              // for other jobs to succeed
	Overtaken          // waits until an attempt of an earlier round is over
	Handed             // given to a host and not known to have started
	Runs               // has started
	Away               // handed or started on a host that cannot be reached now
	Ending             // is being ended: a person asked, or it is too hard
	Standings          // how many there are
)

// Standing returns where a job stands; IsOver also for one that there is not.
func (c *Core) Standing(id jobs.ID) Standing {
	j := c.table.Job(id)
	switch {
	case j == nil || j.State.Terminal():
		return IsOver
	case c.cancelled(id) || j.State == jobs.Running && c.tooHard(j):
		return Ending
	case j.State == jobs.Queued:
		return c.queued(id)
	}
	best := Handed
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		if f := c.flights[j.Attempts[i].ID]; f != nil {
			switch s := f.standing(); {
			case s == Runs:
				return Runs
			case s == Away:
				best = Away
			}
		}
	}
	return best
}

func (c *Core) queued(id jobs.ID) Standing {
	if int(id) > len(c.queue.spots) {
		return IsReady // not begun
	}
	switch c.queue.spots[id-1] {
	case retrying:
		return Retrying
	case afterOthers:
		return Waits
	case overtaken:
		return Overtaken
	}
	return IsReady
}

func (f *flight) standing() Standing {
	switch {
	case !f.h.linked:
		return Away
	case f.started:
		return Runs
	}
	return Handed
}

// Paused reports whether nothing is launched because a person has paused the run, or
// because of a Hold.
func (c *Core) Paused() bool { return c.table.Paused || c.holds != 0 }

// Draining returns why nothing more is launched until a person continues, or "" if the
// run does not drain.
func (c *Core) Draining() string { return c.drain }
