package console

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/runview"
)

// maxTitle is the number of runes of a job's name or command that a line shows if its width is
// not known, minTitle the number in the narrowest terminal.
const maxTitle, minTitle = 100, 16

// JobLine describes a finished job in one line:
//
//	✓ ok    17  ws03  12.3 s  name
//	✗ FAIL  18  ws02  210 ms  exit 1, failed 3 times  name  “last line of stderr”
func (c *Console) JobLine(r *results.Result) string {
	color, mark, word := c.stateMark(r.State)
	parts := []string{mark + " " + word, fmt.Sprintf("%4d", r.Job)}
	if r.Host != "" {
		parts = append(parts, jobs.Clean(r.Host, 0))
	}
	if r.Started() != 0 {
		parts = append(parts, results.HumanDuration(r.Elapsed()))
	}
	if r.State != jobs.Succeeded {
		why := causeText(r)
		if r.Failures > 1 {
			why += fmt.Sprintf(", failed %d times", r.Failures)
		}
		parts = append(parts, why)
	} else if r.Failures > 0 {
		parts = append(parts, fmt.Sprintf("after %d failed", r.Failures))
	}
	title, words := r.Name, ""
	if title == "" {
		title = r.Command
	}
	if o := r.Outcome; o != nil && r.State != jobs.Succeeded {
		words = strings.TrimSpace(o.LastLine)
	}
	limit, limitWords := c.titleRoom(utf8.RuneCountInString(strings.Join(parts, "  ")), words)
	parts = append(parts, jobs.Clean(title, limit))
	if words != "" {
		parts = append(parts, c.quote(words, limitWords))
	}
	if o := r.Outcome; o != nil && o.LeftChildren == 1 {
		parts = append(parts, c.Paint(Yellow, "left a process behind"))
	} else if o != nil && o.LeftChildren > 1 {
		parts = append(parts, c.Paint(Yellow, fmt.Sprintf("left %d processes behind", o.LeftChildren)))
	}
	parts[0] = c.Paint(color, parts[0])
	return strings.Join(parts, "  ")
}

// LogLine returns where the output of a job that failed is, and its command if JobLine names
// the job otherwise. It returns "" for other jobs.
func LogLine(r *results.Result) string {
	if r.State != jobs.Failed && r.State != jobs.TimedOut || r.Stderr == "" {
		return ""
	}
	line := "        log " + jobs.Clean(text.Path(r.Stderr), 0)
	if r.Name != "" {
		line += "  of " + jobs.Clean(r.Command, maxTitle)
	}
	return line
}

// titleRoom returns how many runes of a job's title, and of the last line of its stderr, fit
// into a line of the terminal that has used runes already.
func (c *Console) titleRoom(used int, words string) (title, quoted int) {
	if !c.tty {
		return maxTitle, maxTitle
	}
	room := c.Width() - used - 2
	if words == "" {
		return min(max(room, minTitle), maxTitle), 0
	}
	room -= 4 // two blanks and the quotes
	quoted = min(utf8.RuneCountInString(words), max(room/2, minTitle), maxTitle)
	return min(max(room-quoted, minTitle), maxTitle), quoted
}

// quote quotes a line that a job printed.
func (c *Console) quote(s string, limit int) string {
	return c.Paint(Dim, c.Glyph("“", `"`)+jobs.Clean(s, limit)+c.Glyph("”", `"`))
}

// stateMark returns the color, the mark, and the word of a finished job. The word says the same
// as the color, which not everybody sees.
func (c *Console) stateMark(s jobs.JobState) (color, mark, word string) {
	switch s {
	case jobs.Succeeded:
		return Green, c.Glyph("✓", "+"), "ok  "
	case jobs.Failed:
		return Red, c.Glyph("✗", "x"), "FAIL"
	case jobs.TimedOut:
		return Red, c.Glyph("✗", "x"), "TIMEOUT"
	case jobs.Cancelled:
		return Yellow, c.Glyph("–", "-"), "cancelled"
	}
	return Yellow, c.Glyph("–", "-"), s.String()
}

// causeText says why a job did not succeed, and what an exit code of the shell means.
func causeText(r *results.Result) string {
	return jobs.Clean(results.Cause(r.State, r.Reason, r.Outcome), maxTitle) + runview.ExitMeaning(r.Outcome)
}
