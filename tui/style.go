package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	"dcs-tui/jobs/runview"
)

// The styles: the 16 ANSI colours, bold, faint and reverse on the terminal's own
// background, so that light and dark themes both work (rule 8). Colour is never
// the only signal.
var (
	styleBold  = inkOf(lipgloss.NewStyle().Bold(true))
	styleFaint = inkOf(lipgloss.NewStyle().Faint(true))
	styleGood  = inkOf(lipgloss.NewStyle().Foreground(lipgloss.Green))
	styleBad   = inkOf(lipgloss.NewStyle().Foreground(lipgloss.Red))
	styleWarn  = inkOf(lipgloss.NewStyle().Foreground(lipgloss.Yellow))
	styleBusy  = inkOf(lipgloss.NewStyle().Foreground(lipgloss.Cyan))
	styleHere  = inkOf(lipgloss.NewStyle().Reverse(true))
	stylePick  = inkOf(lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Magenta))
)

// ink is how a text is drawn: what goes before it and after it. Lip Gloss works that out
// once: for each text it took longer than all else that makes a frame.
type ink struct{ on, off string }

func inkOf(s lipgloss.Style) ink {
	on, off, _ := strings.Cut(s.Render("x"), "x")
	return ink{on, off}
}

// with is both at once.
func (i ink) with(j ink) ink { return ink{i.on + j.on, j.off} }

// Render draws a text of one line.
func (i ink) Render(s string) string {
	if s == "" {
		return ""
	}
	return i.on + s + i.off
}

// glyphs are the marks of the screen, in UTF-8 and in ASCII.
type glyphs struct {
	phase                                [runview.Phases]string
	live, gone, question, warn, cut      string
	bar                                  []string // empty, then eighths of a cell up to full
	badBar, othersBar                    string   // a cell of what failed, of what others use
	plusMinus                            string
	host                                 hostGlyphs
	spark                                []string // lowest to highest
	line, heavy, vertical, heavyVert     string
	corners, heavyCorners                [4]string // top left, top right, bottom left, bottom right
	cursor, picked, down, up, dot, enter string
	left, right                          string // keys
}

// hostGlyphs are the marks of the states of a host.
type hostGlyphs struct{ up, suspect, lost, connecting, waits, draining, disabled string }

var utf8Glyphs = glyphs{
	phase: [runview.Phases]string{
		runview.Ending: "◍", runview.Running: "●", runview.Away: "◌", runview.Handed: "◐", runview.Retry: "↻", runview.Failed: "✗", runview.TimedOut: "⧖",
		runview.Queued: "○", runview.Waits: "◇", runview.Succeeded: "✓", runview.Cancelled: "–", runview.Skipped: "»",
	},
	live: "●", gone: "○", question: "?", warn: "⚠", cut: "…",
	bar: []string{"·", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}, badBar: "▒", othersBar: "░",
	plusMinus: "±", host: hostGlyphs{up: "●", suspect: "?", lost: "✗", connecting: "◌", waits: "↻", draining: "↓", disabled: "–"},
	spark: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	line:  "─", heavy: "━", vertical: "│", heavyVert: "┃",
	corners: [4]string{"┌", "┐", "└", "┘"}, heavyCorners: [4]string{"┏", "┓", "┗", "┛"},
	cursor: ">", picked: "*", down: "▼", up: "▲", dot: "·", enter: "↵", left: "←", right: "→",
}

var asciiGlyphs = glyphs{
	phase: [runview.Phases]string{
		runview.Ending: "!", runview.Running: "@", runview.Away: "?", runview.Handed: "h", runview.Retry: "r", runview.Failed: "x", runview.TimedOut: "t",
		runview.Queued: "o", runview.Waits: "w", runview.Succeeded: "+", runview.Cancelled: "-", runview.Skipped: "s",
	},
	live: "*", gone: "o", question: "?", warn: "!", cut: "~",
	bar: []string{".", "#"}, badBar: "x", othersBar: "o",
	plusMinus: "+-", host: hostGlyphs{up: "@", suspect: "?", lost: "x", connecting: "c", waits: "r", draining: "d", disabled: "-"},
	spark: []string{"_", ".", "-", "=", "#"},
	line:  "-", heavy: "=", vertical: "|", heavyVert: "#",
	corners: [4]string{"+", "+", "+", "+"}, heavyCorners: [4]string{"#", "#", "#", "#"},
	cursor: ">", picked: "*", down: "v", up: "^", dot: ".", enter: "enter", left: "<-", right: "->",
}

// phaseStyle is the colour of a phase; the glyph and the word say the same.
func phaseStyle(p runview.Phase) ink {
	switch p {
	case runview.Running, runview.Handed:
		return styleBusy
	case runview.Retry, runview.Away, runview.Ending, runview.Waits:
		return styleWarn
	case runview.Failed, runview.TimedOut:
		return styleBad
	case runview.Succeeded:
		return styleGood
	}
	return styleFaint
}
