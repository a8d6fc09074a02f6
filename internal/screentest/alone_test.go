package screentest

import (
	"fmt"
	"testing"
)

// TestAloneListsTheRuns checks that dcs-tui without arguments lists the runs, newest first, with
// their status, and that the user can attach, resume, and prune from there. Afterwards the shell
// has its terminal back.
func TestAloneListsTheRuns(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 100, 24)
	was := x.terminalSettings("before")
	x.writeFile("ok.txt", "true\n")
	x.writeFile("bad.txt", "#DCS default tries=1\nfalse\n"+gated)
	for i, command := range []string{"run --hosts hosts.toml --no-tui --name older ok.txt",
		"run --hosts hosts.toml --no-tui --halt now,fail=1 --name r bad.txt"} {
		x.enterLine(fmt.Sprintf("clear; dcs-tui %s; echo exit-%d=$?", command, i), fmt.Sprintf(`exit-%d=\d`, i))
	}

	x.enterLine("clear; dcs-tui", `(?s)NAME +MADE.*> r .*1 failed.*\n +older .*1 of 1 ok.*enter attach`)
	x.press("j", `> older`)
	x.press("Enter", `\[1 Jobs`) // attached
	x.press("q", `all jobs succeeded`)
	x.awaitGone(`\[1 Jobs`)

	x.enterLine("clear; dcs-tui", `> r `)
	x.press("j", `> older`)
	x.press("P", `remove the run and its outputs: older\? y`)
	x.press("y", `(?s)1 run removed.*> r `) // the list again, without the removed run
	x.press("q", `prompt>`)
	x.awaitGone(`> r `)

	x.writeFile("gate", "")
	x.enterLine("clear; dcs-tui", `> r `)
	x.press("R", `Summary`) // resumed and finished
	x.press("q", `prompt>`)
	x.awaitGone(`\[1 Jobs`)
	if is := x.terminalSettings("after"); is != was {
		t.Errorf("the terminal was %s and is %s", was, is)
	}
}

// TestAloneListsRunsOfOtherDirectories checks that the list also has the user's runs in other
// directories, with the ends of their paths, after those here; that its keys work on them; and that
// `?` lists the keys.
func TestAloneListsRunsOfOtherDirectories(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24)
	x.writeFile("ok.txt", "true\n")
	x.enterLine("mkdir p q; cd p; dcs-tui run --hosts ../hosts.toml --no-tui --name there ../ok.txt; echo exit=$?",
		`exit=0`)
	x.enterLine("cd ../q; clear; dcs-tui", `(?s)NAME +MADE.*> \.\.\.\S*/p/dcs-runs/there .*enter attach`)
	x.press("?", `P +remove the run and its outputs`)
	x.press("?", `enter attach`)
	x.press("Enter", `\[1 Jobs`)
	x.press("q", `all jobs succeeded`)
	x.awaitGone(`\[1 Jobs`)

	x.enterLine("clear; dcs-tui run --hosts ../hosts.toml --no-tui --name here ../ok.txt; echo exit=$?", `exit=0`)
	x.enterLine("clear; dcs-tui", `(?s)> here .*1 of 1 ok.*\n +\.\.\.\S*/p/dcs-runs/there `)
	x.press("j", `> \.\.\.`)
	x.press("P", `remove the run and its outputs: /`)
	x.press("n", `enter attach`)
	x.press("P", `remove the run and its outputs: /`)
	x.press("y", `(?s)1 run removed.*> here `)
	x.press("q", `prompt>`)
}
