package tui

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/query"
	"dcs-tui/jobs/runview"
)

// From a group, or a cell of the heat map, to its jobs: a filter that finds no others.

// exactly writes a value so that a filter finds no other: 0.1 would find 0.10, which is
// another group.
func exactly(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// filterableFacts are those that a filter can name by what the table shows of them.
var filterableFacts = []string{"state", "host", "queue", "name", "signal", "cause", "exit"}

// only shows the jobs that have these values, as far as the language of filters can say so.
func (p *resultsPane) only(m *model, names, values []string) tea.Cmd {
	var words []string
	if q, err := query.ParseSearch(p.filter); err == nil && q != nil {
		conditions := q.Conditions()
		for _, c := range conditions {
			if p.groups.on && p.table != nil && p.table.Groups != nil && aboutGroups(p.table.Groups, c) {
				continue // what was asked of groups is not asked of jobs
			}
			text := c.String()
			if len(conditions) == 1 {
				text = asOne(text)
			}
			words = append(words, text)
		}
	}
	for i, name := range names {
		known := has(p.named(runview.Param), name) || has(p.named(runview.Figure), name) || has(filterableFacts, name)
		value := at(values, i)
		if !known || i >= len(values) || strings.ContainsAny(name, " ]") || strings.ContainsFunc(name+value, unicode.IsControl) {
			m.complain("a filter cannot say " + m.clean(name) + "=" + m.clean(value) + "; / narrows the jobs down")
			return nil
		}
		if strings.ContainsAny(name, `"'=<>!~:(),&|[-`) {
			name = "[" + name + "]"
		}
		words = append(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, name+"=") }), name+"="+exactly(value))
	}
	p.groups.on, p.heat.on = false, false
	p.setFilter(strings.Join(words, " "))
	p.home()
	return nil
}

// aboutGroups reports whether a query names what is computed of groups.
func aboutGroups(g *runview.TableGroups, q *query.Query) bool {
	return slices.ContainsFunc(g.Columns, func(c runview.TableColumn) bool {
		return c.Role == runview.Statistic && slices.Contains(q.Names(false), c.Name)
	})
}
