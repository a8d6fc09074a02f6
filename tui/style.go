package tui

import (
	"math"
	"strings"

	"charm.land/lipgloss/v2"

	"dcs-tui/observe/runview"
)

// The styles use the 16 ANSI colors, bold, faint, and reverse on the terminal's own background, so
// that light and dark themes both work (rule 8). Color is never the only signal.
var (
	styleBold     = newTextStyle(lipgloss.NewStyle().Bold(true))
	styleFaint    = newTextStyle(lipgloss.NewStyle().Faint(true))
	styleGood     = newTextStyle(lipgloss.NewStyle().Foreground(lipgloss.Green))
	styleBad      = newTextStyle(lipgloss.NewStyle().Foreground(lipgloss.Red))
	styleWarn     = newTextStyle(lipgloss.NewStyle().Foreground(lipgloss.Yellow))
	styleBusy     = newTextStyle(lipgloss.NewStyle().Foreground(lipgloss.Cyan))
	styleCursor   = newTextStyle(lipgloss.NewStyle().Reverse(true))
	styleSelected = newTextStyle(lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Magenta))
)

// textStyle is a style: the control sequences before and after a text. They are computed once,
// because Lip Gloss would take longer for each text than everything else in a frame.
type textStyle struct{ on, off string }

func newTextStyle(s lipgloss.Style) textStyle {
	on, off, _ := strings.Cut(s.Render("x"), "x")
	return textStyle{on, off}
}

// with combines two styles.
func (i textStyle) with(j textStyle) textStyle { return textStyle{i.on + j.on, j.off} }

// Render draws a text of one line.
func (i textStyle) Render(s string) string {
	if s == "" {
		return ""
	}
	return i.on + s + i.off
}

// glyphs are the characters of the screen, in UTF-8 or in ASCII.
type glyphs struct {
	ascii                                  bool
	live, gone, question, warn, ellipsis   string
	bar                                    []string // empty, then eighths of a cell up to full
	badBar, othersBar                      string   // a cell of failed jobs, and of others' load
	plusMinus                              string
	spark                                  []string // lowest to highest
	line, heavy, vertical, heavyVertical   string
	corners, heavyCorners                  [4]string // top left, top right, bottom left, bottom right
	cursor, selected, down, up, dot, enter string
	left, right                            string // keys
}

var utf8Glyphs = glyphs{
	live: "●", gone: "○", question: "?", warn: "⚠", ellipsis: "…",
	bar: []string{"·", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}, badBar: "▒", othersBar: "░",
	plusMinus: "±", spark: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	line: "─", heavy: "━", vertical: "│", heavyVertical: "┃",
	corners: [4]string{"┌", "┐", "└", "┘"}, heavyCorners: [4]string{"┏", "┓", "┗", "┛"},
	cursor: ">", selected: "*", down: "▼", up: "▲", dot: "·", enter: "↵", left: "←", right: "→",
}

var asciiGlyphs = glyphs{
	ascii: true,
	live:  "*", gone: "o", question: "?", warn: "!", ellipsis: "~",
	bar: []string{".", "#"}, badBar: "x", othersBar: "o",
	plusMinus: "+-", spark: []string{"_", ".", "-", "=", "#"},
	line: "-", heavy: "=", vertical: "|", heavyVertical: "#",
	corners: [4]string{"+", "+", "+", "+"}, heavyCorners: [4]string{"#", "#", "#", "#"},
	cursor: ">", selected: "*", down: "v", up: "^", dot: ".", enter: "enter", left: "<-", right: "->",
}

// choose returns the form of a sign that the screen can show.
func (g *glyphs) choose(utf8, ascii string) string {
	if g.ascii {
		return ascii
	}
	return utf8
}

// phaseInfo is what the screen shows of a phase of a job. The color repeats its sign and its word.
type phaseInfo struct {
	utf8, ascii string
	style       textStyle
	verbPhrase  string // the state of a job, after its name
	help        string
}

var phases = [runview.Phases]phaseInfo{
	runview.Ending:  {"◍", "!", styleWarn, "is already being canceled", "runs, and is being canceled"},
	runview.Running: {"●", "@", styleBusy, "runs", "runs"},
	runview.Suspended: {"‖", "=", styleWarn, "is suspended while a person uses its host",
		"suspended while a person uses its host"},
	runview.Away: {"◌", "?", styleWarn, "runs on a host that cannot be reached now",
		"runs on a host that cannot be reached now"},
	runview.Sent: {"◐", ">", styleBusy, "has been sent to a host",
		"sent to its host, which starts it when a slot is free there"},
	runview.Retry:     {"↻", "r", styleWarn, "waits for its next try", "failed or lost, waits for its next try"},
	runview.Failed:    {"✗", "x", styleBad, "has failed", "failed, and has no try left"},
	runview.TimedOut:  {"⧖", "t", styleBad, "has timed out", "ended because it ran longer than it may"},
	runview.Queued:    {"○", "o", styleFaint, "is queued", "waits for a slot"},
	runview.Waits:     {"◇", "w", styleWarn, "waits for other jobs", "waits for other jobs"},
	runview.Succeeded: {"✓", "+", styleGood, "has succeeded", "succeeded"},
	runview.Canceled:  {"–", "-", styleFaint, "is canceled", "canceled by a person"},
	runview.Skipped: {"»", "s", styleFaint, "was skipped",
		"skipped: as hard as one that timed out, or what it waits for failed"},
}

