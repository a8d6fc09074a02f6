package runview

import (
	"os"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestFilterIsAQueryOrWords checks the filter of key /: the language of --where, and words to
// search for.
func TestFilterIsAQueryOrWords(t *testing.T) {
	b := boardOf(t, sampleRun())
	b.known.metrics = []string{"acc"} // declared
	for _, c := range []struct{ filter, want string }{
		{"", "1 2 3 4 5 6 7 8 9 10 11 12"},
		{"TRAIN", "1 2"},
		{"alpha", "1"},
		{"train alpha", "1"},
		{"STRASSE", ""},
		{"STRAße", "3"},
		{"rbf", "4"},
		{`"quoted"`, "8"},
		{`"lr 0.5"`, "2"},
		{`"a \"quoted\""`, "8"},
		{"not sleep", "1 2 3 8 12"},
		{"!sleep not train", "3 8 12"},
		{"-sleep", ""},
		{"tags=gpu", "2 4"},
		{"tags~gpu", "2 4"},
		{"queue=n*t", "2 4"},
		{"host=ws0[12]", "1 2 3 8 10 12"},
		{"not host=*", "4 6 7 9 11"},
		{"exit=143", "8"},
		{"exit>0", "2 5 8"},
		{"exit=0", "1"},
		{"C=0.1", "1 2"},
		{"C>=0.1 C<5", "1 2"},
		{"0.1 <= C < 5", "1 2"},
		{"C * 10 = 1", "1 2"},
		{"C!=0.1", "3 4 5 6 7 8 9 10 11 12"}, // including those without a value, as with --where
		{"C!=0.1 C=*", "3"},
		{"C=0.1 not C=0.1", ""},
		{`C="0.1"`, "1"},
		{`C=0.10`, "1 2"},
		{`C="1e-1"`, "2"},
		{`C!="1e-1" C=*`, "1 3"},
		{`C="0.1*"`, ""},
		{`C>"0.2"`, "2 3"}, // as text; 2 has 1e-1
		{"C=1?", "3"},
		{"kernel=r*", "4"},
		{"kernel!=rbf kernel=*", ""},
		{"try=2", "2 5"},
		{"try>1", "2 5"},
		{"prio=5", "2 4"},
		{"prio<0", "9"},
		{"prio!=0 not prio=5", "9"},
		{"3<=job<=5 or id=12", "3 4 5 12"},
		{"straggler=yes", ""},
		{"not straggler=yes and id=1", "1"},
		{`"state:x"`, ""},
		{"http://x", ""},
		// states and phases
		{"state=fail", "2"},
		{"state=fail or state=timeout", "2 8"},
		{"state=bad", "2 8 11"},
		{"state=open", "3 4 5 6 9 10 12"},
		{"state=done", "1 2 7 8 11"},
		{"state!=done", "3 4 5 6 9 10 12"},
		{"state=running", "3 10 12"},
		{"state=ENDING", "12"},
		{"state=retry or state=waits", "5 6"},
		{"state=*ed not state=queued", "1 2 7 11"},
		// what --where accepts
		{"state=failed", "2"},
		{"state=failed or state=timed_out", "2 8"},
		{"state=running", "3 10 12"},
		{"state=queued", "4 5 6 9"},
		{"host=ws01", "1 2 3"},
		{"host=ws* state=succeeded", "1"},
		{"host=''", "4 6 7 9 11"},
		{"exit=137", "2 5"},
		{"exit!=0 and state=failed", "2"},
		{"signal=SIGKILL", "5"},
		{"queue=night", "2 4"},
		{"job>=11", "11 12"},
		{"name~^train", "2"},
		{"command ~ 'rain'", "1 2"},
		{"C>=0.1 and C<5, not C=0.1", ""},
		{"C > 1", "3"},
		{"[C]>1", "3"},
		{"failures>0 state=queued", "5"},
		// names on the screen
		{"id=1", "1"},
		{"ID=1 or Id=3", "1 3"},
		{"STATE=failed", "2"},
		{"HOST=ws01 TRY=2", "2"},
		{"TIME>=1m", "1 8"},
		{"PROGRESS=''", "1 2 3 4 5 6 7 8 9 10 11 12"},
		{"NAME=Alpha", "1"},
		{"PARAMETERS~lr", ""},
		{"Parameters~kernel=r", "4"},
		{"QUEUE=night", "2 4"},
		{"PRIO>0", "2 4"},
		{"CPU>=1.5s", "8"},
		{"MEM>8M mem<1G", "1"},
		{"kernel=rbf KERNEL=rbf", "4"},
		// words and conditions
		{"train (C=0.1 or state=bad)", "1 2"},
		{"not (state=open or state=done)", ""},
		{"! state=failed state=bad", "8 11"},
		{"state=failed, host=ws*", "2"},
		{"train or sleep", "1 2 4 5 6 7 9 10 11"},
		{`"or" "C=0.1"`, ""},
		{"--train=1 id=1", ""}, // an option of a command is a text
		{"a:b", ""},
	} {
		t.Run(c.filter, func(t *testing.T) {
			p := lookAt(t, b, Query{Jobs: &JobsWindow{Filter: c.filter, Sort: SortID, Rows: 50}})
			if got := idsOf(p); got != c.want || p.Jobs.Wrong != "" {
				t.Errorf("%s, want %s %s", got, c.want, p.Jobs.Wrong)
			}
			which, err := b.Match(t.Context(), c.filter)
			w, costErr := b.Cost(t.Context(), which)
			if err != nil || costErr != nil || which.Count() != len(p.Jobs.Rows) ||
				w.Queued+w.Running+w.Sent+w.Over != which.Count() {
				t.Errorf("%v %+v %v %v", which, w, err, costErr)
			}
		})
	}
}

// TestWrongFilterIsExplained checks that a filter that cannot be parsed shows no jobs and why, and that
// no action takes it.
func TestWrongFilterIsExplained(t *testing.T) {
	b := boardOf(t, sampleRun())
	b.known.metrics = []string{"acc"} // declared
	for filter, want := range map[string]string{
		"state=odd":               "there is no state \"odd\"; there are ending, run",
		"state=faled":             "character 7: there is no state \"faled\" (did you mean",
		"state:fail":              "character 1: a comparison has no colon: write state=fail",
		"exit=300":                "0 to 255",
		"exit=x":                  `exit is a number, and "x" is not`,
		"try=x":                   `try is a number, and "x" is not`,
		"C>":                      "is expected, not the end",
		"D=1":                     `there is no column "D"`,
		"hots=ws1":                `did you mean "host"?`,
		"kernl=1":                 `did you mean "kernel"?`,
		"x not kernl=1":           `character 7: there is no column "kernl"`,
		"started>1":               "cannot be filtered by started; the Results view can",
		"acc>0.9":                 "acc is found in outputs: the Results view",
		"(train":                  "a ) is expected",
		"train or":                "is expected, not the end",
		"host=x[":                 "a ] is missing",
		`"open`:                   "quote is not closed",
		strings.Repeat("x ", 4e3): "at most",
	} {
		t.Run(want, func(t *testing.T) {
			p := lookAt(t, b, Query{Jobs: &JobsWindow{Filter: filter, Rows: 50}})
			if !strings.Contains(p.Jobs.Wrong, want) || p.Jobs.Matched != 0 || len(p.Jobs.Rows) != 0 {
				t.Errorf("%s: %q, want %q", filter, p.Jobs.Wrong, want)
			}
			if _, err := b.Match(t.Context(), filter); err == nil {
				t.Errorf("%s: a wrong filter matches", filter)
			}
		})
	}
}

// FuzzFilter checks that no filter makes the parser fail, and that an accepted filter can be
// applied.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"", `-a "b c" !d`, "state=failed,open", "C>=0.1", "exit!=SIGKILL", `"\\`, "id=1-,",
		"host=[", "try>", "=", "a!b", "-\"", "\xff:\x00"} {
		f.Add(s)
	}
	k := FromTable(runAt(""), sampleRun().Table, Options{})
	l := &k.list
	for id := jobs.ID(1); id <= 12; id++ {
		k.remakeRow(id)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x, err := parseFilter(s, l.known)
		if err != nil {
			if x != nil || err.Error() == "" || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("%q: %v, %q", s, x, err)
			}
			return
		}
		n := len(l.matching(x))
		if again, err := parseFilter(s+" ", l.known); err != nil || len(l.matching(again)) != n {
			t.Errorf("%q: %v, with a blank behind it", s, err)
		}
		if _, err := parseEvents(s); err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%q: %v", s, err)
		}
	})
}

// TestFiltersAreAsDocumented checks that the filters that docs/query.md shows are accepted.
func TestFiltersAreAsDocumented(t *testing.T) {
	b := boardOf(t, sampleRun())
	page, err := os.ReadFile("../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## On the screen\n")
	_, block, _ := strings.Cut(section, "\n```\n")
	block, _, _ = strings.Cut(block, "```")
	n := 0
	for filter := range strings.Lines(block) {
		n++
		if _, err := b.Match(t.Context(), strings.TrimSpace(filter)); err != nil {
			t.Errorf("%s: %v", filter, err)
		}
	}
	if n < 2 {
		t.Errorf("the page shows %d filters", n)
	}
}
