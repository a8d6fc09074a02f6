package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// fetched is what a question to the source has brought, and what is done with it.
type fetched struct {
	box  *waiting // for it
	then func(*model) tea.Cmd
}

// await asks the source something. Until the answer is there no key does anything but esc:
// two quick keys do not do two things, and a y that was typed before a question was there
// confirms nothing. ask runs beside the screen; what it returns has the model again.
func (m *model) await(box *waiting, ask func(context.Context) func(*model) tea.Cmd) tea.Cmd {
	m.modal = box
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		return fetched{box, ask(ctx)}
	}
}

func (f fetched) apply(m *model) tea.Cmd {
	if m.modal != modal(f.box) { // left with esc
		return nil
	}
	m.modal = nil
	cmd := f.then(m)
	return tea.Batch(cmd, f.box.retype(m))
}

// weigh asks what it would cost to end jobs, and goes on with the answer.
func (m *model) weigh(which jobs.Ranges, then func(*model, runview.Weight) tea.Cmd) tea.Cmd {
	src := m.src
	return m.await(&waiting{}, func(ctx context.Context) func(*model) tea.Cmd {
		w, err := src.Weigh(ctx, which)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.complain("nothing was done: " + err.Error())
				return nil
			}
			return then(m, w)
		}
	})
}

// loss says what ending jobs would cost: "3 running, 14h32 of run time lost; 5 queued".
func loss(w runview.Weight) string {
	s := "nothing running is touched"
	if w.Running > 0 {
		s = fmt.Sprintf("%s running, %s of run time lost", thousands(w.Running), span(w.Lost))
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

// detail asks for the details of a job and goes on with them.
func (m *model) detail(id jobs.ID, then func(*model, *runview.Detail) tea.Cmd) tea.Cmd {
	return m.detailFor(&waiting{}, id, then)
}

func (m *model) detailFor(box *waiting, id jobs.ID, then func(*model, *runview.Detail) tea.Cmd) tea.Cmd {
	src := m.src
	return m.await(box, func(ctx context.Context) func(*model) tea.Cmd {
		pic, err := src.Look(ctx, runview.Ask{Focus: id})
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			err = errors.New("no answer for " + span(lookTimeout))
		case err == nil && (pic.Detail == nil || pic.Detail.Row.ID != id):
			err = fmt.Errorf("there is no %s", jobName(id))
		}
		return func(m *model) tea.Cmd {
			if err != nil {
				m.complain(jobName(id) + ": " + err.Error())
				return nil
			}
			return then(m, pic.Detail)
		}
	})
}

func (m *model) whyCurrent() tea.Cmd {
	r, ok := m.job()
	if !ok {
		m.complain("there is no job under the cursor yet")
		return nil
	}
	return m.why(r.ID)
}

// why shows why a job is not running, in the dispatcher's own words (X7).
func (m *model) why(id jobs.ID) tea.Cmd {
	return m.detail(id, func(m *model, d *runview.Detail) tea.Cmd {
		text := d.Why
		if text == "" {
			text = fmt.Sprintf("%s %s.", jobName(id), stands(d.Row.Phase))
		}
		if last := lastWords(d); last != "" && !strings.Contains(text, last) {
			text += " The last line of its stderr: " + last
		}
		m.modal = &saying{title: fmt.Sprintf("Why %d?", id), text: text}
		return nil
	})
}

// lastWords is the last line of stderr of the newest try that failed; "" if it wrote none.
func lastWords(d *runview.Detail) string {
	if d.Row.Phase == runview.Succeeded {
		return ""
	}
	if d.Row.Last != "" {
		return d.Row.Last
	}
	for i := len(d.Attempts) - 1; i >= 0; i-- {
		if last := d.Attempts[i].Last; last != "" {
			return last
		}
	}
	return ""
}

// saying shows a text in full until a key is pressed.
type saying struct {
	page
	title, text string
}

func (s *saying) draw(m *model, w, h int) []string {
	s.lines, s.h = m.wrap(m.clean(s.text), w-4), max(1, h-2)
	s.scroll(m, 0)
	out := []string{m.rule(s.title, w, true)}
	for _, l := range limit(s.lines[s.top:], s.h) {
		out = append(out, "  "+l)
	}
	hint := "  any key closes this"
	if len(s.lines) > s.h {
		hint = "  j k: more of it, any other key closes this"
	}
	return append(out, styleFaint.Render(hint))
}
