package tui

import (
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// filterDelay is how long after a key the list is asked for anew: whoever types fast
// does not wait for each letter.
const filterDelay = 120 * time.Millisecond

// filterDue says that nothing was typed for a while.
type filterDue struct {
	list *list
	text string
	line *input
}

// openFilter opens the line of the filter; the list follows what is typed.
func (m *model) openFilter(l *list) tea.Cmd {
	line := &input{prompt: " /", text: newEdited(l.filter), past: &m.jobs.filters, filters: l}
	line.complete = (*model).filterWords
	line.changed = func(m *model, text string) tea.Cmd {
		return tea.Tick(filterDelay, func(time.Time) tea.Msg { return filterDue{l, text, line} })
	}
	line.done = func(m *model, text string) (tea.Cmd, error) {
		if l.setFilter(text); l.wrongNow() != "" {
			return nil, errors.New(l.wrong)
		}
		return nil, nil
	}
	line.left = func(m *model) tea.Cmd { l.setFilter(""); return nil }
	line.note = func(m *model, w int) []string { return m.filterNote(l, line.text.String(), w) }
	m.modal = line
	return nil
}

func (d filterDue) apply(m *model) tea.Cmd {
	if m.modal == modal(d.line) && d.line.text.String() == d.text {
		d.list.setFilter(d.text)
	}
	return nil
}

func (l *list) setFilter(text string) {
	if text = strings.TrimSpace(text); text != l.filter {
		l.filter = text
	}
}

// wrongNow is what is wrong with the filter, if the list still is that of another one.
func (l *list) wrongNow() string {
	if l.wrongOf == l.query() && (l.page == nil || !l.fits(l.page)) {
		return l.wrong
	}
	return ""
}

// asOne is a filter that stands beside others: an `or` in it is not about them.
func asOne(filter string) string {
	if strings.Contains(filter, "||") || strings.Contains(strings.ToLower(filter), "or") {
		return "(" + filter + ")"
	}
	return filter
}

// filterNote says what is wrong with a filter, or how many jobs it matches.
func (m *model) filterNote(l *list, text string, w int) []string {
	page, fits := l.page, l.page != nil && l.fits(l.page)
	if p := m.result; l == &p.list && !p.rows() && p.table != nil { // groups and cells are of the jobs that match
		page, fits = &p.table.Page, p.table.Page.Filter == l.query()
	}
	wrong := ""
	if page != nil {
		wrong = page.Wrong
	}
	if held := l.wrongNow(); held != "" {
		fits, wrong = true, held
	}
	if !fits || strings.TrimSpace(text) != l.filter {
		return []string{styleFaint.Render(" " + m.g.cut)}
	}
	if wrong != "" {
		var out []string
		for _, line := range m.wrap(m.g.phase[runview.Failed]+" "+m.clean(wrong), w-2) {
			out = append(out, " "+styleBad.Render(line))
		}
		return out
	}
	if p := m.result; l == &p.list && p.groups.on && !p.heat.on && p.table.Groups != nil {
		return []string{styleFaint.Render(" " + plural(len(p.table.Groups.Rows)+p.table.Groups.More, "group"))}
	}
	return []string{styleFaint.Render(" " + plural(page.Matched, "job"))}
}

// filterWords completes fields and what is known of their values.
func (m *model) filterWords(before string) (int, []string) {
	start := strings.LastIndexByte(before, ' ') + 1
	word := before[start:]
	if word == "" {
		return start, nil
	}
	before = word[:len(word)-len(strings.TrimLeft(word, "!("))]
	start, word = start+len(before), word[len(before):]
	known := slices.Clone(filterFields)
	for _, p := range m.jobs.seen.params {
		known = append(known, p+"=")
	}
	if m.focus() == pane(m.result) {
		for _, name := range m.result.named(runview.Figure) {
			known = append(known, name+">", name+"<")
		}
	}
	if i := strings.IndexByte(word, '='); i > 0 {
		switch key := word[:i+1]; key {
		case "state=":
			known = prefixed(key, stateWords)
		case "host=":
			known = prefixed(key, m.hostNames())
		}
	}
	return start, startingWith(known, word)
}

// filterFields and stateWords are offered by completion; jobs/runview has their meaning.
var (
	filterFields = []string{"state=", "host=", "queue=", "tags~", "exit=", "signal=", "try=", "prio=", "time>", "job=", "straggler=yes", "not "}
	stateWords   = []string{"open", "done", "bad", "run", "queue", "retry", "fail", "timeout", "ok", "cancel", "skip", "waits", "handed", "away", "ending",
		"queued", "running", "succeeded", "failed", "timed_out", "cancelled", "skipped"}
)

func prefixed(p string, words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = p + w
	}
	return out
}

// startingWith are the words that begin as typed.
func startingWith(words []string, typed string) []string {
	var out []string
	for _, w := range words {
		if len(w) >= len(typed) && strings.EqualFold(w[:len(typed)], typed) && w != typed {
			out = append(out, w)
		}
	}
	return out
}
