package tui

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/results"
)

// inputLine is an input line: a filter, a command, or a job's command. enter confirms it, esc
// closes it.
type inputLine struct {
	prompt     string
	text       editableText
	multiline  bool     // keep pasted newlines
	history    *history // nil: none
	historyPos int      // position in history, counted from the newest
	draft      string   // text before the user went back
	errorText  string   // why the text was refused, until the next key

	// complete returns words for the one that ends at the cursor and begins at start; nil: no
	// completion.
	complete        func(m *model, before string) (start int, words []string)
	completions     []string // words that further tabs cycle through
	completionIndex int
	completionStart int      // where they begin
	filteredList    *jobList // the list whose filter is typed; nil: another kind of line

	onChange  func(m *model, text string) tea.Cmd
	onConfirm func(m *model, text string) (tea.Cmd, error) // an error keeps the line open
	onCancel  func(m *model) tea.Cmd
	noteLines func(m *model, w int) []string // lines below the input
}

// maxTyped bounds the typed or pasted text, in bytes.
const maxTyped = 1 << 20

func (p *inputLine) key(m *model, msg tea.KeyPressMsg) tea.Cmd {
	p.errorText = ""
	key := msg.String()
	if key != "tab" && key != "shift+tab" {
		p.completions = nil
	}
	before := p.text.String()
	switch key {
	case "enter":
		return p.confirm(m)
	case "esc", "ctrl+c":
		m.modal = nil
		if p.onCancel != nil {
			return p.onCancel(m)
		}
		return nil
	case "tab":
		p.completeNext(m, 1)
	case "shift+tab":
		p.completeNext(m, -1)
	case "up", "ctrl+p":
		p.recallHistory(1)
	case "down", "ctrl+n":
		p.recallHistory(-1)
	default:
		if !p.text.key(msg) {
			return nil
		}
	}
	return p.notifyChange(m, before)
}

func (p *inputLine) notifyChange(m *model, before string) tea.Cmd {
	if text := p.text.String(); p.onChange != nil && text != before {
		return p.onChange(m, text)
	}
	return nil
}

// paste inserts a text. Its newlines do not confirm the line.
func (p *inputLine) paste(m *model, s string) tea.Cmd {
	s = strings.TrimRight(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "\n")
	if !p.multiline {
		s = strings.ReplaceAll(s, "\n", " ")
	}
	before := p.text.String()
	if len(before)+len(s) > maxTyped {
		p.errorText = "that is too long to paste here"
		return nil
	}
	p.text.insert(s)
	p.completions = nil
	return p.notifyChange(m, before)
}

// confirm calls done with the text. An error keeps the line open.
func (p *inputLine) confirm(m *model) tea.Cmd {
	text := p.text.String()
	m.modal = nil
	if p.history != nil {
		p.history.add(text)
	}
	p.historyPos = 0
	cmd, err := p.onConfirm(m, text)
	if err != nil {
		p.errorText = err.Error()
		m.modal = p
	}
	return cmd
}

// completeNext completes the word at the cursor: first the common prefix of all candidates, then
// one candidate after another.
func (p *inputLine) completeNext(m *model, by int) {
	if p.complete == nil {
		return
	}
	if len(p.completions) > 0 {
		p.completionIndex = (p.completionIndex + by + len(p.completions)) % len(p.completions)
		p.replaceWord(p.completionStart, p.completions[p.completionIndex])
		return
	}
	before := string(p.text.text[:p.text.pos])
	start, words := p.complete(m, before)
	if len(words) == 0 {
		return
	}
	p.completionStart = len([]rune(before[:start]))
	if len(words) == 1 {
		word := words[0]
		if !strings.HasSuffix(word, ":") && !strings.HasSuffix(word, "=") && p.text.pos == len(p.text.text) {
			word += " "
		}
		p.replaceWord(p.completionStart, word)
		return
	}
	if common := longestCommonPrefix(words); len(common) > len(before)-start {
		p.replaceWord(p.completionStart, common)
		return
	}
	p.completions, p.completionIndex = words, 0
	if by < 0 {
		p.completionIndex = len(words) - 1
	}
	p.replaceWord(p.completionStart, words[p.completionIndex])
}

func (p *inputLine) replaceWord(from int, word string) {
	p.text.deleteTo(from)
	p.text.insert(word)
}

func longestCommonPrefix(words []string) string {
	s := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, s) {
			_, n := utf8.DecodeLastRuneInString(s)
			s = s[:len(s)-n]
		}
	}
	return s
}

// recallHistory replaces the text by an earlier or later line.
func (p *inputLine) recallHistory(by int) {
	if p.history == nil || p.historyPos+by < 0 || p.historyPos+by > len(p.history.lines) {
		return
	}
	if p.historyPos == 0 {
		p.draft = p.text.String()
	}
	p.historyPos += by
	text := p.draft
	if p.historyPos > 0 {
		text = p.history.lines[len(p.history.lines)-p.historyPos]
	}
	p.text = newEditableText(text)
}

