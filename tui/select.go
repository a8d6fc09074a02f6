package tui

import (
	"fmt"
	"slices"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// selection is a set of jobs, kept as ranges: "all that match" may be a million, and
// no frame walks them.
type selection struct {
	which jobs.Ranges
	n     int // how many
}

// find returns the place of the first range that ends at id or later.
func (s *selection) find(id jobs.ID) int {
	i, _ := slices.BinarySearchFunc(s.which, id, func(r jobs.Range, id jobs.ID) int { return int(r.Last) - int(id) })
	return i
}

func (s *selection) has(id jobs.ID) bool {
	i := s.find(id)
	return i < len(s.which) && s.which[i].First <= id
}

// toggle takes a job in, or out.
func (s *selection) toggle(id jobs.ID) {
	i := s.find(id)
	if i == len(s.which) || s.which[i].First > id {
		s.add(jobs.One(id))
		return
	}
	r := s.which[i]
	var rest []jobs.Range
	if r.First < id {
		rest = append(rest, jobs.Range{First: r.First, Last: id - 1})
	}
	if r.Last > id {
		rest = append(rest, jobs.Range{First: id + 1, Last: r.Last})
	}
	s.set(slices.Concat(s.which[:i], rest, s.which[i+1:])) // a new slice: an action may hold the old one
}

// add takes more jobs in.
func (s *selection) add(more jobs.Ranges) { s.set(union(s.which, more)) }

func (s *selection) set(which jobs.Ranges) { s.which, s.n = which, which.Count() }

// union merges two ordered lists of ranges.
func union(a, b jobs.Ranges) jobs.Ranges {
	out := make(jobs.Ranges, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		var r jobs.Range
		if len(b) == 0 || len(a) > 0 && a[0].First <= b[0].First {
			r, a = a[0], a[1:]
		} else {
			r, b = b[0], b[1:]
		}
		if n := len(out); n > 0 && out[n-1].Last >= r.First-1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// equal says whether two lists are the same jobs.
func equal(a, b jobs.Ranges) bool { return slices.Equal(a, b) }

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
