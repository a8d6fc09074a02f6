package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/observe/runview"
)

// Set applies a setting of the user's configuration file: the value of a key in a table, which is ""
// for a key outside of tables. The error names the setting, but neither the file nor the line.
func (o *Options) Set(table, key string, value any) error {
	switch table {
	case "":
		return o.setPlain(key, value)
	case "columns":
		return o.setColumns(key, value)
	case "keys":
		return o.setKeys(key, value)
	}
	return CheckSettingsTable(table)
}

// CheckSettingsTable returns an error if the configuration file has no table of that name.
func CheckSettingsTable(name string) error {
	if !slices.Contains(settingsTables, name) {
		return query.Unknown("table", name, settingsTables)
	}
	return nil
}

// The settings that are not in a table, and the tables.
var (
	plainSettings  = []string{"mouse", "ascii", "colors", "view"}
	settingsTables = []string{"columns", "keys"}
)

func (o *Options) setPlain(key string, value any) error {
	switch key {
	case "mouse":
		return setBool(&o.Mouse, key, value)
	case "ascii":
		return setBool(&o.ASCII, key, value)
	case "colors":
		return setWord(&o.Colors, key, value, []string{"auto", "none", "16", "256"})
	case "view":
		return setWord(&o.View, key, value, viewNames())
	case "columns", "keys":
		return fmt.Errorf("%s is a table: its settings are below a line [%s]", key, key)
	}
	return query.Unknown("setting", key, slices.Concat(plainSettings, settingsTables))
}

func setBool(to *bool, key string, value any) error {
	is, ok := value.(bool)
	if !ok {
		return fmt.Errorf("%s must be true or false, without quotes", key)
	}
	*to = is
	return nil
}

// setWord sets one of words.
func setWord(to *string, key string, value any, words []string) error {
	word, ok := value.(string)
	if !ok || !slices.Contains(words, word) {
		return fmt.Errorf("%s is one of \"%s\"", key, strings.Join(words, "\", \""))
	}
	*to = word
	return nil
}

// setColumns sets the columns of a view: only these are shown, as far as they fit.
func (o *Options) setColumns(view string, value any) error {
	t := slices.Index(viewNames(), view)
	if t < 0 {
		return query.Unknown("view", view, viewNames())
	}
	list, ok := value.([]any)
	var headings []string
	for _, x := range list {
		s, is := x.(string)
		ok = ok && is
		headings = append(headings, strings.ToUpper(s))
	}
	if !ok {
		return fmt.Errorf(`columns.%s is a list of headings, such as ["ID", "STATE", "NAME"]`, view)
	}
	known, fixed := headingsOf(tab(t))
	if known == nil {
		return errors.New("the view " + view + " has no columns to choose")
	}
	for _, h := range headings {
		if fixed && !slices.Contains(known, h) {
			return query.Unknown("column", h, known)
		}
	}
	jobs.Insert(&o.Columns, view, headings)
	return nil
}

// headingsOf returns the headings of a view's columns; nil: it has none. They are not fixed where
// parameters and metrics have columns.
func headingsOf(t tab) (headings []string, fixed bool) {
	m := newModel(Options{}, time.Now)
	m.snap = &runview.Snapshot{}
	switch t {
	case tabJobs:
		m.jobs.columns(m, m.w)
	case tabHosts:
		m.hosts.columns(m, m.w)
	case tabResults:
		m.results.columns(m, m.w)
	default:
		return nil, true
	}
	return m.panes[t].columnChoices().headings, t != tabResults
}

// applySettings applies the settings that are not read where they matter.
func (m *model) applySettings() {
	for view, headings := range m.opt.Columns {
		m.panes[slices.Index(viewNames(), view)].columnChoices().only = headings
	}
	if t := slices.Index(viewNames(), m.opt.View); t >= 0 {
		m.tab, m.focusedTab = tab(t), tab(t)
	}
}
