package results

import (
	"cmp"
	"slices"

	"dcs-tui/jobs"
)

// Group is a set of failed jobs with one cause: the same exit code, signal or
// reason, and the same last line of stderr.
type Group struct {
	Cause    string // see Cause
	LastLine string // of stderr; neither is cleaned for a terminal
	Count    int
	Jobs     []jobs.ID      // the first few of them
	Example  jobs.AttemptID // of the first job; zero when it never ran
	Host     string         // where the example ran
}

const (
	maxGroups   = 1000 // different causes kept apart; a million are no table
	maxExamples = 5
)

// groups counts failures by cause.
type groups struct {
	byCause map[[2]string]*Group
	order   []*Group
}

// otherCauses gathers what comes after maxGroups.
var otherCauses = [2]string{"other causes", ""}

func (g *groups) add(id jobs.ID, j *jobs.Job, a *jobs.Attempt) {
	var o *jobs.Outcome
	if a != nil {
		o = a.Outcome
	}
	key := [2]string{Cause(j.State, j.Reason, o), ""}
	if o != nil {
		key[1] = o.LastLine
	}
	if g.byCause == nil {
		g.byCause = map[[2]string]*Group{}
	}
	if g.byCause[key] == nil && len(g.order) >= maxGroups {
		key = otherCauses
	}
	e := g.byCause[key]
	if e == nil {
		e = &Group{Cause: key[0], LastLine: key[1]}
		if o != nil {
			e.Example, e.Host = a.ID, a.Host
		}
		g.byCause[key] = e
		g.order = append(g.order, e)
	}
	e.Count++
	if len(e.Jobs) < maxExamples {
		e.Jobs = append(e.Jobs, id)
	}
}

// sorted returns the groups, the largest first, equal ones by their first job.
func (g *groups) sorted() []Group {
	list := make([]Group, 0, len(g.order))
	for _, e := range g.order {
		list = append(list, *e)
	}
	slices.SortStableFunc(list, func(a, b Group) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
