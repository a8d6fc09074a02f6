package screentest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dcs-tui/internal/polltest"
)

// quietJobs are jobs whose screen changes only by its clocks. The failing job waits for the
// printing one, which is therefore the oldest running job.
const quietJobs = "#DCS default tries=1\n#DCS name=fails\nuntil [ -e talking ]; do sleep 0.05; done; " +
	"echo 'going down' >&2; exit 3\n" +
	"#DCS name=talks\necho 日本語 one; echo two; touch talking; sleep 1000\n#DCS name=sleeps\nsleep 1000\n" + waiters

// TestRedrawDoesNotChangeTheScreen resizes the terminal from 40x10 to 300x100 and back during a
// run, and checks that a redraw does not change the screen.
func TestRedrawDoesNotChangeTheScreen(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	x := openTerminal(t, 80, 24)
	x.startProgram(quietJobs)
	x.awaitPattern(`✗ 1`)
	x.awaitPattern(`2 ● run`)
	x.awaitPattern(`3 ● run`)
	x.press("g", `(?m)^>\s+2 `)
	last := [2]int{80, 24}
	for _, size := range [][2]int{{40, 10}, {300, 100}, {120, 36}, {39, 9}, {160, 48}, {59, 14}, {200, 30}, {80, 24}} {
		x.resize(size)
		for try := 1; ; try++ {
			before, same := x.redrawsSame()
			if same {
				break
			}
			if try == 3 {
				t.Fatalf("%v: the screen is not the same after it is drawn anew as before:\n%s\n%s", size, before,
					x.capture())
			}
			x.resize(last) // the run itself may have changed the screen, so try once more
			x.resize(size)
		}
		last = size
	}
}

// resize sets the size of the terminal and waits until the program has drawn its screen.
func (x *terminal) resize(size [2]int) {
	x.t.Helper()
	x.tmux("resize-window", "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]))
	x.awaitScreen(fmt.Sprintf("a screen of %dx%d", size[0], size[1]),
		func(s string) bool { return isDrawn(s, size[0], size[1]) })
}

// isDrawn reports whether the program has drawn its screen for a size. tmux first shows a part of
// the old screen.
func isDrawn(s string, w, h int) bool {
	rows := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if len(rows) != h {
		return false
	}
	switch {
	case w < 40:
		return strings.Contains(s, "too small")
	case !strings.Contains(s, "talks") || !strings.Contains(rows[h-1], "? help") ||
		strings.Contains(s, "┃") != (w >= 120):
		return false
	case w < 60:
		return strings.Contains(rows[0], "[Jobs]")
	case h >= 36 && !strings.Contains(s, "日本語 one"): // the output of the job under the cursor
		return false
	}
	return utf8.RuneCountInString(strings.TrimRight(rows[0], " ")) > w-3
}

// redrawsSame clears the terminal without the program's knowledge and makes the program redraw. It
// returns the screen from before, and reports whether the redrawn screen is the same.
func (x *terminal) redrawsSame() (before string, same bool) {
	x.t.Helper()
	before = withoutClocks(x.capture())
	x.tmux("send-keys", "-R")
	x.awaitScreen("an empty terminal", func(s string) bool { return withoutClocks(s) != before })
	x.sendKeys("C-l")
	return before, polltest.Within(30*time.Second, func() bool { return withoutClocks(x.capture()) == before })
}

// withoutClocks removes everything that changes with time.
func withoutClocks(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r == '.', r >= '▁' && r <= '█', r == ' ':
			return -1
		}
		return r
	}, s)
}

