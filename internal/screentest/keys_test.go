package screentest

import (
	"regexp"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// someJobs are one job that prints, one that fails after the first has started (so that the first
// is the oldest), one that sleeps, and some that wait.
const someJobs = `#DCS default tries=1
#DCS name=ticker
i=0; touch ticks; while :; do i=$((i+1)); echo tick $i; echo complaint $i >&2; sleep 0.1; done
#DCS name=breaks
until [ -e ticks ]; do sleep 0.05; done; echo going down >&2; exit 3
#DCS name=sleeper
sleep 1000
` + waiters

const waiters = `#DCS name=wait-a
sleep 1001
#DCS name=wait-b
sleep 1002
#DCS name=wait-c
sleep 1003
#DCS name=wait-d
sleep 1004
#DCS name=wait-e
sleep 1005
#DCS name=wait-f
sleep 1006
`

// TestKeysOfATerminalWork checks the keys that a terminal sends as sequences or control characters,
// and output that follows a file, on a real run.
func TestKeysOfATerminalWork(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	x := openTerminal(t, 80, 24)
	x.startProgram(someJobs)
	x.awaitPattern(`3 ● run`)
	x.awaitPattern(`✗ 1`)
	x.press("g", `(?m)^>\s+1 ● run`)
	x.press("Down", `(?m)^>\s+3 ● run`)
	x.press("Up", `(?m)^>\s+1 ● run`)
	x.press("End", `(?m)^>\s+9 ○ queue`)
	x.press("C-u", `(?m)^>\s+[1-8] `)
	x.press("C-d", `(?m)^>\s+9 `)
	x.press("PageUp", `(?m)^>\s+1 `)
	x.press("PageDown", `(?m)^>\s+9 `)
	x.press("5", `\[5 Events`)
	x.press("Tab", `\[1 Jobs`)
	x.press("Home", `(?m)^>\s+1 `)
	x.press("Enter", `command\s+i=0; touch`)
	x.press("l", `1 stdout · following`)
	x.awaitPattern(`tick \d+`)
	x.press("o", `1 stderr · following`)
	x.awaitPattern(`complaint \d+`)
	x.pressUntilGone("Escape", `stderr`)
	x.press("C-z", `(?s)Stopped.*prompt>`) // the prompt of the command is there before
	x.enterLine("fg", `\[1 Jobs`)
}

// TestActionsAreCarriedOut checks the actions of keys on a real run: their questions, and what
// becomes of the jobs.
func TestActionsAreCarriedOut(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	x := openTerminal(t, 80, 24)
	x.startProgram(someJobs)
	x.awaitPattern(`3 ● run`)
	x.awaitPattern(`✗ 1`)
	x.press("G", `(?m)^>\s+9 `)
	x.press("c", `9 – cancel`)
	x.sendKeys("u")
	if shown := x.awaitPattern(`9 ○ queue|nothing to undo`); strings.Contains(shown, "nothing to undo") {
		t.Log("the ten seconds for an undo were over before it was typed")
		x.press("r", `9 ○ queue`)
	}
	x.press("g", `(?m)^>\s+1 `)
	x.press("j", `(?m)^>\s+3 `)
	x.press("c", `(?i)cancel job 3\?`)
	x.press("y", `3 – cancel`)
	x.awaitPattern(`4 ● run`)
	x.typeFilter("breaks")
	x.press("g", `(?m)^>\s+2 ✗ fail`)
	x.press("e", `echo going down`)
	x.sendKeys("C-u")
	x.enterLine("echo better", `2 (○ queue|◐ sent|● run|✓ ok)`)
	x.press("Escape", `wait-d`)
	x.press("p", `(?i)paused`)
	x.pressUntilGone("p", `(?i)launching is paused|is paused by`)
	x.press("2", `\[2 Hosts`)
	x.press("D", `drain(ing|ed)`)
	x.pressUntilGone("D", `drain(ing|ed)`)
}

// TestLeavingRestoresTheTerminal checks that leaving asks what should happen to the run and prints
// the run's status on the normal screen, and that the terminal is restored.
func TestLeavingRestoresTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		says string // on the normal screen
		over bool   // the run is over afterwards
	}{
		{"detach", []string{"q", "d"}, `dcs-tui attach`, false},
		{"drain", []string{"q", "D"}, `dcs-tui resume`, true},
		{"cancel", []string{"q", "c", "y"}, `(?i)8 canceled`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, 80, 24)
			was := x.terminalSettings("begin")
			x.startProgram("#DCS default tries=1\n" + gated + gated + waiters)
			x.awaitPattern(`1 ● run`)
			for _, k := range c.keys {
				x.sendKeys(k)
				switch {
				case k == "q":
					x.awaitPattern(`Leave r\?`)
				case k == "D":
					x.awaitPattern(`DRAINING`)
					x.writeFile("gate", "")
				case k == "c":
					x.awaitPattern(`Cancel the whole run\?`)
				}
			}
			if c.over { // the screen stays and shows a summary
				x.awaitPattern(`Summary`)
				x.sendKeys("q")
			}
			x.awaitPattern(c.says)
			x.awaitGone(`\[1 Jobs`)
			if is := x.terminalSettings("after"); is != was {
				t.Errorf("the terminal was %s and is %s", was, is)
			}
			x.enterLine("dcs-tui status r", `(?s)prompt>.*prompt>`)
			if !c.over {
				x.enterLine("clear; dcs-tui attach r", `\[1 Jobs`)
				x.awaitPattern(`● run`)
			}
		})
	}
}

// gated is a job that ends when the file gate exists.
const gated = "until [ -e gate ]; do sleep 0.05; done\n"

// terminalSettings prints a word and the terminal settings, and returns as much of them as fits a
// row. Results after words of equal length are comparable.
func (x *terminal) terminalSettings(word string) string {
	x.t.Helper()
	x.typeText("clear; stty -g | sed s/^/" + word + "/")
	shown := x.press("Enter", word+`[0-9a-f:]{20}`)
	return regexp.MustCompile(word + `([0-9a-f:]{20,})`).FindStringSubmatch(shown)[1]
}

// typeFilter types a filter or a search.
func (x *terminal) typeFilter(text string) {
	x.t.Helper()
	x.press("/", `(?m)^ ?/`)
	x.typeText(text)
	x.sendKeys("Enter")
}
