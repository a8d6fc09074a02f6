package console

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dcs-tui/internal/text"
)

// Console writes lines for people to stderr. On a terminal it keeps one more
// line, the progress, under them and rewrites it in place. Safe for concurrent
// use. Nothing reaches it that has not passed jobs.Clean.
type Console struct {
	mu     sync.Mutex
	w      io.Writer
	fd     int // of the terminal, for its width
	tty    bool
	color  bool
	ascii  bool // the locale has no UTF-8
	status string
	shown  int // bytes of the progress line on the screen

	holds bool     // somebody else has the terminal
	held  []string // lines that wait, at most maxHeldLines
}

const maxHeldLines = 200

// New returns a Console that writes to a file.
func New(f *os.File) *Console {
	tty := term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	return &Console{
		w: f, fd: int(f.Fd()), tty: tty,
		color: tty && os.Getenv("NO_COLOR") == "",
		ascii: !utf8Locale(os.Getenv),
	}
}

// To returns a Console that writes to w, which is not a terminal.
func To(w io.Writer) *Console { return &Console{w: w, fd: -1} }

// utf8Locale reports whether glyphs beyond ASCII can be shown. According to locale(7) the first
// of the three variables that is set counts.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// Line writes whole lines; the progress line stays below them.
func (c *Console) Line(lines ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds {
		c.held = append(c.held, lines[:min(len(lines), maxHeldLines-len(c.held))]...)
		return
	}
	var b strings.Builder
	c.erase(&b)
	for _, l := range lines {
		if c.tty {
			l = wrap(l, c.Width())
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	c.draw(&b)
	io.WriteString(c.w, b.String()) // a dead stderr must not stop the run
}

// Status replaces the progress line; "" removes it. Without a terminal it does nothing.
func (c *Console) Status(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tty || c.holds {
		return
	}
	c.status = s
	var b strings.Builder
	c.erase(&b)
	c.draw(&b)
	io.WriteString(c.w, b.String())
}

// Hold keeps lines until Release, because a screen has the terminal.
func (c *Console) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = true
}

// Held reports whether lines are kept.
func (c *Console) Held() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds
}

// Release writes what was held.
func (c *Console) Release() {
	c.mu.Lock()
	held := c.held
	c.holds, c.held = false, nil
	c.mu.Unlock()
	if len(held) > 0 {
		c.Line(held...)
	}
}

// Suspend runs f while no progress line is on the screen, so that f can write
// to the same terminal.
func (c *Console) Suspend(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	c.erase(&b)
	io.WriteString(c.w, b.String())
	return f()
}

// Detach goes on writing to w: the terminal is gone.
func (c *Console) Detach(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.w, c.tty, c.color, c.status, c.shown = w, false, false, "", 0
}

// Live reports whether there is a progress line.
func (c *Console) Live() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tty
}

// Colored reports whether there are colors.
func (c *Console) Colored() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.color
}

// OnlyASCII reports whether no other glyphs can be shown.
func (c *Console) OnlyASCII() bool { return c.ascii }

func (c *Console) erase(b *strings.Builder) {
	if c.shown > 0 {
		b.WriteString("\r\x1b[K")
		c.shown = 0
	}
}

// draw writes the progress line, cut so that it never wraps: a wrapped line
// could not be erased.
func (c *Console) draw(b *strings.Builder) {
	if !c.tty || c.status == "" {
		return
	}
	s := text.Cut(c.status, c.Width()-1)
	b.WriteString(s)
	c.shown = len(s)
}

// Width returns the width of the terminal in columns, or 80 if there is none.
func (c *Console) Width() int {
	if ws, err := unix.IoctlGetWinsize(c.fd, unix.TIOCGWINSZ); err == nil && ws.Col > 0 {
		return int(ws.Col)
	}
	return 80
}

// Fill breaks a text into rows that fit beside a margin of indent columns. If the output is
// not a terminal, the text stays one row, for grep.
func (c *Console) Fill(text string, indent int) []string {
	if !c.tty {
		return []string{text}
	}
	return strings.Split(WrapTo(text, c.Width()-indent-1, 0), "\n")
}

// The colors of the console are the first eight of the terminal, so that they fit its theme.
const (
	plain  = ""
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Dim    = "2"
	Bold   = "1"
)

// Paint colors s, if there are colors.
func (c *Console) Paint(color, s string) string {
	if !c.color || color == plain {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// Glyph returns the mark, or its ASCII form.
func (c *Console) Glyph(mark, ascii string) string {
	if c.ascii {
		return ascii
	}
	return mark
}

// PlainQuotes makes the quotes of a text ASCII where the locale wants that.
func (c *Console) PlainQuotes(s string) string {
	if !c.ascii {
		return s
	}
	b := []rune(s)
	for i, r := range b {
		if r == '“' || r == '”' {
			b[i] = '"'
		}
	}
	return string(b)
}
