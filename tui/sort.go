package tui

import (
	"dcs-tui/dispatch/view"
)

// sortBy orders a list anew. The cursor stays on its job.
func (l *list) sortBy(s view.Sort, reverse bool) { l.sort, l.reverse = s, reverse }

// nextSort goes through the columns.
func (l *list) nextSort() { l.sortBy((l.sort+1)%view.Sorts, false) }
