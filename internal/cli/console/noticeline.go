package console

import (
	"fmt"

	"dcs-tui/dispatch"
	"dcs-tui/jobs/runview"
)

// NoticeLine describes a notice in one line.
func (c *Console) NoticeLine(n dispatch.Notice) string {
	mark := c.Glyph("·", "-")
	text := CleanLine(runview.WithoutSubject(n.Text, n.Host))
	if n.Job != 0 {
		job := fmt.Sprintf("job %d", n.Job)
		return c.Paint(Yellow, mark+" "+job) + "  " + hostPart(n.Host) + runview.WithoutSubject(text, job)
	}
	at := ""
	if !n.At.IsZero() {
		at = n.At.Format("15:04:05") + "  "
	}
	return c.Paint(Dim, mark+" "+at) + hostPart(n.Host) + text
}

func hostPart(host string) string {
	if host == "" {
		return ""
	}
	return CleanLine(host) + "  "
}
