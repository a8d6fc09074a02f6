package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// sideways turns the pages of a table that has more columns than the screen has room
// for: the first page has the most important ones, each further one those that come next.
type sideways struct {
	page int
	more int // columns on the pages that follow
}

// fit chooses the columns of the page for w cells. The first ones stay on each.
func (s *sideways) fit(all []column, stay, w int) []column {
	first := all[:stay:stay]
	rest := slices.Clone(all[stay:])
	for page := 0; ; page++ {
		if page > 0 {
			rest[0].rank = 0 // each page has one
		}
		keep, _ := fitting(slices.Concat(first, rest), w)
		var here, after []column
		for i, c := range rest {
			if keep[stay+i] {
				here = append(here, c)
			} else {
				after = append(after, c)
			}
		}
		if s.more = len(after); page == s.page || s.more == 0 {
			s.page = page
			return fitColumns(slices.Concat(first, here), w)
		}
		rest = after
	}
}

// keys turn the pages.
func (s *sideways) keys(group string, when func(*model) bool) []binding {
	turn := func(key, word, help string, by int, can bool) binding {
		return binding{keys: []string{key}, show: key, word: word, group: group, help: help,
			when: func(m *model) bool { return can && when(m) }, do: func(*model) tea.Cmd { s.page += by; return nil }}
	}
	return []binding{
		turn("right", "columns", plural(s.more, "more column")+", for which there is no room", 1, s.more > 0),
		turn("left", "back", "the columns before", -1, s.page > 0),
	}
}
