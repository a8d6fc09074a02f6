package screentest

import (
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// TestOutsideTheScreen checks the clipboard, a pager, and a shell in a real terminal. Afterwards
// the screen is as before, and keys that end those programs do not end the screen.
func TestOutsideTheScreen(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	x := openTerminal(t, 100, 30, "PAGER=", "LESS=", "SHELL=/bin/sh", "ENV=", "PS1=inner>")
	x.startProgram("#DCS default tries=1\n#DCS name=fails\nprintf '\\033[31mred alert\\033[0m\\n' >&2; exit 3\n" +
		"#DCS name=waits\nsleep 1000\n")
	x.awaitPattern(`✗ 1`)
	x.press("3", `\[3 Failed`)
	x.press("1", `\[1 Jobs`)
	x.press("G", `(?m)^>\s+1 ✗ fail`)
	x.press("y", `copied the command of job 1: printf`)
	polltest.Until(t, "the clipboard has the command", func() bool {
		return strings.HasPrefix(x.tmux("show-buffer"), `printf '\033[31mred alert`)
	})

	x.press("l", `1 stderr`)
	x.awaitPattern(`(?m)^red alert`)
	if colored := x.tmux("capture-pane", "-p", "-e"); !strings.Contains(colored, "\x1b[31mred alert") {
		t.Errorf("the output has no color: %q", colored)
	}
	x.pressUntilGone("E", `\[1 Jobs`)
	x.awaitPattern(`(?m)^red alert`)
	x.sendKeys("C-c") // neither less nor the screen ends
	polltest.Until(t, "less shows its help", func() bool {
		x.sendKeys("h") // less may lose a key that arrives with an interrupt
		return strings.Contains(x.capture(), "SUMMARY OF LESS COMMANDS")
	})
	x.sendKeys("q", "q")
	x.awaitPattern(`\[1 Jobs`)

	x.press("Escape", `↵ detail`)
	x.press("2", `\[2 Hosts`)
	x.press("!", `A shell on here; exit goes back to the screen`)
	x.enterLine("echo in $((40+2))", `in 42`)
	x.press("C-c", `(?s)in 42.*>.*>`) // an interrupted shell drops what was typed before its next prompt
	x.enterLine("exit", `\[2 Hosts`)
	x.awaitGone(`in 42`)
	x.press("1", `\[1 Jobs`)
}
