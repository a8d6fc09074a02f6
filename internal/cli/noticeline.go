package cli

import (
	"fmt"
	"strings"

	"dcs-tui/dispatch"
)

// noticeLine is a notice as a line on the console.
func (c *console) noticeLine(n dispatch.Notice) string {
	mark := c.glyph("·", "-")
	text := cleanLine(withoutSubject(n.Text, n.Host))
	if n.Job != 0 {
		job := fmt.Sprintf("job %d", n.Job)
		return c.paint(yellow, mark+" "+job) + "  " + hostPart(n.Host) + withoutSubject(text, job)
	}
	at := ""
	if !n.At.IsZero() {
		at = n.At.Format("15:04:05") + "  "
	}
	return c.paint(dim, mark+" "+at) + hostPart(n.Host) + text
}

// withoutSubject takes a host's name, or "job 7", off a text that begins with it:
// the line has it already.
func withoutSubject(text, subject string) string {
	if rest, ok := strings.CutPrefix(text, subject); ok && subject != "" && rest != "" && (rest[0] == ' ' || rest[0] == ':') {
		return strings.TrimLeft(rest, ": ")
	}
	return text
}

func hostPart(host string) string {
	if host == "" {
		return ""
	}
	return cleanLine(host) + "  "
}
