package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

func pasteMsg(s string) tea.Msg { return tea.PasteMsg{Content: s} }

// harmless holds a frame to rule 10.
func harmless(t *testing.T, m *model, what string) {
	t.Helper()
	checkSize(t, m, what)
	onlyStyles(t, m, what)
}

// Rule 10: whatever a job, a parameter, a reason or a refusal says, also in questions,
// boxes and lines to type, the screen stays a screen.
func TestHostileQuestionsAndLines(t *testing.T) {
	for i, text := range append(hostile, strings.Repeat("日本語 \x1b[2J", hugeText)) {
		src := &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
			p := samplePicture(ask)
			if p.Jobs != nil {
				for k := range p.Jobs.Rows {
					r := &p.Jobs.Rows[k]
					r.Title, r.Cause, r.Last, r.Queue, r.Said, r.Host = text, text, text, text, text, text
					r.Progress, r.Phase = -1, runview.Phase(k)%(runview.Phases+1)
					r.Params = []jobs.Param{{Name: text, Value: text}, {Name: "C", Value: text}}
				}
			}
			if p.Detail != nil {
				p.Detail.Why, p.Detail.Command, p.Detail.Row.Phase = text, text, runview.Failed
			}
			return p, nil
		}}
		src.weight = runview.Weight{Running: 1}
		src.answer = func(runview.Action) (*runview.Answer, error) { return nil, &runview.Refused{Why: text} }
		size := [][2]int{{40, 10}, {80, 24}}[i%2]
		m, _ := screenOn(t, src, aRunning+6, size[0], size[1])
		for _, keys := range []string{"w", "esc e", "esc space c y", "/", "esc :", "tab", "esc 4"} {
			do(t, m, strings.Fields(keys)...)
			if m.modal != nil && len(text) < maxTyped {
				m.Update(pasteMsg(text))
			}
			harmless(t, m, keys)
		}
	}
}
