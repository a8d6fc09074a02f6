package console

import (
	"fmt"
	"strings"

	"dcs-tui/dispatch"
)

// NoticeLine describes a notice in one line.
func (c *Console) NoticeLine(n dispatch.Notice) string {
	mark := c.Glyph("·", "-")
	text := CleanLine(WithoutSubject(n.Text, n.Host))
	if n.Job != 0 {
		job := fmt.Sprintf("job %d", n.Job)
		return c.Paint(Yellow, mark+" "+job) + "  " + hostPart(n.Host) + WithoutSubject(text, job)
	}
	at := ""
	if !n.At.IsZero() {
		at = n.At.Format("15:04:05") + "  "
	}
	return c.Paint(Dim, mark+" "+at) + hostPart(n.Host) + text
}

// WithoutSubject cuts a host's name, or "job 7", off the beginning of a text: the line has it
// already.
func WithoutSubject(text, subject string) string {
	if rest, ok := strings.CutPrefix(text, subject); ok && subject != "" && rest != "" && (rest[0] == ' ' || rest[0] == ':') {
		return strings.TrimLeft(rest, ": ")
	}
	return text
}

func hostPart(host string) string {
	if host == "" {
		return ""
	}
	return CleanLine(host) + "  "
}
