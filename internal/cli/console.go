package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"dcs-tui/dispatch"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// console writes lines for people to stderr. On a terminal it keeps a progress line below them,
// which it rewrites in place. It is safe for concurrent use. All text must have passed text.Clean.
type console struct {
	mu        sync.Mutex
	w         io.Writer
	fd        int // of the terminal, for its width
	tty       bool
	color     bool
	ascii     bool // the locale has no UTF-8
	status    string
	statusLen int // bytes of the progress line on the screen

	isHolding bool     // a screen has the terminal
	held      []string // lines to write after that, at most maxHeldLines
}

const maxHeldLines = 200

func newConsole(f file) *console {
	tty := isTerminal(f) && os.Getenv("TERM") != "dumb"
	return &console{
		w: f, fd: int(f.Fd()), tty: tty,
		color: tty && os.Getenv("NO_COLOR") == "",
		ascii: !utf8Locale(os.Getenv),
	}
}

// consoleTo returns a console that writes to w, which is not a terminal.
func consoleTo(w io.Writer) *console { return &console{w: w, fd: -1} }

// utf8Locale reports whether glyphs beyond ASCII can be shown. According to locale(7) the first
// of the three variables that is set counts.
func utf8Locale(getenv func(string) string) bool {
	v := strings.ToUpper(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
}

// Line writes lines above the progress line.
func (c *console) Line(lines ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isHolding {
		c.held = append(c.held, lines[:min(len(lines), maxHeldLines-len(c.held))]...)
		return
	}
	var b strings.Builder
	for _, l := range lines {
		if c.tty {
			l = wrap(l, c.Width())
		}
		b.WriteString(l + "\n")
	}
	c.rewrite(b.String(), c.status)
}

// Status replaces the progress line; "" removes it. Without a terminal it does nothing.
func (c *console) Status(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tty || c.isHolding {
		return
	}
	c.status = s
	c.rewrite("", s)
}

// Hold holds lines back until Release, because a screen has the terminal.
func (c *console) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isHolding = true
}

// IsHolding reports whether lines are held back.
func (c *console) IsHolding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isHolding
}

// Release writes the lines that were held back.
func (c *console) Release() {
	c.mu.Lock()
	held := c.held
	c.isHolding, c.held = false, nil
	c.mu.Unlock()
	if len(held) > 0 {
		c.Line(held...)
	}
}

// Suspend runs f while no progress line is on the screen, so that f can write
// to the same terminal.
func (c *console) Suspend(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rewrite("", "")
	return f()
}

// Detach makes c write to w, without a progress line and colors, because the terminal is gone.
func (c *console) Detach(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.w, c.tty, c.color, c.status, c.statusLen = w, false, false, "", 0
}

// IsTerminal reports whether c writes to a terminal, and so has a progress line.
func (c *console) IsTerminal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tty
}

// rewrite erases the progress line, writes lines, and then the progress line. It cuts the progress
// line so that it never wraps, because a wrapped line could not be erased.
func (c *console) rewrite(lines, progress string) {
	if c.statusLen > 0 {
		lines = "\r\x1b[K" + lines
	}
	switch {
	case !c.tty:
		progress = ""
	case progress != "":
		progress = text.Cut(progress, c.Width()-1)
	}
	c.statusLen = len(progress)
	io.WriteString(c.w, lines+progress) // a dead stderr must not stop the run
}

// Width returns the width of the terminal in columns, or 80 if it is not known.
func (c *console) Width() int { return c.widthOr(80) }

// TextWidth is like Width, but a file or pipe has place for long lines.
func (c *console) TextWidth() int { return c.widthOr(maxFileWidth) }

// maxFileWidth is the width of tables in files and pipes, in columns.
const maxFileWidth = 240

func (c *console) widthOr(unknown int) int {
	if ws, err := unix.IoctlGetWinsize(c.fd, unix.TIOCGWINSZ); err == nil && ws.Col > 0 {
		return int(ws.Col)
	}
	return unknown
}

