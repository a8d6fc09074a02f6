package tui

import (
	"testing"

	"charm.land/lipgloss/v2"
)

// An ink gives what Lip Gloss would give, once it has been worked out (rule 8: the
// same styles); a text of nothing stays nothing.
func TestInkIsTheStyle(t *testing.T) {
	for name, s := range map[string]lipgloss.Style{
		"none": lipgloss.NewStyle(), "bold": lipgloss.NewStyle().Bold(true), "colour": lipgloss.NewStyle().Foreground(lipgloss.Red),
		"several": lipgloss.NewStyle().Bold(true).Reverse(true).Foreground(lipgloss.Magenta),
	} {
		for _, text := range []string{"x", "ws01 ● up", " a  b "} {
			if got, want := inkOf(s).Render(text), s.Render(text); got != want {
				t.Errorf("%s of %q: %q, Lip Gloss gives %q", name, text, got, want)
			}
		}
	}
	if got := styleBad.Render(""); got != "" {
		t.Errorf("nothing: %q", got)
	}
	if got, want := styleBad.with(styleHere).Render("x"), "\x1b[31m\x1b[7mx\x1b[m"; got != want {
		t.Errorf("both: %q, want %q", got, want)
	}
}
