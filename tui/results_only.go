package tui

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// From a group, or a cell of the heat map, to its jobs: a filter that finds no others.

// filterWords takes a filter apart at blanks that no quotes hold together.
func filterWords(s string) []string {
	var quote, before rune
	return strings.FieldsFunc(s, func(r rune) bool {
		switch {
		case quote == 0 && (r == '"' || r == '\'' && strings.ContainsRune("=<>~ \x00", before)): // else an apostrophe
			quote = r
		case r == quote:
			quote = 0
		}
		before = r
		return quote == 0 && unicode.IsSpace(r)
	})
}

// toTheLetter writes a value so that a filter finds no other: 0.1 would find 0.10, which
// is another group. One that has both quotes cannot be written.
func toTheLetter(value string) string {
	if strings.Contains(value, `"`) {
		return "'" + value + "'"
	}
	return `"` + value + `"`
}

// filterableFacts are those that a filter can name by what the table shows of them.
var filterableFacts = []string{"state", "host", "queue", "name", "signal", "cause", "exit"}

// only shows the jobs that have these values, as far as the language of filters can say so.
func (p *resultsPane) only(m *model, names, values []string) tea.Cmd {
	words := filterWords(p.filter)
	if one := asOne(p.filter); one != p.filter {
		words = []string{one}
	}
	if p.groups.on && p.table != nil && p.table.Groups != nil { // what was asked of groups is not asked of jobs
		words = slices.DeleteFunc(words, func(w string) bool { return aboutGroups(p.table.Groups, w) })
	}
	for i, name := range names {
		known := has(p.named(runview.Param), name) || has(p.named(runview.Figure), name) || has(filterableFacts, name)
		value := at(values, i)
		if !known || i >= len(values) || strings.ContainsAny(name, " ]") || strings.ContainsFunc(name+value, unicode.IsControl) || strings.ContainsRune(value, '"') && strings.ContainsRune(value, '\'') {
			m.complain("a filter cannot say " + m.clean(name) + "=" + m.clean(value) + "; / narrows the jobs down")
			return nil
		}
		if strings.ContainsAny(name, `"'=<>!~:(),&|[-`) {
			name = "[" + name + "]"
		}
		words = append(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, name+"=") }), name+"="+toTheLetter(value))
	}
	p.groups.on, p.heat.on = false, false
	p.setFilter(strings.Join(words, " "))
	p.home()
	return nil
}

// aboutGroups says that a word of a filter names what is computed of groups.
func aboutGroups(g *runview.TableGroups, word string) bool {
	return slices.ContainsFunc(g.Columns, func(c runview.TableColumn) bool {
		i := strings.Index(word, c.Name)
		return c.Role == runview.Statistic && i >= 0 && strings.ContainsAny(word[i+len(c.Name):][:min(1, len(word)-i-len(c.Name))], "=<>!~ ")
	})
}
