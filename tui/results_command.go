package tui

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// resultCommands are those of the table of results; each shows the view.
func resultCommands() []command {
	names := func(m *model) []string { return m.result.columnNames() }
	shown := func(do func(*resultsPane, *model, string) error) func(*model, string) (tea.Cmd, error) {
		return func(m *model, arg string) (tea.Cmd, error) {
			if err := do(m.result, m, arg); err != nil {
				return nil, err
			}
			m.open(tabResults)
			return nil, nil
		}
	}
	return []command{
		{name: "result", args: "NAME[=HOW]", help: "a column of what jobs printed: acc, acc=json:test.accuracy, acc=re:(..), acc=file:PATH; -acc takes it away", do: shown((*resultsPane).commandResult)},
		{name: "group", args: "[COLUMNS [min N]]", help: "results by group: C,gamma min 3 leaves out groups with fewer than 3 jobs that succeeded; alone: jobs again", words: names, do: shown((*resultsPane).commandGroup)},
		{name: "best", args: "[COLUMN:max]", help: "mark the best result: acc:max, loss:min; alone: none", words: (*model).bestWords, do: shown((*resultsPane).commandBest)},
		{name: "pivot", args: "[ROWS COLUMNS [FIGURE]]", help: "a heat map: C gamma acc, or acc:max, sd, min, median, count; alone: what the run has", words: names, do: shown((*resultsPane).commandPivot)},
	}
}

// columnNames are those that can be sorted and grouped by.
func (p *resultsPane) columnNames() []string {
	if p.table == nil {
		return nil
	}
	var names []string
	for _, c := range p.table.Columns {
		names = append(names, c.Name)
	}
	return names
}

func (m *model) bestWords() []string {
	var words []string
	for _, name := range append(m.result.named(runview.Figure), "time") {
		words = append(words, name+":max", name+":min")
	}
	return words
}

func (p *resultsPane) commandResult(_ *model, arg string) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
	name = strings.TrimSpace(name)
	if name == "" {
		return errors.New("which figure? acc, acc=json:accuracy, acc=re:Accuracy: ([0-9.]+)")
	}
	had := len(p.figures)
	p.figures = slices.DeleteFunc(slices.Clone(p.figures), func(f string) bool {
		other, _, _ := strings.Cut(f, "=")
		return strings.TrimSpace(other) == name
	})
	if strings.HasPrefix(arg, "-") {
		if len(p.figures) == had {
			return fmt.Errorf("%s was not added here", quoted(name))
		}
		return nil
	}
	if len(p.figures) == runview.MaxTableNames {
		return fmt.Errorf("%d columns are enough for anybody", runview.MaxTableNames)
	}
	p.figures = append(p.figures, arg)
	return nil
}

func (p *resultsPane) commandGroup(_ *model, arg string) error {
	g := &p.groups
	words := strings.FieldsFunc(arg, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	least := 0
	if n := len(words); n >= 2 && words[n-2] == "min" {
		var err error
		if least, err = strconv.Atoi(words[n-1]); err != nil || least < 0 {
			return fmt.Errorf("%s is no number of jobs: min 3", quoted(words[n-1]))
		}
		words = words[:n-2]
	}
	if len(words) == 0 && arg != "" {
		words = p.defaultGroup()
	}
	if err := p.known(words...); err != nil {
		return err
	}
	if g.on, p.heat.on = len(words) > 0, false; g.on {
		g.by, g.least, g.sort, g.held, g.at = words, least, "", false, 0
	}
	return nil
}

func (p *resultsPane) commandBest(_ *model, arg string) error {
	name, way, _ := cutLast(arg)
	if arg != "" && way != "max" && way != "min" {
		return fmt.Errorf("%s does not say what is best: %s:max or %s:min", quoted(arg), name, name)
	}
	p.best, p.heat.on = arg, false // jobs and groups are marked
	return nil
}

func (p *resultsPane) commandPivot(_ *model, arg string) error {
	words := strings.FieldsFunc(arg, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	if n := len(words); n != 0 && n != 2 && n != 3 {
		return errors.New("rows, columns and a figure: C gamma acc")
	}
	if len(words) > 1 {
		if err := p.known(words[:2]...); err != nil {
			return err
		}
	}
	p.heat = heatView{on: true, pivot: words, number: p.heat.number}
	return nil
}

// known says that a column is none of the table's, as far as that is known here.
func (p *resultsPane) known(names ...string) error {
	have := p.columnNames()
	for _, n := range names {
		if len(have) > 0 && !has(have, n) && !has(have, strings.Trim(n, "[]")) && n != "elapsed_seconds" {
			return unknown("column", n, have)
		}
	}
	return nil
}

// cutLast cuts at the last colon.
func cutLast(s string) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// commandSort sorts the table by one of its columns.
func (p *resultsPane) commandSort(name string, desc bool) error {
	if p.groups.on {
		have := p.groupOrders()
		if !has(have, name) && !has(have, name+"_mean") {
			return unknown("column", name, have[1:])
		}
		p.groups.sort, p.groups.reverse = name, desc
		return nil
	}
	if name == "id" {
		name = "job"
	}
	if err := p.known(name); err != nil {
		return err
	}
	p.by, p.reverse = name, desc
	return nil
}
