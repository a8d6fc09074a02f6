package runview

import (
	"container/heap"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/column"
)

// list holds the short rows of all jobs and what is counted of them. View.mu guards it.
type list struct {
	rows       []row                             // job id - 1
	specs      func() func(id uint32) *jobs.Spec // makes what spec is, for one goroutine
	spec       func(id uint32) *jobs.Spec        // valid until the next call
	options    []*jobs.Options                   // each once
	optionsAt  map[*jobs.Options]uint32
	edited     map[jobs.ID]bool // jobs whose specification has changed since their rows were made
	names      []string
	nameOf     map[string]uint16
	phases     [Phases]int
	stragglers int
	edition    uint64 // grows with each change of a row
	generation int    // of the rows: grows when all are made anew

	runs     map[uint32]struct{}  // jobs that run or are handed over
	retries  retries              // jobs that wait for their next try
	ripened  jobs.Stamp           // when retries were last looked through
	children map[uint32][]uint32  // by the job that they come after
	again    map[jobs.ID]struct{} // rows to make anew though no record named them
	links    map[string]bool      // hosts that can be reached
	groups   groups
	dated    bool // some job has a deadline
	hard     hardness
	known    vocabulary
}

func (l *list) init(figures []*column.Column) {
	l.names = []string{""}
	l.nameOf = map[string]uint16{"": 0}
	l.runs = map[uint32]struct{}{}
	l.optionsAt = map[*jobs.Options]uint32{}
	l.edited = map[jobs.ID]bool{}
	l.children = map[uint32][]uint32{}
	l.again = map[jobs.ID]struct{}{}
	l.groups.init()
	l.known.figures = nil
	for _, c := range figures {
		l.known.figures = append(l.known.figures, c.Name)
	}
}

// name gives a host a number.
func (l *list) name(s string) uint16 {
	n, ok := l.nameOf[s]
	if !ok {
		if len(l.names) > 1<<16-2 {
			return 0
		}
		n = uint16(len(l.names))
		l.names = append(l.names, s)
		l.nameOf[s] = n
	}
	return n
}

// optionsOf gives the options of a job a number.
func (l *list) optionsOf(s *jobs.Spec) uint32 {
	o := s.Options
	if o == nil {
		o = jobs.NoOptions
	}
	n, ok := l.optionsAt[o]
	if !ok {
		n = uint32(len(l.options))
		l.options, l.optionsAt[o] = append(l.options, o), n
	}
	return n
}

// put enters a row as it is now.
func (l *list) put(c *change) {
	i := int(c.id) - 1
	if i > len(l.rows) {
		return // its turn comes when those before it are here
	}
	fresh := i == len(l.rows)
	if fresh {
		l.rows = append(l.rows, row{phase: Phases})
		l.known.learn(c.spec)
		l.hard.learn(c.spec.Options)
		l.depends(c)
	}
	old := l.rows[i]
	c.row.host, c.row.options = l.name(c.host), l.optionsOf(c.spec)
	if c.failed {
		var last string
		if c.outcome != nil {
			last = c.outcome.LastLine
		}
		c.row.group = l.groups.of(old.group, results.Cause(c.state, c.reason, c.outcome), last)
	}
	if c.row.phase == old.phase && old.attempts == c.row.attempts {
		c.row.progress = old.progress
	}
	edited := l.edited[c.id]
	if delete(l.edited, c.id); c.row == old && !edited {
		if old.phase == Retry && old.when <= l.ripened { // the clock was set back
			heap.Push(&l.retries, retry{old.when, uint32(c.id)})
		}
		return
	}
	l.edition++
	if !fresh {
		l.leave(uint32(c.id), &old)
	}
	l.rows[i] = c.row
	l.enter(uint32(c.id), &c.row)
	if old.group != c.row.group {
		l.groups.tidy(old.group)
	}
	if !fresh && (old.phase == Succeeded) != (c.row.phase == Succeeded) {
		for _, kid := range l.children[uint32(c.id)] {
			l.again[jobs.ID(kid)] = struct{}{}
		}
	}
}

func (l *list) depends(c *change) {
	o := c.spec.Options
	if o == nil {
		return
	}
	l.dated = l.dated || !o.Deadline.IsZero()
	for _, dep := range o.After {
		if dep > 0 && dep != c.id {
			l.children[uint32(dep)] = append(l.children[uint32(dep)], uint32(c.id))
			if int(dep) <= len(l.rows) && l.rows[dep-1].phase == Succeeded && c.row.phase == Waits {
				l.again[c.id] = struct{}{}
			}
		}
	}
}

func (l *list) leave(id uint32, r *row) {
	l.phases[r.phase]--
	if r.flags&straggler != 0 {
		l.stragglers--
	}
	if runs(r.phase) {
		delete(l.runs, id)
	}
	l.groups.leave(id, r, l.names[r.host])
}

func (l *list) enter(id uint32, r *row) {
	l.phases[r.phase]++
	if r.flags&straggler != 0 {
		l.stragglers++
	}
	if runs(r.phase) {
		l.runs[id] = struct{}{}
	}
	if r.phase == Retry {
		heap.Push(&l.retries, retry{r.when, id})
	}
	l.groups.enter(id, r, l.names[r.host])
}

// runs says that a job runs or may do so any moment.
func runs(p Phase) bool { return p <= Handed }

// rerun has all rows that depend on links made anew.
func (l *list) rerun() {
	for id := range l.runs {
		l.again[jobs.ID(id)] = struct{}{}
	}
}

// retry is a job that waits for its next try until at.
type retry struct {
	at jobs.Stamp
	id uint32
}

type retries []retry

func (r retries) Len() int           { return len(r) }
func (r retries) Less(i, j int) bool { return r[i].at < r[j].at }
func (r retries) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *retries) Push(x any)        { *r = append(*r, x.(retry)) }
func (r *retries) Pop() any {
	old := *r
	x := old[len(old)-1]
	*r = old[:len(old)-1]
	return x
}