// The colors of the console are the first eight of the terminal, so that they fit its theme.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
	bold   = "1"
)

// Paint colors s, if there are colors.
func (c *console) Paint(color, s string) string {
	if !c.color {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// Glyph returns the mark, or its ASCII form.
func (c *console) Glyph(mark, ascii string) string {
	if c.ascii {
		return ascii
	}
	return mark
}

// PlainQuotes replaces the quotes in a text if the locale can show only ASCII.
func (c *console) PlainQuotes(s string) string {
	if !c.ascii {
		return s
	}
	return strings.NewReplacer("“", `"`, "”", `"`).Replace(s)
}

// progressLine describes the progress of a run in one line, with a bar if both fit into width
// columns:
//
//	[######....] 59 of 100 ok, 2 failed, 16 running, 23 queued, ETA 4 s, 8.4/s, 5 tried again
func progressLine(s *dispatch.Snapshot, width int) string {
	p := runview.RunProgress{More: s.InputOpen, Rate: s.Rate, ETA: s.ETA, Paused: s.Paused, Problem: s.Problem}
	var further []string
	if s.Retries > 0 {
		further = append(further, fmt.Sprintf("%d tried again", s.Retries))
	}
	up, started, suspended, why := 0, 0, 0, ""
	for _, h := range s.Hosts {
		started += h.Running
		suspended += h.Suspended
		if h.State == jobs.HostUp {
			up++
		}
		if why == "" && (h.IsHeld() || h.State == jobs.HostDraining || h.State == jobs.HostDisabled) {
			why = h.Name + ": " + h.Line() // the reason of one host is enough
		}
	}
	running := s.Counts[jobs.Running]
	p.Count(s.Counts, results.Idle{Suspended: min(suspended, running), Sent: max(0, running-started)})
	if !p.Paused && p.Problem == "" {
		switch {
		case up == 0 && len(s.Hosts) == 1:
			further = append(further, "connecting")
		case up < len(s.Hosts):
			further = append(further, fmt.Sprintf("%d of %d hosts up", up, len(s.Hosts)))
		}
		if started == 0 && why != "" {
			further = append(further, why)
		}
	}
	line := text.Line(p.Line(further...))
	bar := min(20, width-utf8.RuneCountInString(line)-len("[] ")-1)
	if bar < 5 || p.More || p.Total == 0 {
		return line
	}
	full := p.NumOver() * bar / p.Total
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", bar-full), line)
}

// Limits of the name or command of a job in a line, in runes. maxTitle also applies where the width
// of the terminal is unknown.
const maxTitle, minTitle = 100, 16

// JobLine describes a finished job in one line:
//
//	✓ ok    17  ws03  12.3 s  name
//	✗ FAIL  18  ws02  210 ms  exit 1, failed 3 times  name  “last line of stderr”
func (c *console) JobLine(r *results.Result) string {
	color, mark, word := c.stateMark(r.State)
	parts := []string{mark + " " + word, fmt.Sprintf("%4d", r.Job)}
	if r.Host != "" {
		parts = append(parts, text.Clean(r.Host, 0))
	}
	if r.Started() != 0 {
		parts = append(parts, text.Duration(r.Elapsed()))
	}
	if r.State != jobs.Succeeded {
		why := causeText(r)
		switch {
		case r.Failures > 0 && r.Attempts > r.Failures: // some were no tries, or of an earlier round
			why += fmt.Sprintf(", attempts: %d, tries used: %d", r.Attempts, r.Failures)
		case r.Failures > 1:
			why += fmt.Sprintf(", failed %d times", r.Failures)
		}
		parts = append(parts, why)
	} else if r.Failures > 0 {
		parts = append(parts, fmt.Sprintf("after %d failed", r.Failures))
	}
	title, words := cmp.Or(r.Name, r.Command), ""
	if o := r.Outcome; o != nil && r.State != jobs.Succeeded {
		words = strings.TrimSpace(o.LastLine)
	}
	limit, limitWords := c.titleLimits(utf8.RuneCountInString(strings.Join(parts, "  ")), words)
	parts = append(parts, text.Clean(title, limit))
	if words != "" {
		parts = append(parts, c.quote(words, limitWords))
	}
	if o := r.Outcome; o != nil && o.LeftChildren == 1 {
		parts = append(parts, c.Paint(yellow, "left a process behind"))
	} else if o != nil && o.LeftChildren > 1 {
		parts = append(parts, c.Paint(yellow, fmt.Sprintf("left %d processes behind", o.LeftChildren)))
	}
	parts[0] = c.Paint(color, parts[0])
	return strings.Join(parts, "  ")
}

// jobLogLine returns the command that prints the standard error of a failed job, and the command of the
// job if JobLine shows its name instead. It returns "" for other jobs.
func jobLogLine(run *rundir.Run, r *results.Result) string {
	if r.State != jobs.Failed && r.State != jobs.TimedOut || r.Stderr == "" {
		return ""
	}
	line := "        log: " + logsCommand(run, r.Attempt, jobs.FileErr)
	return line + text.If(r.Name != "", "  of "+text.Clean(r.Command, maxTitle))
}

// titleLimits returns how many runes of a job's title, and of the last line of its stderr, fit into
// a line of the terminal that already has used runes.
func (c *console) titleLimits(used int, words string) (title, quoted int) {
	if !c.tty {
		return maxTitle, maxTitle
	}
	free := c.Width() - used - 2
	if words == "" {
		return min(max(free, minTitle), maxTitle), 0
	}
	free -= 4 // two blanks and the quotes
	quoted = min(utf8.RuneCountInString(words), max(free/2, minTitle), maxTitle)
	return min(max(free-quoted, minTitle), maxTitle), quoted
}

// quote quotes a line of the output of a job.
func (c *console) quote(s string, limit int) string {
	return c.Paint(dim, c.Glyph("“", `"`)+text.Clean(s, limit)+c.Glyph("”", `"`))
}

// stateMark returns the color, the mark, and the word for the state of a finished job. The word
// repeats the color, which not everybody can see.
func (c *console) stateMark(s jobs.JobState) (color, mark, word string) {
	switch s {
	case jobs.Succeeded:
		return green, c.Glyph("✓", "+"), "ok  "
	case jobs.Failed:
		return red, c.Glyph("✗", "x"), "FAIL"
	case jobs.TimedOut:
		return red, c.Glyph("✗", "x"), "TIMEOUT"
	case jobs.Canceled:
		return yellow, c.Glyph("–", "-"), "canceled"
	}
	return yellow, c.Glyph("–", "-"), s.String()
}

// causeText describes why a job did not succeed, and explains exit codes of the shell.
func causeText(r *results.Result) string {
	return text.Clean(results.Cause(r.State, r.Reason, r.Outcome), maxTitle) + runview.ExitMeaning(r.Outcome)
}

// NoticeLine formats a notice as one line.
func (c *console) NoticeLine(n dispatch.Notice) string {
	mark := c.Glyph("·", "-")
	line := text.Line(text.WithoutSubject(n.Text, n.Host))
	if n.Job != 0 {
		job, host := fmt.Sprintf("job %d", n.Job), hostPart(n.Host)
		if namesHost(line, text.Line(n.Host)) {
			host = ""
		}
		return c.Paint(yellow, mark+" "+job) + "  " + host + text.WithoutSubject(line, job)
	}
	at := text.If(!n.At.IsZero(), n.At.Format("15:04:05")+"  ")
	return c.Paint(dim, mark+" "+at) + hostPart(n.Host) + line
}

// namesHost reports whether a text about a job names its host: "on ws01", "its host ws01 is lost".
func namesHost(line, host string) bool {
	return slices.ContainsFunc([]string{"on ", "host "}, func(before string) bool {
		_, after, found := strings.Cut(" "+line+" ", " "+before+host)
		return found && strings.ContainsAny(after[:1], " ,:;.")
	})
}

func hostPart(host string) string {
	return text.If(host != "", text.Line(host)+"  ")
}
