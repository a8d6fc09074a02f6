package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// confirmation is a question before something is destroyed (rule 9). Only y confirms or, for many
// jobs, typing their number. Any other key has no effect.
type confirmation struct {
	title, text    string
	requiredNumber int // number that must be typed; 0: y is enough
	typed          string
	onYes          func(*model) tea.Cmd
}

// manyJobs is the maximum number of jobs that a single key may end.
const manyJobs = 100

// newConfirmation returns a question about n jobs.
func newConfirmation(title, text string, n int, yes func(*model) tea.Cmd) *confirmation {
	c := &confirmation{title: title, text: text, onYes: yes}
	if n > manyJobs {
		c.requiredNumber = n
	}
	return c
}

func (c *confirmation) key(m *model, msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case c.requiredNumber == 0 && key == "y", c.requiredNumber > 0 && key == "enter" &&
		strings.ReplaceAll(c.typed, ",", "") == itoa(c.requiredNumber):
		m.modal = nil
		return c.onYes(m)
	case c.requiredNumber > 0 && key == "backspace":
		c.typed = c.typed[:max(0, len(c.typed)-1)]
		return nil
	case c.requiredNumber > 0 && len(key) == 1 && strings.Contains("0123456789,", key):
		if len(c.typed) < 12 {
			c.typed += key
		}
		return nil
	}
	m.modal = nil
	m.showMessage("nothing was done")
	return nil
}

func (c *confirmation) draw(m *model, w, h int) []string {
	answer := styleBold.Render("y") + ": yes   any other key: no   [y/N] "
	if c.requiredNumber > 0 {
		answer = "type " + styleBold.Render(text.Thousands(c.requiredNumber)) + " and " + m.keyName("enter") +
			" to do it, esc: no   " + c.typed
	}
	out := append(m.wrapStyled(m.clean(c.title), &styleBold, w), m.wrapStyled(m.clean(c.text), &styleWarn, w)...)
	out = firstLines(out, h-1) // the answer is always visible
	return append(out, " "+answer+styleCursor.Render(" "))
}

// leave closes the screen. If the run continues, leave first asks what should happen to it.
func (m *model) leave() tea.Cmd {
	if m.snap == nil || m.isUndispatched() {
		return tea.Quit
	}
	m.modal = &leaveModal{}
	return nil
}

// leaveModal asks what should happen to the run. Its keys are bindings, so that it shows exactly
// the keys that work.
type leaveModal struct{}

func (l *leaveModal) keys(m *model) []binding {
	drain := key("drain", "drain", "what runs finishes, nothing more starts, then the run ends",
		func(m *model) tea.Cmd {
			m.modal = nil
			return m.startAction(action.Request{Do: action.DrainRun})
		})
	if m.snap.Draining != "" {
		drain = key("pause", "continue", "launch again: the drain is over, the run is not", func(m *model) tea.Cmd {
			m.modal = nil
			return m.startAction(action.Request{Do: action.Continue})
		})
	}
	return m.withKeys([]binding{
		key("detach leave", "detach", "the run continues in the background", func(*model) tea.Cmd { return tea.Quit }),
		drain,
		key("cancel", "cancel", "everything that runs or waits is ended (asks again)", (*model).cancelRun),
		key("back", "stay", "back to the screen", func(m *model) tea.Cmd { m.modal = nil; return nil }),
	})
}

func (l *leaveModal) key(m *model, msg tea.KeyPressMsg) tea.Cmd {
	cmd, _ := m.pressIn(l.keys(m), msg.String())
	return cmd
}

func (l *leaveModal) draw(m *model, w, h int) []string {
	name := m.clean(m.snap.Run.Name)
	count := m.snap.RunningText() + ", " + m.snap.QueuedText()
	title := fmt.Sprintf(" Leave %s? ", m.cut(name, max(8, w/2)))
	if width(title)+width(count) > w {
		title = " Leave? "
	}
	out := []string{styleBold.Render(title) + count}
	wide := 7
	for _, b := range l.keys(m) {
		wide = max(wide, len(b.label))
	}
	for _, b := range l.keys(m) {
		help := b.help + text.If(b.label == "detach", "; dcs-tui attach "+name+" comes back")
		if width(help) > w-7-wide { // too long: use the short form
			help = shortLeaveHelp[b.label]
		}
		out = append(out, "  "+styleBold.Render(m.fit(b.firstKey(), 4))+m.fit(b.label, wide)+" "+help)
	}
	if len(out) > h { // only the words
		line := ""
		for _, b := range l.keys(m) {
			line += " " + styleBold.Render(b.firstKey()) + " " + b.label + " "
		}
		return []string{line}
	}
	return out
}

