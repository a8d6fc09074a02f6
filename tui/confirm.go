package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// confirmation asks before something is destroyed (rule 9). No is the default: only y
// does it, or for many jobs their number, typed.
type confirmation struct {
	title, text string
	number      int // to be typed; 0: y is enough
	typed       string
	yes         func(*model) tea.Cmd
}

// manyJobs is how many jobs may be ended with a single key.
const manyJobs = 100

// newConfirmation asks about n jobs.
func newConfirmation(title, text string, n int, yes func(*model) tea.Cmd) *confirmation {
	c := &confirmation{title: title, text: text, yes: yes}
	if n > manyJobs {
		c.number = n
	}
	return c
}

func (c *confirmation) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	switch {
	case c.number == 0 && key == "y", c.number > 0 && key == "enter" && strings.ReplaceAll(c.typed, ",", "") == itoa(c.number):
		m.modal = nil
		return c.yes(m)
	case c.number > 0 && key == "backspace":
		c.typed = c.typed[:max(0, len(c.typed)-1)]
		return nil
	case c.number > 0 && len(key) == 1 && strings.Contains("0123456789,", key):
		if len(c.typed) < 12 {
			c.typed += key
		}
		return nil
	}
	m.modal = nil
	m.say("nothing was done")
	return nil
}

func (c *confirmation) draw(m *model, w, h int) []string {
	answer := styleBold.Render("y") + ": yes   any other key: no   [y/N] "
	if c.number > 0 {
		answer = "type " + styleBold.Render(thousands(c.number)) + " and " + m.keyName("enter") + " to do it, esc: no   " + c.typed
	}
	var out []string
	for _, l := range m.wrap(m.clean(c.title), w-2) {
		out = append(out, " "+styleBold.Render(l))
	}
	for _, l := range m.wrap(m.clean(c.text), w-2) {
		out = append(out, " "+styleWarn.Render(l))
	}
	out = out[:min(len(out), max(0, h-1))] // the answer is always seen
	return append(out, " "+answer+styleHere.Render(" "))
}
