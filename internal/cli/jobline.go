package cli

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// maxTitle is how much of a job's name or command a line shows.
const maxTitle = 100

// jobLine is a finished job in one line:
//
//	✓ ok    17  ws03  12.3 s  name
//	✗ FAIL  18  ws02  210 ms  exit 1, failed 3 times  name  “last line of stderr”
func (c *console) jobLine(r *results.Result) string {
	color, mark, word := c.stateMark(r.State)
	parts := []string{c.paint(color, mark+" "+word), fmt.Sprintf("%4d", r.Job)}
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
	title := r.Name
	if title == "" {
		title = r.Command
	}
	parts = append(parts, jobs.Clean(title, maxTitle))
	if o := r.Outcome; o != nil && o.LastLine != "" && r.State != jobs.Succeeded {
		parts = append(parts, c.quote(o.LastLine))
	}
	if o := r.Outcome; o != nil && o.LeftChildren == 1 {
		parts = append(parts, c.paint(yellow, "left a process behind"))
	} else if o != nil && o.LeftChildren > 1 {
		parts = append(parts, c.paint(yellow, fmt.Sprintf("left %d processes behind", o.LeftChildren)))
	}
	return strings.Join(parts, "  ")
}

// quote shows words of a job.
func (c *console) quote(s string) string {
	return c.paint(dim, c.glyph("“", `"`)+jobs.Clean(strings.TrimSpace(s), maxTitle)+c.glyph("”", `"`))
}

// stateMark is the colour, the mark and the word of a finished job. The word
// says the same as the colour: not everybody sees colours.
func (c *console) stateMark(s jobs.JobState) (color, mark, word string) {
	switch s {
	case jobs.Succeeded:
		return green, c.glyph("✓", "+"), "ok  "
	case jobs.Failed:
		return red, c.glyph("✗", "x"), "FAIL"
	case jobs.TimedOut:
		return red, c.glyph("✗", "x"), "TIMEOUT"
	case jobs.Cancelled:
		return yellow, c.glyph("–", "-"), "cancelled"
	}
	return yellow, c.glyph("–", "-"), s.String()
}

// causeText is why a job did not succeed, with what the shell's numbers mean.
func causeText(r *results.Result) string {
	return jobs.Clean(results.Cause(r.State, r.Reason, r.Outcome), maxTitle) + exitMeaning(r.Outcome)
}

// exitMeaning explains the exit codes that a POSIX shell gives of its own
// (sh(1), 2.8.2): they are what people look up.
func exitMeaning(o *jobs.Outcome) string {
	if o == nil || o.Signal != "" || o.Error != "" || o.TimedOut || o.Stopped {
		return ""
	}
	switch {
	case o.Exit == 126:
		return " (not executable)"
	case o.Exit == 127:
		return " (command not found)"
	case o.Exit > 128:
		if name := jobs.SignalName(o.Exit - 128); name != "" {
			return " (" + name + " in its shell)"
		}
	}
	return ""
}