// shortLeaveHelp contains the help of the keys in at most 26 letters.
var shortLeaveHelp = map[string]string{
	"detach": "the run continues", "drain": "runs finish, then it ends", "continue": "launch again",
	"cancel": "end all jobs (asks again)", "stay": "back to the screen",
}

// showQuestion shows a question of the dispatcher (live.Question) once. It waits until the user has
// finished typing or answering something else. If the run ends while the user is asked how to leave
// it, the screen closes.
func (m *model) showQuestion() tea.Cmd {
	if _, leaving := m.modal.(*leaveModal); leaving && m.isUndispatched() {
		return tea.Quit // nothing is left to ask about
	}
	asked, open := m.modal.(*questionModal)
	q := (*live.Question)(nil)
	if m.snap != nil && !m.isUndispatched() {
		q = m.snap.Question
	}
	switch {
	case q == nil && open: // another screen has answered
		m.modal = nil
		m.showMessage("the question was answered elsewhere, or is no longer asked")
	case q == nil || q.ID == m.answeredID:
	case open && asked.q.ID == q.ID:
	case open || m.modal == nil:
		m.modal = &questionModal{q: *q}
	}
	return nil
}

// questionModal is an input line for the answer to the dispatcher. For a secret, it does not show
// even the length.
type questionModal struct {
	q    live.Question
	text editableText
}

func (p *questionModal) key(m *model, msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "enter":
		if len(p.text.text) == 0 {
			return nil // an empty answer would be a refusal
		}
		return p.reply(m, p.text.String())
	case "esc":
		return p.reply(m, "")
	case "ctrl+c": // leaving the screen is not a refusal: the question is asked again
		m.modal = nil
		return m.leave()
	}
	p.text.key(msg)
	return nil
}

// paste inserts the pasted text up to the end of its first line.
func (p *questionModal) paste(_ *model, s string) tea.Cmd {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) <= maxTyped {
		p.text.insert(strings.TrimRight(s, "\r"))
	}
	return nil
}

func (p *questionModal) reply(m *model, text string) tea.Cmd {
	m.modal, m.answeredID = nil, p.q.ID
	clear(p.text.text) // keep a secret in memory no longer than needed
	src, id := m.src, p.q.ID
	return callSource(actTimeout, func(ctx context.Context) reply {
		err := src.Reply(ctx, id, text)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.answeredID = 0 // the question is shown again
				m.showActionError("answer", err)
			}
			return nil
		}
	})
}

func (p *questionModal) draw(m *model, w, h int) []string {
	out := firstLines(m.wrapStyled(m.glyphs.question+" "+m.clean(p.q.Text), &styleBold, w), max(1, h-2))
	typed := " " + p.text.draw(m, w-2)
	if p.q.Secret {
		typed = " " + styleCursor.Render(" ") + styleFaint.Render(" (what is typed is not shown)")
	}
	return append(out, typed, styleFaint.Render(" "+m.glyphs.enter+" answers, esc refuses"))
}

// waitModal receives the keys while the source computes an answer that a key needs.
type waitModal struct {
	keepsText bool // text typed meanwhile belongs to the line that is about to open
	keepsKeys bool // keys pressed meanwhile apply to what the answer selects
	kept      []tea.Msg
	onCancel  func() // called instead of using the answer after esc; may be nil
}

func (p *waitModal) key(m *model, msg tea.KeyPressMsg) tea.Cmd {
	if key := msg.String(); key == "esc" || key == "ctrl+c" {
		m.modal = nil
		m.showMessage("nothing was done")
		return nil
	}
	p.keepKey(msg)
	return nil
}

func (p *waitModal) paste(_ *model, s string) tea.Cmd {
	p.keepKey(tea.PasteMsg{Content: s})
	return nil
}

func (p *waitModal) keepKey(msg tea.Msg) {
	if (p.keepsText || p.keepsKeys) && len(p.kept) < maxKept {
		p.kept = append(p.kept, msg)
	}
}

// maxKept bounds the keys that are kept.
const maxKept = 1000