func (p *inputLine) draw(m *model, w, h int) []string {
	out := []string{styleBold.Render(p.prompt) + p.text.draw(m, w-width(p.prompt))}
	switch {
	case p.errorText != "":
		out = append(out, m.errorLines(p.errorText, w)...)
	case p.noteLines != nil:
		out = append(append(out, p.hintLine(m, w)), p.noteLines(m, w)...)
	default:
		out = append(out, p.hintLine(m, w))
	}
	return out[:min(len(out), max(1, h))]
}

// hintLine returns the words that tab would complete, or the hints of the keys.
func (p *inputLine) hintLine(m *model, w int) string {
	words, chosen := p.completions, p.completionIndex
	if words == nil && p.complete != nil {
		_, words = p.complete(m, string(p.text.text[:p.text.pos]))
		chosen = -1
	}
	var b strings.Builder
	all := strings.Join(text.Each(words, m.clean), "  ")
	if chosen > 0 && width(all) > w-4 { // the words begin with the chosen one
		words, chosen = words[chosen:], 0
		b.WriteString(m.glyphs.ellipsis + " ")
	}
	for i, word := range words {
		word = m.clean(word)
		if width(b.String())+width(word) > w-4 {
			b.WriteString(m.glyphs.ellipsis)
			break
		}
		if i == chosen {
			word = styleCursor.Render(word)
		}
		b.WriteString(word + "  ")
	}
	if b.Len() == 0 {
		return styleFaint.Render(" " + m.keyName("enter") + " confirms, esc cancels")
	}
	return " " + b.String()
}

// history contains the lines typed before, the newest last.
type history struct{ lines []string }

const maxHistory = 100

func (h *history) add(s string) {
	if s == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == s {
		return
	}
	h.lines = append(h.lines, s)
	h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
}

// editableText is an editable text in one line. It keeps every character, also newlines and control
// characters, because editing must not change the rest of a command. (The text input of Bubbles
// replaces newlines by blanks, and runs programs for the clipboard.)
type editableText struct {
	text []rune
	pos  int
}

func newEditableText(s string) editableText { r := []rune(s); return editableText{r, len(r)} }

func (e *editableText) String() string { return string(e.text) }

func (e *editableText) insert(s string) {
	r := []rune(s)
	e.text = slices.Insert(e.text, e.pos, r...)
	e.pos += len(r)
}

// deleteTo deletes the text between the cursor and a position.
func (e *editableText) deleteTo(pos int) {
	from, to := min(pos, e.pos), max(pos, e.pos)
	e.text = slices.Delete(e.text, from, to)
	e.pos = from
}

// wordPosition returns the position one word before (by -1) or after (by 1) the cursor.
func (e *editableText) wordPosition(by int) int {
	is := func(i int, space bool) bool { // whether the next character in that direction is one
		i += min(by, 0)
		return i >= 0 && i < len(e.text) && unicode.IsSpace(e.text[i]) == space
	}
	i := e.pos
	for is(i, true) {
		i += by
	}
	for is(i, false) {
		i += by
	}
	return i
}

// key changes the text. It returns false if the key has no meaning here.
func (e *editableText) key(msg tea.KeyPressMsg) bool {
	left, right := max(0, e.pos-1), min(len(e.text), e.pos+1)
	switch msg.String() {
	case "left", "ctrl+b":
		e.pos = left
	case "right", "ctrl+f":
		e.pos = right
	case "home", "ctrl+a":
		e.pos = 0
	case "end", "ctrl+e":
		e.pos = len(e.text)
	case "alt+b", "alt+left", "ctrl+left":
		e.pos = e.wordPosition(-1)
	case "alt+f", "alt+right", "ctrl+right":
		e.pos = e.wordPosition(1)
	case "backspace", "ctrl+h":
		e.deleteTo(left)
	case "delete", "ctrl+d":
		e.deleteTo(right)
	case "ctrl+w", "alt+backspace":
		e.deleteTo(e.wordPosition(-1))
	case "alt+d":
		e.deleteTo(e.wordPosition(1))
	case "ctrl+u":
		e.deleteTo(0)
	case "ctrl+k":
		e.deleteTo(len(e.text))
	default:
		if msg.Text == "" || msg.Mod&(tea.ModCtrl|tea.ModAlt) != 0 {
			return false
		}
		e.insert(msg.Text)
	}
	return true
}

// draw draws the part of the text around the cursor in exactly w cells, with the cursor reversed.
func (e *editableText) draw(m *model, w int) string {
	if w < 4 {
		return strings.Repeat(" ", max(0, w))
	}
	before := e.text[max(0, e.pos-2*w):e.pos]
	under, after := " ", []rune(nil)
	if e.pos < len(e.text) {
		under = m.clean(string(e.text[e.pos]))
		if width(under) == 0 {
			under = "?" // a cursor on this character would be invisible
		}
		after = e.text[e.pos+1 : min(len(e.text), e.pos+1+2*w)]
	}
	room := w - 1 - min(width(m.clean(string(after))), w/3) - width(under)
	left := m.clean(string(before))
	for more := len(before) < e.pos || width(left) > room+1; more; more = width(left) > room {
		if len(before) == 0 {
			break
		}
		before = before[1:]
		left = m.glyphs.ellipsis + m.clean(string(before))
	}
	s := left + styleCursor.Render(under) + m.clean(string(after))
	return m.fit(s, w)
}

