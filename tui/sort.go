package tui

import (
	"time"

	"dcs-tui/jobs/runview"
)

// sortBy orders a list anew. The cursor stays on its job.
func (l *list) sortBy(s runview.Sort, reverse bool) { l.sort, l.reverse = s, reverse }

// nextSort goes through the columns.
func (l *list) nextSort() { l.sortBy((l.sort+1)%runview.Sorts, false) }

// highestFirst says of a column that not reversed it begins with the highest: those
// that are about amounts, and the order at first.
func highestFirst(s runview.Sort) bool {
	switch s {
	case runview.SortAge, runview.SortTry, runview.SortTime, runview.SortProgress, runview.SortMemory:
		return true
	}
	return false
}

// arrow points down when the highest comes first.
func (m *model) arrow(s runview.Sort, reverse bool) string {
	if highestFirst(s) != reverse {
		return m.g.down
	}
	return m.g.up
}

// oldOrder is the age from which the order of a list is called old.
const oldOrder = 3 * time.Second

// sorted says how a list is sorted: "sort:age ▼".
func (m *model) sorted(l *list) string {
	s := "sort:" + l.sort.String() + " " + m.arrow(l.sort, l.reverse)
	if l.page != nil && l.page.Settled >= oldOrder {
		s += " " + span(l.page.Settled) + " ago"
	}
	return s
}

// listed says how a list is filtered and sorted: "/C=0.1  sort:age ▼".
func (m *model) listed(l *list) string {
	s := m.sorted(l)
	if l.filter != "" {
		s = m.cut("/"+m.clean(l.filter), 30) + "  " + s
	}
	return s
}