// phaseInfoOf returns the description of a phase, which a later version of the dispatcher may have
// added.
func phaseInfoOf(p runview.Phase) *phaseInfo {
	if p < runview.Phases {
		return &phases[p]
	}
	return &phaseInfo{"·", ".", styleFaint, "is in a state that this screen does not know", ""}
}

// sign returns the sign of a phase.
func (m *model) sign(p runview.Phase) string {
	return m.glyphs.choose(phaseInfoOf(p).utf8, phaseInfoOf(p).ascii)
}

// drawBar draws a fraction between 0 and 1 in w cells: full cells, a partial one, and empty ones.
func (m *model) drawBar(share float64, w int) string {
	if w <= 0 {
		return ""
	}
	steps := len(m.glyphs.bar) - 1 // distinguishable parts of a cell
	if math.IsNaN(share) {
		share = 0
	}
	n := int(min(1, max(0, share)) * float64(w*steps))
	full, part := n/steps, n%steps
	s := strings.Repeat(m.glyphs.bar[steps], full)
	if part > 0 {
		s += m.glyphs.bar[part]
		full++
	}
	return s + strings.Repeat(m.glyphs.bar[0], w-full)
}

// drawShares draws the parts of a whole in w cells: succeeded, failed, and skipped, each with its
// own glyph, and then the rest. A part above zero has at least one cell if there is space. The bar
// is full only if the whole is done.
func (m *model) drawShares(good, bad, other, whole, w int) string {
	if w <= 0 {
		return ""
	}
	if whole <= 0 {
		return styleFaint.Render(strings.Repeat(m.glyphs.bar[0], w))
	}
	left := w
	cells := func(n int) int {
		if n <= 0 {
			return 0
		}
		n = min(left, max(1, int(float64(n)/float64(whole)*float64(w))))
		left -= n
		return n
	}
	b, o := cells(bad), cells(other)
	exact := float64(good) / float64(whole) * float64(w)
	if good+bad+other < whole { // not complete
		left = max(0, left-1)
	} else {
		exact = float64(left)
	}
	g := min(left, int(exact))
	part := ""
	if steps := len(m.glyphs.bar) - 1; bad+other == 0 && steps > 1 && g < left {
		if n := int((exact - float64(g)) * float64(steps)); n > 0 {
			part = m.glyphs.bar[n]
		}
	}
	full := m.glyphs.bar[len(m.glyphs.bar)-1]
	rest := strings.Repeat(m.glyphs.bar[0], max(0, w-g-b-o-width(part)))
	return styleGood.Render(strings.Repeat(full, g)+part) + styleBad.Render(strings.Repeat(m.glyphs.badBar, b)) +
		styleFaint.Render(strings.Repeat(m.glyphs.othersBar, o)+rest)
}

// sparkline draws the newest w values as a sparkline of w cells, scaled to the highest of them, or
// to top if that is higher. NaN is a gap.
func (m *model) sparkline(values []float64, top float64, w int) string {
	if w <= 0 {
		return ""
	}
	if len(values) > w {
		values = values[len(values)-w:]
	}
	for _, v := range values {
		if !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", w-len(values)))
	for _, v := range values {
		b.WriteString(m.sparkGlyph(v, top))
	}
	return b.String()
}

// sparkGlyph draws one value of at most top as a small bar.
func (m *model) sparkGlyph(v, top float64) string {
	if math.IsNaN(v) {
		return " "
	}
	n := 0
	if top > 0 {
		n = int(v / top * float64(len(m.glyphs.spark)))
	}
	return m.glyphs.spark[min(len(m.glyphs.spark)-1, max(0, n))]
}

// downsample reduces values to n, each the mean of its part. NaN counts only if a part has no other
// values.
func downsample(values []float64, n int) []float64 {
	if len(values) <= n || n <= 0 {
		return values
	}
	out := make([]float64, n)
	for i := range out {
		sum, count := 0.0, 0
		for _, v := range values[i*len(values)/n : (i+1)*len(values)/n] {
			if !math.IsNaN(v) {
				sum, count = sum+v, count+1
			}
		}
		out[i] = math.NaN()
		if count > 0 {
			out[i] = sum / float64(count)
		}
	}
	return out
}
