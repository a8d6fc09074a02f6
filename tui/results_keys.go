package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// rowKeys are those of the list of jobs, and of the table where there is one.
func (p *resultsPane) rowKeys() []binding {
	keys := listKeys(&p.list)
	for i := range keys {
		do := keys[i].do
		switch keys[i].keys[0] {
		case "s":
			keys[i].do = func(m *model) tea.Cmd {
				if p.tabular {
					p.by, p.reverse = nextOf(p.orders(), p.by), false
					return nil
				}
				return do(m)
			}
		case "a":
			keys[i].do = func(m *model) tea.Cmd {
				if p.tabular && p.table != nil && p.table.Figured {
					m.complain("the filter names what only this table has, which jobs cannot be selected by; space selects a job")
					return nil
				}
				return do(m)
			}
		}
	}
	tabular := func(*model) bool { return p.tabular }
	return slices.Insert(keys, 2, append([]binding{
		{keys: []string{"m"}, show: "m", word: "means", group: "Results", help: "groups with their mean and spread; :group says by what", when: tabular, do: p.toggleGroups},
		{keys: []string{"h"}, show: "h", word: "heat map", group: "Results", help: "a heat map of a figure over two parameters; :pivot says which", when: tabular, do: p.toggleHeat},
	}, p.aside.keys("Results", tabular)...)...)
}
