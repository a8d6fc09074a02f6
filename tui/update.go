package tui

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// answered is what came of an action.
type answered struct {
	action runview.Action
	answer *runview.Answer
	err    error
}

// second redraws what counts time.
type second struct{}

// Init begins to look.
func (m *model) Init() tea.Cmd { return tea.Batch(m.look.next, m.tick()) }

func (m *model) tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return second{} })
}

// Update takes one message. Whatever it was, the looker then knows what the screen
// wants to see.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	stays := !m.news(msg) && m.calm()
	cmd := m.take(msg)
	if !stays || !m.calm() {
		m.frame, m.drawnAt = "", m.now()
	}
	m.wish()
	return m, tea.Batch(cmd, m.reading())
}

// news says whether a message, which has not been taken yet, may change more on the
// screen than what counts time. That is drawn anew once a second (rule 3).
func (m *model) news(msg tea.Msg) bool {
	switch msg := msg.(type) {
	case second:
		return m.now().Sub(m.drawnAt) >= minInterval // else all clocks have just been moved
	case looked:
		return !msg.same
	case readDue:
		return false
	case pieceRead:
		return msg.news()
	}
	return true
}

// calm says that nothing on the screen ends by itself.
func (m *model) calm() bool { return m.message.text == "" && m.undo == nil && m.modal == nil }

func (m *model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if m.modal != nil {
			return m.modal.key(m, msg)
		}
		return m.press(msg.String())
	case tea.MouseMsg:
		return m.mouse(msg)
	case tea.PasteMsg:
		if p, ok := m.modal.(interface{ paste(*model, string) tea.Cmd }); ok {
			return p.paste(m, msg.Content)
		}
	case tea.ResumeMsg:
		m.resumed()
	case second:
		if m.message.text != "" && m.now().After(m.message.till) {
			m.message = message{}
		}
		if m.undo != nil && m.now().After(m.undo.till) {
			m.undo = nil
		}
		return m.tick()
	case looked:
		m.see(msg)
		return tea.Batch(m.look.next, m.question())
	case answered:
		m.heard(msg)
	case interface{ apply(*model) tea.Cmd }: // messages of panes and modals
		return msg.apply(m)
	}
	return nil
}

// see takes a picture in.
func (m *model) see(l looked) {
	if l.err != nil {
		m.lookErr = l.err
		return
	}
	if was := m.pic; was != nil && was.Paused != l.pic.Paused && m.message.of == map[bool]runview.Verb{true: runview.Continue, false: runview.Pause}[l.pic.Paused] {
		m.message = message{} // another screen has turned it round
	}
	m.pic, m.gotAt, m.lookErr = l.pic, l.at, nil
	m.folded = m.folded && m.over()
	m.seeOthers()
	for _, p := range m.panes {
		if p, ok := p.(interface{ see(*model) }); ok {
			p.see(m)
		}
	}
	if p, ok := m.extra.(interface{ see(*model) }); ok {
		p.see(m)
	}
}

// wish tells the looker what the screen wants, when that has changed. What is shown
// where is only known after drawing.
func (m *model) wish() {
	if m.look == nil {
		return
	}
	m.draw()
	ask := m.ask()
	key := fmt.Sprintf("%+v %+v %+v %v %d", ask.Jobs, ask.Table, ask.Events, ask.Groups, ask.Focus)
	if key != m.asked {
		m.asked = key
		m.look.want(ask)
	}
}

// doTimeout bounds an action: whoever carries it out may hang.
const doTimeout = 30 * time.Second

// act carries out an action and brings the answer.
func (m *model) act(a runview.Action) tea.Cmd {
	src := m.src
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), doTimeout)
		defer cancel()
		answer, err := src.Do(ctx, a)
		return answered{a, answer, err}
	}
}

// heard shows what came of an action, and keeps what an undo needs.
func (m *model) heard(a answered) {
	var refused *runview.Refused
	switch {
	case errors.As(a.err, &refused):
		m.complain(refused.Why)
	case a.err != nil:
		m.complain(string(a.action.Do) + ": " + a.err.Error())
	default:
		if len(a.answer.Changed) > 0 && a.action.Do == runview.Cancel {
			m.undo = &undo{jobs: a.answer.Changed, till: m.now().Add(undoTime), what: a.answer.Text}
		}
		m.acted(a.action)
		m.say(naming(a.answer.Text, a.action.Jobs))
		m.message.of = a.action.Do
	}
}

// naming puts the number of a single job in the place of "1 job".
func naming(text string, which jobs.Ranges) string {
	if which.Count() != 1 {
		return text
	}
	before, after, is := strings.Cut(text, "1 job")
	if !is || before != "" && !strings.HasSuffix(before, " ") || strings.HasPrefix(after, "s") {
		return text
	}
	return before + jobName(which[0].First) + after
}

func itoa(n int) string { return strconv.Itoa(n) }
