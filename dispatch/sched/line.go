package sched

import (
	"cmp"
	"slices"

	"dcs-tui/jobs"
)

// A line holds those classes of a queue that have ready jobs, in the order in which their next jobs
// are launched. Only the order of the queues depends on their shares. An event therefore visits the
// classes whose next job it changes, and those at the front of each line, but not all classes.

// line is in order as soon as Core.sortLine returns.
type line struct {
	sorted  []*class
	changed []*class // whose next job, by which they have their place in sorted, may have changed
}

// changeHead makes sortLine look for the class's next job, and for its place in its line.
func (cl *class) changeHead() {
	if !cl.isMisplaced {
		cl.isMisplaced = true
		cl.line.changed = append(cl.line.changed, cl)
	}
}

// compareInLine compares two classes of a line by their next jobs.
func (cl *class) compareInLine(o *class) int {
	return cmp.Or(cl.firstRank.compare(o.firstRank), cmp.Compare(cl.first, o.first))
}

// sortLine moves the classes whose next job has changed to their places.
func (c *Core) sortLine(l *line) {
	if len(l.changed) == 0 {
		return
	}
	c.queue.numClassVisits += len(l.changed)
	few := 16*len(l.changed) < len(l.sorted)
	if few {
		for _, cl := range l.changed { // all of them leave before the head of any changes
			if i, ok := slices.BinarySearchFunc(l.sorted, cl, (*class).compareInLine); ok {
				l.sorted = slices.Delete(l.sorted, i, i+1)
			}
		}
	} else {
		l.sorted = slices.DeleteFunc(l.sorted, func(cl *class) bool { return cl.isMisplaced })
	}
	for _, cl := range l.changed {
		cl.isMisplaced = false
		cl.first, cl.firstRank = cl.findHead(c)
		switch {
		case cl.numReady == 0:
		case cl.first == 0:
			c.Defects++ // its count is wrong
		case few:
			i, _ := slices.BinarySearchFunc(l.sorted, cl, (*class).compareInLine)
			l.sorted = slices.Insert(l.sorted, i, cl)
		default:
			l.sorted = append(l.sorted, cl)
		}
	}
	if !few {
		slices.SortFunc(l.sorted, (*class).compareInLine)
	}
	clear(l.changed)
	l.changed = l.changed[:0]
}

// head returns the class's next job and its rank. The job is 0 if there is none.
func (cl *class) head(c *Core) (jobs.ID, rank) {
	if cl.isMisplaced {
		c.sortLine(cl.line)
	}
	return cl.first, cl.firstRank
}

// before reports whether the next job of a class goes before that of another class: jobs of lost
// hosts first, then by the turn of the queue, priority, and deadline, then in the order of arrival.
func (cl *class) before(o *class) bool {
	if cl.firstRank.IsUrgent != o.firstRank.IsUrgent {
		return cl.firstRank.IsUrgent
	}
	if cl.stats != o.stats {
		if d := cl.stats.share.Compare(o.stats.share); d != 0 {
			return d < 0
		}
	}
	return cl.compareInLine(o) < 0
}

// candidates holds lines without the classes that were tried. A launch changes which queue is next, so
// the first candidate is searched each time.
type candidates []position

// position is a place in a line.
type position struct {
	line *line
	next int // number of classes before it
}

// rest returns the classes from the position on.
func (p *position) rest() []*class { return p.line.sorted[p.next:] }

// candidates returns the classes with ready jobs, or only those whose jobs may be buffered. The result
// is valid until the next call.
func (c *Core) candidates(bufferable bool) candidates {
	c.updateShares()
	l := c.queue.candidates[:0]
	add := func(of *line) {
		if c.sortLine(of); len(of.sorted) > 0 {
			l = append(l, position{line: of})
		}
	}
	for _, st := range c.queues {
		if !bufferable {
			add(&st.others)
		} else if st.slotPool.limit >= 0 {
			continue // buffered jobs would take slots of the queue that they do not use yet
		}
		add(&st.bufferable)
	}
	c.queue.candidates = l
	return l
}

// first returns the position of the candidate that precedes all others, or nil.
func (c *Core) first(l candidates) (p *position) {
	for i := range l {
		if rest := l[i].rest(); len(rest) > 0 && (p == nil || rest[0].before(p.rest()[0])) {
			p = &l[i]
		}
	}
	c.queue.numClassVisits += len(l)
	return p
}

// firstFor returns the candidate that goes first on a host among those that meet a condition, or nil.
func (c *Core) firstFor(h *host, l candidates, condition func(*class) bool) (first *class) {
	before, isInOrder := (*class).before, true
	if c.hybrid && h.isLocal() {
		before, isInOrder = (*class).beforeOnLocal, false
	}
	for i := range l {
		for _, cl := range l[i].rest() {
			c.queue.numClassVisits++
			if isLater := first != nil && !before(cl, first); isLater && isInOrder {
				break
			} else if !isLater && condition(cl) {
				first = cl
			}
		}
	}
	return first
}

// sorted returns the candidates in their order.
func (l candidates) sorted() (list []*class) {
	for i := range l {
		list = append(list, l[i].rest()...)
	}
	slices.SortFunc(list, func(a, b *class) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return list
}
