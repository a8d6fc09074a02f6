package tui

import (
	"fmt"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// slipTime is how long a person has to see that the cursor has gone to another job by
// itself. A key that was meant for the job before does nothing to the one that is there
// now (rule 4).
const slipTime = 1500 * time.Millisecond

// slip is the newest such move of a cursor.
type slip struct {
	from string // what it was on, in words; "": nothing to be told
	gone bool   // that is not in the list any more
	at   time.Time
}

// slippery is a pane with a cursor that can slide: what it is on now, in words.
type slippery interface {
	slipped(m *model) (newest *slip, on string)
}

// watch has a list see a page and notes whether that moves its cursor.
func (l *list) watch(m *model, p *runview.Page) {
	if line, typing := m.modal.(*input); typing && line.filters == l && p.Wrong != "" && l.page != nil { // it is being typed: what it was stays
		l.wrong, l.wrongOf, l.waits, l.outdated = p.Wrong, p.Filter, false, false
		return
	}
	anew := l.page == nil || !l.fits(l.page)
	before, held := l.cursor, l.held
	l.see(p)
	if before == 0 || l.cursor == before || anew {
		return
	}
	l.slip = slip{from: jobName(before), gone: held || find(p, before) < 0, at: m.now()}
}

func (l *list) slipped(*model) (*slip, string) {
	if r, ok := l.current(); ok {
		return &l.slip, jobName(r.ID)
	}
	return &l.slip, ""
}

// slid says that the cursor has just gone to something else than a key may be meant for,
// and tells that; the next key counts.
func (m *model) slid() bool {
	p, is := m.focus().(slippery)
	if !is {
		return false
	}
	s, on := p.slipped(m)
	from := s.from
	if from == "" || m.now().Sub(s.at) >= slipTime {
		return false
	}
	if s.from = ""; on == "" || on == from {
		return false
	}
	why := "has moved in the list"
	if s.gone {
		why = "has left the list"
	}
	m.complain(fmt.Sprintf("%s %s; the cursor is on %s now: press again", from, why, on))
	return true
}

// beside says, in the title of a pane that stays with a job, that the cursor of the list
// is on another one.
func (m *model) beside(id jobs.ID) string {
	if m.tab != tabJobs {
		return ""
	}
	if r, ok := m.jobs.current(m); ok && r.ID != id {
		return " " + m.g.dot + " the cursor is on " + jobName(r.ID)
	}
	return ""
}

// told is what jobs have said of their progress, by their attempts. Of one that cannot
// be reached now, the source knows nothing.
type told map[jobs.AttemptID]float64

// maxTold bounds it.
const maxTold = 4096

// keep notes what rows say, and gives those that do not know it what they last said.
func (t *told) keep(rows []runview.Row) {
	if *t == nil || len(*t) > maxTold {
		*t = told{}
	}
	for i := range rows {
		r := &rows[i]
		id := jobs.AttemptID{Job: r.ID, N: r.Attempt}
		switch {
		case r.Phase != runview.Running && r.Phase != runview.Away && r.Phase != runview.Ending:
		case r.Progress >= 0:
			(*t)[id] = r.Progress
		default:
			if v, ok := (*t)[id]; ok {
				r.Progress = v
			}
		}
	}
}