// filterDelay is the delay after a key before the list is requested again, so that fast typing does
// not request it for each letter.
const filterDelay = 120 * time.Millisecond

// filterDue reports that nothing was typed for filterDelay.
type filterDue struct {
	list *jobList
	text string
	line *inputLine
}

func (d filterDue) apply(m *model) tea.Cmd {
	if m.modal == modal(d.line) && d.line.text.String() == d.text {
		d.list.setFilter(d.text)
	}
	return nil
}

// openFilter opens the filter line. The list is filtered during typing.
func (m *model) openFilter(l *jobList) tea.Cmd {
	line := &inputLine{prompt: " /", text: newEditableText(l.filter), history: &m.jobs.filters, filteredList: l}
	line.complete = (*model).completeFilter
	line.onChange = func(m *model, text string) tea.Cmd {
		return tea.Tick(filterDelay, func(time.Time) tea.Msg { return filterDue{l, text, line} })
	}
	line.onConfirm = func(m *model, text string) (tea.Cmd, error) {
		l.setFilter(text)
		if l.currentFilterError() != "" {
			return nil, errors.New(l.filterError)
		}
		return nil, nil
	}
	line.onCancel = func(m *model) tea.Cmd { l.setFilter(""); return nil }
	line.noteLines = func(m *model, w int) []string { return m.filterNote(l, line.text.String(), w) }
	m.modal = line
	return nil
}

func (l *jobList) setFilter(text string) { l.filter = strings.TrimSpace(text) }

// currentFilterError returns the error of the filter if the list is still that of another filter.
func (l *jobList) currentFilterError() string {
	return text.If(l.filterErrorOf == l.fullFilter() && (l.page == nil || !l.isCurrentPage(l.page)), l.filterError)
}

// parenthesize returns a filter that can be combined with others: if it contains an `or`, it is put
// in parentheses.
func parenthesize(filter string) string {
	if strings.Contains(filter, "||") || strings.Contains(strings.ToLower(filter), "or") {
		return "(" + filter + ")"
	}
	return filter
}

// filterNote returns the error of a filter, or the number of jobs it matches.
func (m *model) filterNote(l *jobList, typed string, w int) []string {
	page, fits := l.page, l.page != nil && l.isCurrentPage(l.page)
	// Groups and cells contain the matching jobs.
	if p := m.results; l == &p.jobList && !p.showsRows() && p.table != nil {
		page, fits = &p.table.Page, p.table.Page.Filter == l.fullFilter()
	}
	wrong := ""
	if page != nil {
		wrong = page.Wrong
	}
	if held := l.currentFilterError(); held != "" {
		fits, wrong = true, held
	}
	if !fits || strings.TrimSpace(typed) != l.filter {
		return []string{styleFaint.Render(" " + m.glyphs.ellipsis)}
	}
	if wrong != "" {
		return m.errorLines(wrong, w)
	}
	if p := m.results; l == &p.jobList && p.groups.isShown && !p.heat.isShown && p.table.Groups != nil {
		return []string{styleFaint.Render(" " + text.Plural(len(p.table.Groups.Rows)+p.table.Groups.More, "group"))}
	}
	return []string{styleFaint.Render(" " + text.Plural(page.Matched, "job"))}
}

// completeFilter completes fields and their known values.
func (m *model) completeFilter(before string) (int, []string) {
	start := strings.LastIndexByte(before, ' ') + 1
	word := before[start:]
	if word == "" {
		return start, nil
	}
	before = word[:len(word)-len(strings.TrimLeft(word, "!("))]
	start, word = start+len(before), word[len(before):]
	known := slices.Clone(filterFields)
	for _, p := range m.jobs.needs.params {
		known = append(known, p+"=")
	}
	if m.focus() == pane(m.results) {
		for _, name := range m.results.columnsOfRole(results.Metric) {
			known = append(known, name+">", name+"<")
		}
	}
	if i := strings.IndexByte(word, '='); i > 0 {
		key := word[:i+1]
		if values := map[string][]string{"state=": stateWords, "host=": m.hostNames()}[key]; values != nil {
			known = text.Each(values, func(value string) string { return key + value })
		}
	}
	return start, startingWith(known, word)
}

// filterFields and stateWords are offered by completion. observe/runview defines their meaning.
var (
	filterFields = []string{"state=", "host=", "queue=", "tags~", "exit=", "signal=", "try=", "prio=", "time>", "job=",
		"straggler=yes", "not "}
	stateWords = []string{"open", "done", "bad", "run", "queue", "retry", "fail", "timeout", "ok", "cancel", "skip",
		"waits", "sent", "away", "ending",
		"queued", "running", "succeeded", "failed", "timed_out", "canceled", "skipped"}
)

// startingWith returns the words that begin with typed.
func startingWith(words []string, typed string) []string {
	var out []string
	for _, w := range words {
		if len(w) >= len(typed) && strings.EqualFold(w[:len(typed)], typed) && w != typed {
			out = append(out, w)
		}
	}
	return out
}
