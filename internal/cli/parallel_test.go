package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/internal/progtest"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// TestSlotsOfParallel checks that --jobs accepts what GNU parallel's -j means on every host, and
// refuses the rest with what to use instead.
func TestSlotsOfParallel(t *testing.T) {
	for s, want := range map[string]hosts.SlotRule{"100%": {}, "+0": {}, "8": {Fixed: 8}, "-1": {Less: 1}} {
		if got, err := parseSlots(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-", "0", "00", "x", "1.5", "--1", "50%", "150%", "0%", "+1", "+50%", "+", "file"} {
		_, err := parseSlots(s)
		if err == nil || !strings.Contains(err.Error(), "0, N%, +N, and files are not supported") {
			t.Errorf("%q: %v; want an error that names what is not supported", s, err)
		}
	}
	if _, err := parseSlots("99999999"); err == nil {
		t.Error("99999999: no error")
	}
}

// TestSlotsAreThoseOfParallel checks that what --jobs accepts means as many slots on this machine as in
// GNU parallel.
func TestSlotsAreThoseOfParallel(t *testing.T) {
	parallel := progtest.FindParallel(t)
	for _, s := range []string{"1", "7", "07", "100%", "+0", "-0", "-1"} {
		for _, login := range []string{":", "4/:"} {
			if s == "-1" && login == ":" && runtime.NumCPU() == 1 {
				continue // version 20221122 refuses to run nothing, although its manual promises one slot
			}
			cmd := exec.Command(parallel, "--will-cite", "--progress", "-S", login, "-j", s, "true", ":::", "1")
			out, err := cmd.CombinedOutput()
			limits := regexp.MustCompile(`(?m)^1:local / (\d+) / (\d+)$`).FindSubmatch(out)
			if err != nil || limits == nil {
				t.Fatalf("%q: %v: %s", cmd.Args, err, out)
			}
			cores, _ := strconv.Atoi(string(limits[1]))
			inv, _, err := hosts.ParseLogins([]byte(login+"\n"), "--host")
			must(t, err)
			rule, err := parseSlots(s)
			inv.SetSlots(rule)
			if got := strconv.Itoa(inv.Hosts[0].Slots.Count(cores)); err != nil || got != string(limits[2]) {
				t.Errorf("-j %s -S %s: %s slots, %v; want %s", s, login, got, err, limits[2])
			}
		}
	}
}

// optionsOfParallel are the options of GNU parallel 20221122, without those whose names differ only by
// hyphens.
const optionsOfParallel = "" +
	"debug D xargs m X v sql sql-master sql-worker sql-and-worker joblog jl results result res resume " +
	"resume-failed retry-failed silent keep-order k no-keep-order nok group g ungroup u latest-line ll " +
	"line-buffer line-buffered lb tmux tmux-pane null 0 quote q parens rpl plus I extensionreplace er U " +
	"basenamereplace bnr dirnamereplace dnr basenameextensionreplace bner seqreplace slotreplace jobs j delay " +
	"ssh-delay load noswap max-line-length-allowed number-of-cpus number-of-sockets number-of-cores " +
	"number-of-threads use-sockets-instead-of-threads use-cores-instead-of-threads use-cpus-instead-of-cores " +
	"shell-quote nice tag tag-string ctag ctag-string color colour color-failed colour-failed color-fail " +
	"colour-fail cf onall nonall filter-hosts filter-host sshlogin S sshloginfile slf controlmaster M ssh " +
	"transfer-file transfer-files tf return trc transfer cleanup basefile bf template tmpl B ctrl-c no-ctrl-c " +
	"work-dir wd W rsync-opts tmpdir tempdir use-compress-program compress-program use-decompress-program " +
	"decompress-program compress open-tty o tty T H dry-run dr progress eta bar total-jobs total shuf arg-sep " +
	"arg-file-sep trim env recordenv session plain profile J tollef gnu link xapply linkinputsource " +
	"xapplyinputsource will-cite nn nonotice halt-on-error halt limit memfree memsuspend retries timeout " +
	"term-seq max-procs P delimiter d max-chars s arg-file a no-run-if-empty r replace i E eof e " +
	"process-slot-var max-args n max-replace-args N col-sep C csv help h L max-lines l interactive p verbose " +
	"t version V min-version show-limits exit x semaphore semaphore-timeout st semaphore-name id fg bg wait " +
	"shebang hashbang Y skip-first-line bug pipe spreadstdin round-robin round recstart recend regexp regex " +
	"remove-rec-sep rrs output-as-files files block-size block block-timeout bt header cat fifo pipe-part tee " +
	"shard bin group-by hgrp hostgrp hostgroup hostgroups embed filter shell-completion"

// TestOptionsOfParallelAreDocumented checks that each option of GNU parallel works here, or is refused with
// what to use instead, and that docs/reference/parallel.md lists it.
func TestOptionsOfParallelAreDocumented(t *testing.T) {
	const file = "../../docs/reference/parallel.md"
	begin, end := "<!-- keys of "+t.Name()+" -->\n", "<!-- end of "+t.Name()+" -->"
	page, err := os.ReadFile(file)
	must(t, err)
	before, rest, _ := strings.Cut(string(page), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the options", file)
	}
	table := "| options | use instead |\n|---|---|\n"
	for _, a := range parallelAdvice {
		var names []string
		for name := range strings.FieldsSeq(a.names) {
			names = append(names, "`"+dashed(name)+"`")
		}
		advice := strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`).Replace(a.advice)
		table += "| " + strings.Join(names, " ") + " | " + advice + " |\n"
	}
	want := before + begin + table + end + after
	if *updateCommands {
		must(t, os.WriteFile(file, []byte(want), 0o644))
	} else if string(page) != want {
		t.Errorf("%s does not list the refused options: go test ./internal/cli -run %s -args -update", file, t.Name())
	}
	checkOptionsOfParallel(t, before, strings.Fields(optionsOfParallel))
}

// TestNoOptionOfParallelIsMissing checks that optionsOfParallel has each option of the installed GNU parallel.
func TestNoOptionOfParallelIsMissing(t *testing.T) {
	parallel := progtest.FindParallel(t)
	out, err := exec.Command(parallel, "--shell-completion", "bash").Output()
	must(t, err)
	_, words, _ := strings.Cut(string(out), `-W "`)
	words, _, _ = strings.Cut(words, `"`)
	var names []string
	for word := range strings.FieldsSeq(words) {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"))
	}
	if len(names) < 300 {
		t.Fatalf("only %d options: %s", len(names), out)
	}
	page, err := os.ReadFile("../../docs/reference/parallel.md")
	must(t, err)
	checkOptionsOfParallel(t, string(page), names)
}

// checkOptionsOfParallel checks that each of these options is refused with what to use instead, or is a flag
// of dcs-tui run that a page names.
func checkOptionsOfParallel(t *testing.T, page string, names []string) {
	t.Helper()
	run, _, err := newApp().root().Find([]string{"run"})
	must(t, err)
	for _, name := range names {
		flag := run.Flags().Lookup(name)
		if len(name) == 1 {
			flag = run.Flags().ShorthandLookup(name)
		}
		switch advice := adviceOnParallel(name); {
		case name == "help" || name == "h":
		case (flag == nil) == (advice == ""):
			t.Errorf("%s of GNU parallel: accepted: %v; advice %q", dashed(name), flag != nil, advice)
		case flag != nil && !strings.Contains(page, "`"+dashed(name)) && !strings.Contains(page, dashed(flag.Name)):
			t.Errorf("the page does not say how %s differs", dashed(name))
		}
	}
}

// dashed returns the name of an option as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// TestHaltIsThatOfParallel checks for many results of four jobs, one of which runs at a time, that a run
// with --halt starts as many of them as GNU parallel, and succeeds when it does.
func TestHaltIsThatOfParallel(t *testing.T) {
	parallel := progtest.FindParallel(t)
	refused, tested := 0, 0
	for _, rule := range []string{"0", "1", "2", "-1", "-2", "3", "10%", "30%", "100%", "never", "soon,fail=1",
		"soon,fail=2", "now,fail=2", "now,fail=30%", "soon,fail=100%", "now,success=1", "soon,success=2",
		"soon,success=5", "soon,success=50%", "now,success=100%", "now,done=1", "soon,done=50%", "now,done=100%",
		"soon,fail=0", "later,fail=1", "soon,fail", "now,fail=-1"} {
		parsed, err := parseHalt(rule)
		if err != nil {
			refused++
			continue
		}
		for _, exits := range []string{"0 0 0 0", "7 0 0 0", "0 0 0 7", "7 7 0 0", "7 7 7 7", "0 7 0 7"} {
			words := append([]string{"--will-cite", "-j1", "--halt", rule, "echo {}; exit {}", ":::"},
				strings.Fields(exits)...)
			out, err := exec.Command(parallel, words...).Output()
			exit, isExit := errors.AsType[*exec.ExitError](err)
			if isExit && exit.ExitCode() == 255 { // a usage error
				break
			}
			tested++
			want := fmt.Sprintf("%d started, success: %v", strings.Count(string(out), "\n"), err == nil)
			if got := haltOf(parsed, strings.Fields(exits)); got != want {
				t.Errorf("--halt %s, jobs that exit with %s: %s; GNU parallel: %s", rule, exits, got, want)
			}
		}
	}
	same(t, "refused rules", refused, 5)
	same(t, "runs", tested, 21*6)
}

// haltOf returns how many jobs with these exit codes start under a rule, one after the other, and
// whether the run succeeds.
func haltOf(rule halt.Rule, exits []string) string {
	counts := [jobs.Skipped + 1]int{jobs.Queued: len(exits)}
	n, started := halt.Counter{Rule: rule, Results: &counts}, 0
	for _, exit := range exits {
		state := jobs.Succeeded
		if exit != "0" {
			state = jobs.Failed
		}
		started++
		counts[jobs.Queued]--
		counts[state]++
		if n.Reached(len(exits)) != "" {
			break
		}
	}
	how := sched.Drained
	switch {
	case counts[jobs.Queued] == 0:
		how = sched.AllDone
	case rule.IsGoalReached(counts):
		how = sched.Reached
	}
	code := exitCode(run.StateOf(how, counts, false, false, rule))
	return fmt.Sprintf("%d started, success: %v", started, code == exitOK)
}

// TestExportedFunctionsAreNamed checks the error for --env NAME if NAME is a function that bash has
// exported. It names the function as not passed, and does not advise the user to export it.
func TestExportedFunctionsAreNamed(t *testing.T) {
	lookup := func(name string) (string, bool) { return "() {  echo; }", name == "BASH_FUNC_doit%%" }
	_, _, err := run.ParseEnv([]string{"doit"}, lookup)
	var advised *text.Error
	if !errors.As(err, &advised) || !strings.Contains(err.Error(), "exported function") ||
		strings.Contains(advised.Advice, "export it") {
		t.Errorf("--env doit: %v", err)
	}
}
