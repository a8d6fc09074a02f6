package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// details is what was asked about one job, out of turn.
type details struct {
	id     jobs.ID
	detail *runview.Detail
	err    error
	then   func(*model, *runview.Detail) tea.Cmd
	box    *waiting
}

// detail asks for the details of a job and goes on with them. Keys wait meanwhile.
func (m *model) detail(id jobs.ID, then func(*model, *runview.Detail) tea.Cmd) tea.Cmd {
	return m.detailFor(&waiting{}, id, then)
}

func (m *model) detailFor(box *waiting, id jobs.ID, then func(*model, *runview.Detail) tea.Cmd) tea.Cmd {
	m.modal = box
	src := m.src
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		pic, err := src.Look(ctx, runview.Ask{Focus: id})
		d := details{id: id, err: err, then: then, box: box}
		switch {
		case err != nil:
		case pic.Detail == nil || pic.Detail.Row.ID != id:
			d.err = fmt.Errorf("there is no %s", jobName(id))
		default:
			d.detail = pic.Detail
		}
		return d
	}
}

func (d details) apply(m *model) tea.Cmd {
	if m.modal != modal(d.box) {
		return nil
	}
	m.modal = nil
	if d.err != nil {
		if errors.Is(d.err, context.DeadlineExceeded) {
			d.err = errors.New("no answer for " + span(lookTimeout))
		}
		m.complain(jobName(d.id) + ": " + d.err.Error())
		return nil
	}
	cmd := d.then(m, d.detail)
	return tea.Batch(cmd, d.box.retype(m))
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
	title, text string
	top         int
}

func (s *saying) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "j", "down":
		s.top++
	case "k", "up":
		s.top = max(0, s.top-1)
	default:
		m.modal = nil
	}
	return nil
}

func (s *saying) draw(m *model, w, h int) []string {
	lines := m.wrap(m.clean(s.text), w-4)
	room := max(1, h-2)
	s.top = max(0, min(s.top, len(lines)-room))
	out := []string{m.rule(s.title, w, true)}
	for _, l := range lines[s.top:min(len(lines), s.top+room)] {
		out = append(out, "  "+l)
	}
	hint := "  any key closes this"
	if len(lines) > room {
		hint = "  j k: more of it, any other key closes this"
	}
	return append(out, styleFaint.Render(hint))
}
