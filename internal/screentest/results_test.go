package screentest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// sweepTemplate is a grid whose jobs print a metric. One prints nan, one prints none, and one keeps
// running.
const sweepTemplate = `#DCS default tries=1
case [C]-[seed] in 10-2) echo acc=nan;; 1-2) ;; ` +
	`*) awk -v c=[C] -v g=[gamma] -v s=[seed] 'BEGIN { printf "acc=%.4f\n", c / 3 - g * 1e3 / s }';; ` +
	`esac; if [ [C][seed] = 103 ]; then sleep 1000; fi
[C] 0.1 1 10
[gamma] 0 0.5 1
[seed] 1..3
@result acc
@where not (C = 10 and seed = 3 and gamma > 0)
`

// TestResultsOfAGrid checks view 4 while a grid runs: its keys show the table, the groups, the
// best, and the heat map, with the numbers that dcs-tui results prints (X5).
func TestResultsOfAGrid(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	x := openTerminal(t, 100, 30)
	x.writeFile("grid.txt", sweepTemplate)
	x.enterLine("dcs-tui grid --hosts hosts.toml --name r grid.txt", `\[1 Jobs`)
	x.awaitPattern(`24 ok`)
	x.press("4", `(?m)^>\s+1 ✓ ok\s+0.1\s+0\s+1\s+0.0333`)

	t.Log("sort, best, columns, filter")
	x.typeCommand("sort acc desc")
	x.typeCommand("best acc:max")
	x.awaitPattern(`(?m)^>?\s+\d+ best ✓ ok\s+10\s+0\s+1\s+3.3333`)
	x.press("Right", `(?m)^\s+ID BEST STATE.*HOST`)
	x.press("Left", `(?m)^\s+ID BEST STATE.*acc▼`)
	x.typeFilter("acc>0.9 C=10")
	x.awaitPattern(`Results\]? .*/acc>0.9 C=10`)
	x.awaitGone(`ok\s+0.1`)
	x.press("Escape", `ok\s+0.1`)

	t.Log("groups")
	x.press("m", `by C,gamma`)
	x.awaitPattern(`(?m)^  best 1 +0 .*0.3333`)
	x.checkRows("--group", "C,gamma")
	x.press("Enter", `/C="?0.1"? gamma="?0`)
	x.pressUntilGone("Escape", `/C="?0.1`)

	t.Log("heat map")
	x.press("h", `acc, mean: C down, gamma across, over seed`)
	x.checkRows("--pivot", "C", "gamma", "acc")
	x.sendKeys("G")
	x.press("Right", `C=10 gamma=0.5: nan`)
	x.press("Left", `C=10 gamma=0: nan`)
	x.press("Enter", `/C="?10"? gamma="?0"? `)
	x.pressUntilGone("Escape", `/C="?10`)
	x.typeCommand("pivot seed C acc:max")
	x.awaitPattern(`acc, max: seed down, C across, over gamma`)
	x.checkRows("--pivot", "seed", "C", "acc:max")
	x.press("h", `by C,gamma`)
	x.press("m", `sort:acc`)
	x.press("?", `h  a heat map of a metric`)
}

// typeCommand types a command into the command line.
func (x *terminal) typeCommand(text string) {
	x.t.Helper()
	x.press(":", `(?m)^ ?:`)
	x.typeText(text)
	x.sendKeys("Enter")
}

// checkRows waits until the screen has the numbers of each row that dcs-tui results prints, in
// order. A narrow screen may show only some numbers of a row.
func (x *terminal) checkRows(args ...string) {
	x.t.Helper()
	x.awaitScreen("the numbers of dcs-tui results "+strings.Join(args, " "), func(shown string) bool {
		// Run again each time: it may have read fewer results than the screen.
		cmd := exec.Command(program, append([]string{"results", "r"}, args...)...)
		cmd.Dir, cmd.Env = x.dir, append(os.Environ(), progtest.HomeEnv(x.dir)...)
		out, err := cmd.Output()
		if err != nil {
			x.t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(string(out)), "\n")[1:]
		found := 0
		for line := range strings.SplitSeq(shown, "\n") {
			if found < len(rows) && isSubsequence(wordsOf(line), strings.Fields(rows[found])) {
				found++
			}
		}
		return found == len(rows)
	})
}

// wordsOf returns the words of a line of the screen, without marks.
func wordsOf(line string) []string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" >[]·░▒▓█*", r) })
	return slices.DeleteFunc(words, func(w string) bool { return strings.Trim(w, ".:") == "" }) // cells of a heat map
}

// isSubsequence reports whether words, except "best", occur in others in the same order.
func isSubsequence(words, others []string) bool {
	n := 0
	for _, w := range words {
		if w == "best" || w == "--" {
			continue
		}
		for len(others) > 0 && others[0] != w {
			others = others[1:]
		}
		if len(others) == 0 {
			return false
		}
		n++
	}
	return n >= 4
}
