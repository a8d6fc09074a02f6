package tui

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// waiting takes the keys while an answer is under way that a key has asked for.
type waiting struct {
	keeps bool // what is typed meanwhile is for the line that is about to open
	typed []tea.Msg
}

func (p *waiting) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if key := k.String(); key == "esc" || key == "ctrl+c" {
		m.modal = nil
		m.say("nothing was done")
		return nil
	}
	p.keep(k)
	return nil
}

func (p *waiting) paste(_ *model, s string) tea.Cmd {
	p.keep(tea.PasteMsg{Content: s})
	return nil
}

func (p *waiting) keep(msg tea.Msg) {
	if p.keeps && len(p.typed) < maxKept {
		p.typed = append(p.typed, msg)
	}
}

// maxKept bounds the keys that are kept for a line.
const maxKept = 1000

// retype gives a line what was typed before it was there, up to an enter: nobody takes
// what he has not seen.
func (p *waiting) retype(m *model) tea.Cmd {
	var cmds []tea.Cmd
	for _, msg := range p.typed {
		line, ok := m.modal.(*input)
		if !ok {
			break
		}
		switch msg := msg.(type) {
		case tea.KeyPressMsg:
			if msg.String() == "enter" {
				return tea.Batch(cmds...)
			}
			cmds = append(cmds, line.key(m, msg))
		case tea.PasteMsg:
			cmds = append(cmds, line.paste(m, msg.Content))
		}
	}
	return tea.Batch(cmds...)
}

// draw shows the footer as it was: nothing moves for the blink of an eye that it takes.
func (p *waiting) draw(m *model, w, h int) []string {
	m.modal = nil
	foot := m.footer()
	m.modal = p
	return foot
}

// lookTimeout bounds a question to the source that a person waits for.
const lookTimeout = 10 * time.Second

// weighed is what it would cost to end some jobs.
type weighed struct {
	box    *waiting // for it
	weight runview.Weight
	err    error
	then   func(m *model, w runview.Weight) tea.Cmd
}

// weigh asks what it would cost to end jobs, and goes on with the answer. Until it is
// there no key does anything but esc: two quick keys do not do two things, and a y
// that was typed before the question was there confirms nothing.
func (m *model) weigh(which jobs.Ranges, then func(*model, runview.Weight) tea.Cmd) tea.Cmd {
	box := &waiting{}
	m.modal = box
	src := m.src
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		w, err := src.Weigh(ctx, which)
		return weighed{box, w, err, then}
	}
}

func (w weighed) apply(m *model) tea.Cmd {
	if m.modal != modal(w.box) { // left with esc
		return nil
	}
	m.modal = nil
	if w.err != nil {
		m.complain("nothing was done: " + w.err.Error())
		return nil
	}
	return w.then(m, w.weight)
}

// loss says what ending jobs would cost: "3 running, 14 h 32 of run time lost; 5 queued".
func loss(w runview.Weight) string {
	s := "nothing running is touched"
	if w.Running > 0 {
		s = fmt.Sprintf("%s running, %s of run time lost", thousands(w.Running), cpuTime(w.Lost))
	}
	if w.Handed > 0 {
		s += "; " + thousands(w.Handed) + " handed over, not known to have started"
	}
	if w.Queued > 0 {
		s += "; " + thousands(w.Queued) + " queued"
	}
	if w.Over > 0 {
		s += "; " + thousands(w.Over) + " over already, which stay as they are"
	}
	return s
}

// cpuTime writes a sum of run times: 14 h 32, 12 min, 40 s.
func cpuTime(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%s h %02d", thousands(int(d/time.Hour)), d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", max(0, d)/time.Second)
}