// TestScreenWorksOnEachKindOfTerminal checks kinds of terminal, NO_COLOR, and --ascii.
func TestScreenWorksOnEachKindOfTerminal(t *testing.T) {
	polltest.Long(t)
	for _, c := range []struct {
		name, term, env, flag string
		check                 func(t *testing.T, x *terminal)
	}{
		{"xterm", "xterm", "A=b", "", nil},
		{"screen", "screen-256color", "A=b", "", nil},
		{"tmux", "tmux-256color", "A=b", "", nil},
		{"linux", "linux", "A=b", "", nil},
		{"no color", "xterm-256color", "NO_COLOR=1", "", func(t *testing.T, x *terminal) {
			shown := x.tmux("capture-pane", "-p", "-e")
			for _, color := range []string{"\x1b[31", "\x1b[32", "\x1b[33", "\x1b[36", ";31", ";32", ";33", ";36",
				"\x1b[38"} {
				if strings.Contains(shown, color) {
					t.Errorf("there is color, %q", color)
				}
			}
		}},
		{"ascii", "xterm", "A=b", "--ascii", func(t *testing.T, x *terminal) {
			for _, r := range x.capture() {
				if r > '~' {
					t.Fatalf("%q is no ASCII", r)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, 80, 24, "TERM="+c.term, c.env)
			x.startProgram("echo hello\n"+waiters, c.flag)
			x.awaitPattern(`1 . ok`)
			x.press("2", `\[2 Hosts`)
			x.press("1", `\[1 Jobs`)
			if c.check != nil {
				c.check(t, x)
			}
			x.press("q", `Leave r\?`)
			x.pressUntilGone("d", `\[1 Jobs`)
		})
	}
	t.Run("dumb", func(t *testing.T) {
		t.Parallel()
		x := openTerminal(t, 80, 24, "TERM=dumb")
		x.writeFile("jobs.txt", "echo hello\n")
		x.typeText("dcs-tui run --hosts hosts.toml --name r jobs.txt; echo code=$?")
		x.sendKeys("Enter")
		shown := x.awaitPattern(`code=0`)
		if !strings.Contains(shown, "cannot show the screen") || strings.Contains(shown, "[1 Jobs") {
			t.Errorf("it is not refused politely:\n%s", shown)
		}
	})
}

// TestHostileJobsDoNotControlTheTerminal checks that names, commands, output, parameters, and the
// host's display name cannot set the title, write the clipboard, move the cursor, or break the
// layout.
func TestHostileJobsDoNotControlTheTerminal(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24)
	evil := "\\033]0;OWNED\\007\\033]2;OWNED\\007\\033]52;c;T1dORUQ=\\007" +
		"\\033Ptmux;\\033\\033]0;OWNED\\007\\033\\\\\\033[2J\\033[10;10HOWNED\\033[?1049l\\0336\\033c"
	x.writeFile("evil.sh", "touch begun; while :; do printf '"+evil+"\\n'; printf '"+evil+"' >&2; sleep 0.2; done\n")
	raw := "\x1b]0;OWNED\x07\x1b]52;c;T1dORUQ=\x07\x1b[2J\x1b[5;5Hhere\u202eevil"
	jobs := `{"command":"sh evil.sh","name":"日本語 👍🏽🇩🇪e\u0301\u0301\u0301\u0301\u0301\u0301","queue":"q"}` + "\n" +
		`{"command":` + quoteJSON("until [ -e begun ]; do sleep 0.05; done; printf '"+evil+"' >&2; exit 7 # "+raw) +
		`,"tries":1}` + "\n" + `{"command":"sleep 1000"}` + "\n"
	if err := os.WriteFile(filepath.Join(x.dir, "jobs.jsonl"), []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	x.tmux("set-buffer", "mine")
	before := x.tmux("display-message", "-p", "#{pane_title}|#{window_name}|#{window_layout}")
	x.enterLine("dcs-tui run --hosts hosts.toml --name r jobs.jsonl", `\[1 Jobs`)
	x.awaitPattern(`✗ 1`)
	x.press("g", `(?m)^>\s+1 `)
	for _, keys := range [][]string{{"Enter"}, {"l"}, {"w"}, {"o"}, {"z"}, {"z"}, {"Escape"}, {"3"}, {"5"}, {"2"},
		{"1"}, {"G"}, {"Enter"}, {"l"}, {"o"}, {"Escape"}} {
		for _, k := range keys {
			x.sendKeys(k)
		}
		x.awaitScreen(fmt.Sprintf("after %v an unbroken layout", keys), func(shown string) bool {
			rows := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
			return len(rows) == 24 && strings.Contains(rows[0], " r ") && strings.Contains(rows[3], "1 Jobs")
		})
	}
	x.press("g", `(?m)^>`)
	x.press("l", `OWNED`) // as text
	if after := x.tmux("display-message", "-p", "#{pane_title}|#{window_name}|#{window_layout}"); after != before {
		t.Errorf("tmux was %q and is %q", before, after)
	}
	if buffers := x.tmux("list-buffers", "-F", "#{buffer_sample}"); strings.TrimSpace(buffers) != "mine" {
		t.Errorf("the clipboard holds %q", buffers)
	}
}

// quoteJSON returns a string as JSON.
func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String() + `"`
}
