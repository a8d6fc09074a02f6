package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results/sheet"
)

// hostFilter returns a predicate for a filter in the language of the list of jobs. A
// word must occur in the name, the state, or the reason for the state; a comparison
// names a column of the list of hosts. An empty filter matches every host.
func (m *model) hostFilter(text string) (func(*live.Host) bool, error) {
	f, err := sheet.ParseSearch(text)
	if f == nil || err != nil {
		return func(*live.Host) bool { return true }, err
	}
	return sheet.Compile(f, sheet.Rows[*live.Host]{Cells: hostCells, Word: func(w sheet.Word) (func(*live.Host) bool, error) {
		word := strings.ToLower(w.Text)
		return func(h *live.Host) bool {
			return strings.Contains(strings.ToLower(strings.Join([]string{h.Name, hostWord(h), m.clean(h.Reason)}, "\n")), word)
		}, nil
	}})
}

// hostCells finds a column of the list by its heading, which is not case-sensitive.
func hostCells(name string) (sheet.Cells[*live.Host], error) {
	c := sheet.Cells[*live.Host]{Column: sheet.Column{Name: strings.ToLower(name), Role: sheet.Stat}}
	number := func(f func(h *live.Host) float64) { // a negative value is unknown
		c.Value = func(h *live.Host) sheet.Value {
			if n := f(h); n >= 0 {
				return sheet.NumberValue(n)
			}
			return sheet.Value{}
		}
	}
	switch c.Column.Name {
	case "host":
		c.Value = func(h *live.Host) sheet.Value { return sheet.TextValue(h.Name) }
	case "state":
		c.Value = func(h *live.Host) sheet.Value { return sheet.TextValue(hostWord(h)) }
	case "note":
		c.Value = func(h *live.Host) sheet.Value { return sheet.TextValue(h.Note) }
	case "used":
		number(func(h *live.Host) float64 { return float64(h.Running) })
	case "slots":
		number(func(h *live.Host) float64 { return float64(h.Slots) })
	case "load":
		number(func(h *live.Host) float64 { return h.Load[0] })
	case "busy":
		number(func(h *live.Host) float64 { return h.Busy })
	case "ours":
		number(func(h *live.Host) float64 { return h.Ours })
	case "cores":
		number(func(h *live.Host) float64 { return float64(h.Cores) })
	case "mem":
		c.Column.Unit = sheet.Bytes
		number(func(h *live.Host) float64 {
			if h.MemBytes <= 0 || h.MemFree < 0 {
				return -1
			}
			return float64(max(0, h.MemBytes-h.MemFree))
		})
	case "disk":
		c.Column.Unit = sheet.Bytes
		number(func(h *live.Host) float64 { return float64(h.DiskFree) })
	case "link":
		c.Column.Unit = sheet.Seconds
		number(func(h *live.Host) float64 { return h.Delay.Seconds() })
	case "files":
		c.Column.Unit = sheet.Seconds
		number(func(h *live.Host) float64 { return h.FSDelay.Seconds() })
	case "ok":
		number(func(h *live.Host) float64 { return float64(h.Done) })
	case "fail":
		number(func(h *live.Host) float64 { return float64(h.Failed) })
	default:
		return c, fmt.Errorf("hosts have no column %s to compare; quotes make it text", quoted(name))
	}
	return c, nil
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
