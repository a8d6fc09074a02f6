package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// reversed are the cells of a line that are drawn reversed, as a text with ^ under them.
func reversed(line string) (text, marks string) {
	on := false
	for line != "" {
		if rest, is := strings.CutPrefix(line, "\x1b["); is {
			codes, after, _ := strings.Cut(rest, "m")
			for code := range strings.SplitSeq(codes, ";") {
				switch code {
				case "", "0", "27":
					on = false
				case "7":
					on = true
				}
			}
			line = after
			continue
		}
		r := []rune(line[:min(4, len(line))])[0]
		mark := " "
		if on {
			mark = "^"
		}
		text, marks, line = text+string(r), marks+mark, line[len(string(r)):]
	}
	return text, marks
}

// Rule 8: the row under the cursor is reversed, but for what is drawn with blocks, which
// would say the opposite: with colours, without, and in ASCII.
func TestTheCursorTurnsNoBarRound(t *testing.T) {
	for _, o := range []Options{{}, {NoColor: true}, {ASCII: true}} {
		o.Source = change(func(p *runview.Picture) {
			if p.Jobs != nil {
				for i := range p.Jobs.Rows {
					p.Jobs.Rows[i].Phase, p.Jobs.Rows[i].Progress = runview.Running, []float64{0, 0.5, 1}[i%3]
				}
			}
		})
		m := newModel(o, func() time.Time { return noon })
		m.Update(tea.WindowSizeMsg{Width: 100, Height: 24})
		refresh(t, m)
		for _, view := range []string{"1", "2"} {
			press(t, m, view)
			for range 3 {
				press(t, m, "j")
				m.frame = ""
				m.draw()
				found := false
				for line := range strings.SplitSeq(m.frame, "\n") {
					text, marks := reversed(line)
					if !strings.HasPrefix(text, ">") {
						continue
					}
					found = true
					cells := []rune(text)
					for i, r := range cells {
						drawn := strings.ContainsRune(strings.Join(m.g.bar, "")+m.g.othersBar+strings.Join(m.g.spark, ""), r) && r > '~'
						if o.ASCII { // letters and dots are bars only in their columns
							drawn = strings.ContainsRune("#", r)
						}
						if drawn && marks[i] == '^' || i == 0 && marks[i] != '^' || i == len(cells)-1 && view == "1" && marks[i] != '^' {
							t.Fatalf("%+v, view %s, cell %d of\n%s\n%s", o, view, i, text, marks)
						}
					}
				}
				if !found {
					t.Fatalf("no cursor:\n%s", plain(m))
				}
			}
		}
	}
}
