package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/query"
)

// hostFilter returns a predicate for a filter. A word must occur in the name, the state,
// or the reason for the state; a comparison names a column of the list of hosts. An empty
// filter matches every host.
func (m *model) hostFilter(text string) (func(*live.Host) bool, error) {
	q, err := query.ParseSearch(text)
	if q == nil || err != nil {
		return func(*live.Host) bool { return true }, err
	}
	return query.Compile(q, query.Lookup[*live.Host](hostField), func(word string) func(*live.Host) bool {
		has := query.Contains(word)
		return func(h *live.Host) bool { return has(h.Name) || has(hostWord(h)) || has(m.clean(h.Reason)) }
	})
}

// hostTexts and hostNumbers are the columns of the list of hosts by their headings. A
// negative number is unknown.
var (
	hostTexts = map[string]func(h *live.Host) string{
		"host": func(h *live.Host) string { return h.Name }, "state": hostWord, "note": func(h *live.Host) string { return h.Note },
	}
	hostNumbers = map[string]func(h *live.Host) float64{
		"used":  func(h *live.Host) float64 { return float64(h.Running) },
		"slots": func(h *live.Host) float64 { return float64(h.Slots) },
		"load":  func(h *live.Host) float64 { return h.Load[0] },
		"busy":  func(h *live.Host) float64 { return h.Busy },
		"ours":  func(h *live.Host) float64 { return h.Ours },
		"cores": func(h *live.Host) float64 { return float64(h.Cores) },
		"ok":    func(h *live.Host) float64 { return float64(h.Done) },
		"fail":  func(h *live.Host) float64 { return float64(h.Failed) },
		"disk":  func(h *live.Host) float64 { return float64(h.DiskFree) },
		"link":  func(h *live.Host) float64 { return h.Delay.Seconds() },
		"files": func(h *live.Host) float64 { return h.FSDelay.Seconds() },
		"mem": func(h *live.Host) float64 {
			if h.MemBytes <= 0 || h.MemFree < 0 {
				return -1
			}
			return float64(max(0, h.MemBytes-h.MemFree))
		},
	}
	hostTypes = map[string]query.Type{"mem": query.SizeType, "disk": query.SizeType, "link": query.DurationType, "files": query.DurationType}
)

// hostField finds a column by its heading, which is not case-sensitive.
func hostField(name string) (*query.Field[*live.Host], error) {
	f := &query.Field[*live.Host]{Name: strings.ToLower(name), Fact: true, Type: query.TextType}
	if text := hostTexts[f.Name]; text != nil {
		f.Value = func(h *live.Host) query.Value { return query.TextValue(text(h)) }
		return f, nil
	}
	number := hostNumbers[f.Name]
	if number == nil {
		known := slices.Sorted(maps.Keys(hostNumbers))
		return nil, fmt.Errorf("%w; quotes make it a text", query.Unknown("column", name, slices.AppendSeq(known, maps.Keys(hostTexts))))
	}
	if f.Type = hostTypes[f.Name]; f.Type == query.AnyType {
		f.Type = query.NumberType
	}
	f.Value = func(h *live.Host) query.Value {
		if n := number(h); n >= 0 {
			return query.NumberValue(n)
		}
		return query.Value{}
	}
	return f, nil
}

// show puts the cursor on a host, whatever the filter is.
func (p *hostsPane) show(name string) { p.filter, p.cursor = "", name }

// clear takes the filter away; false: there was none.
func (p *hostsPane) clear() bool {
	had := p.filter != ""
	p.filter = ""
	return had
}

// openFilter opens the line of the filter; the list follows what is typed.
func (p *hostsPane) openFilter(m *model) tea.Cmd {
	set := func(_ *model, s string) tea.Cmd { p.filter = strings.TrimSpace(s); return nil }
	m.modal = &input{prompt: "filter hosts: /", text: newEdited(p.filter), changed: set,
		done: func(m *model, s string) (tea.Cmd, error) {
			_, err := m.hostFilter(s)
			return set(m, s), err
		},
		left: func(m *model) tea.Cmd { return set(m, "") }}
	return nil
}