// retype repeats the kept keys. In a line, it stops at an enter: a text that was not shown must not
// be confirmed. It stops at a question for the same reason.
func (p *waitModal) retype(m *model) tea.Cmd {
	var cmds []tea.Cmd
	for _, msg := range p.kept {
		if _, waits := m.modal.(*waitModal); p.keepsKeys && (waits || m.modal == nil) {
			cmds = append(cmds, m.handle(msg))
			continue
		}
		line, ok := m.modal.(*inputLine)
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

// draw draws the previous footer, so that nothing moves during a short wait.
func (p *waitModal) draw(m *model, w, h int) []string {
	m.modal = nil
	foot := m.footer()
	m.modal = p
	return foot
}

// sourceTimeout bounds a call of the source that the user waits for.
const sourceTimeout = 10 * time.Second

// awaitAnswer calls the source. Until it answers, only esc works, and box may keep other keys for
// later. Therefore two quick keys do not start two actions at once, and a y typed before a question
// is visible confirms nothing.
func (m *model) awaitAnswer(box *waitModal, limit time.Duration, ask func(context.Context) reply) tea.Cmd {
	m.modal = box
	return callSource(limit, func(ctx context.Context) reply {
		then := ask(ctx)
		return func(m *model) tea.Cmd {
			switch {
			case m.modal == modal(box):
				m.modal = nil
				cmd := then(m)
				return tea.Batch(cmd, box.retype(m))
			case box.onCancel != nil: // closed with esc
				box.onCancel()
			}
			return nil
		}
	})
}

// withCost requests the cost of ending jobs, and then calls then with it.
func (m *model) withCost(which jobs.Ranges, then func(*model, runview.Cost) tea.Cmd) tea.Cmd {
	src := m.src
	return m.awaitAnswer(&waitModal{keepsKeys: true}, sourceTimeout, func(ctx context.Context) reply {
		cost, err := src.Cost(ctx, which)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.showError("nothing was done: " + err.Error())
				return nil
			}
			return then(m, cost)
		}
	})
}

// describeCost describes the cost of ending jobs: "3 running, 14h32 of run time lost; 5 queued".
func describeCost(cost runview.Cost) string {
	s := "running jobs are not affected"
	if cost.Running > 0 {
		s = fmt.Sprintf("%s running, %s of run time lost", text.Thousands(cost.Running), text.Span(cost.Lost))
	}
	return s + text.If(cost.Sent > 0, "; "+text.Thousands(cost.Sent)+" sent, not known to have started") +
		text.If(cost.Queued > 0, "; "+text.Thousands(cost.Queued)+" queued") +
		text.If(cost.Over > 0, "; "+text.Thousands(cost.Over)+" over already, which stay as they are")
}

// withDetail requests the details of a job, and then calls then with them.
func (m *model) withDetail(id jobs.ID, then func(*model, *runview.Detail) tea.Cmd) tea.Cmd {
	return m.withDetailIn(&waitModal{}, id, then)
}

func (m *model) withDetailIn(box *waitModal, id jobs.ID, then func(*model, *runview.Detail) tea.Cmd) tea.Cmd {
	src := m.src
	return m.awaitAnswer(box, sourceTimeout, func(ctx context.Context) reply {
		snap, err := src.Snapshot(ctx, runview.Query{Focus: id})
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			err = errors.New("no answer for " + text.Span(sourceTimeout))
		case err == nil && (snap.Detail == nil || snap.Detail.Row.ID != id):
			err = fmt.Errorf("there is no %s", jobName(id))
		}
		return func(m *model) tea.Cmd {
			if err != nil {
				m.showError(jobName(id) + ": " + err.Error())
				return nil
			}
			return then(m, snap.Detail)
		}
	})
}

// showWhy shows why a job is not running, in the dispatcher's words.
func (m *model) showWhy(id jobs.ID) tea.Cmd {
	return m.withDetail(id, func(m *model, detail *runview.Detail) tea.Cmd {
		text := cmp.Or(detail.Why, fmt.Sprintf("%s %s.", jobName(id), phaseInfoOf(detail.Row.Phase).verbPhrase))
		if last := lastStderr(detail); last != "" {
			text += " The last line of its stderr: " + last
		}
		m.openNote(fmt.Sprintf("Why %d?", id), text)
		return nil
	})
}

// lastStderr returns the last line of stderr of the newest failed attempt, or "" if there is none.
func lastStderr(detail *runview.Detail) string {
	if detail.Row.Phase == runview.Succeeded {
		return ""
	}
	if detail.Row.Last != "" {
		return detail.Row.Last
	}
	last := ""
	for _, a := range detail.Attempts {
		last = cmp.Or(a.Last, last)
	}
	return last
}
