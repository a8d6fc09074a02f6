package results

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

func where(t *testing.T, s *Table, text string) (*Table, []string) {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	w, notes, err := s.Where(q)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w, notes
}

// TestWhereIgnoresCase checks --where: names are not case-sensitive, and the names on the screen
// work.
func TestWhereIgnoresCase(t *testing.T) {
	s := grid()
	for text, want := range map[string]string{
		"C>=1 and state=succeeded":        "3 4 5",
		"C=0.10":                          "1 2",
		"[C]=10 or [gamma]=0":             "1 3 5 6 7",
		"acc<=0.5":                        "1 3",
		"acc=''":                          "7",
		"name=C":                          "", // a fact is compared with a text
		"host=melon* and exit=3":          "6",
		"time>4":                          "5 6",
		"cause~'exit 3'":                  "6",
		"name='job 3'":                    "3",
		"host=''":                         "7",
		"exit=?":                          "1 2 3 4 5 6",
		"state=*ed and elapsed_seconds=6": "6",
		"state=bad":                       "6 7",
		"state!=done":                     "",
		"ID=1 or Id=2":                    "1 2",
		"STATE=failed":                    "6",
		"GAMMA=0 and c>1":                 "5",
		"TIME>4s":                         "5 6",
		"time>=0.1m":                      "6",
		"TRY=1 and Acc>0.5":               "2",
		"CPU<1s MEM<1.5G":                 "1 2 3 4 5 6",
		"ended<1970-01-01T00:00:05":       "1 2 3",
	} {
		t.Run(text, func(t *testing.T) {
			got, _ := where(t, s, text)
			same(t, text, jobIDs(got), want)
		})
	}
}

// TestCausesOfRetriesSelectResults checks that --where accepts the causes of --retry-on, and
// signals without SIG.
func TestCausesOfRetriesSelectResults(t *testing.T) {
	var in TableInput
	for i, o := range []jobs.Outcome{{Signal: "SIGKILL", Memory: jobs.MemoryLimit}, {Signal: "SIGKILL"},
		{TimedOut: true, Signal: "SIGTERM"}, {Exit: 3}} {
		in.Jobs = append(in.Jobs, Result{Job: jobs.ID(i + 1), State: jobs.Failed, Outcome: &o})
	}
	s := NewTable(in)
	for text, want := range map[string]string{
		"cause=memory": "1", "cause=timeout": "3", "cause=exit": "4", "cause=signal": "2", "cause=SIGKILL": "2",
		"cause='memory limit'": "1",
		"signal=KILL":          "1 2", "signal=sigterm": "3", "cause=disk": "",
	} {
		t.Run(text, func(t *testing.T) {
			got, _ := where(t, s, text)
			same(t, text, jobIDs(got), want)
		})
	}
}

// TestWordsAreSearchedFor checks that words are searched for in the name, the command, and the
// parameters.
func TestWordsAreSearchedFor(t *testing.T) {
	s := grid()
	for text, want := range map[string]string{"JOB": "1 2 3 4 5 6 7", `"job 3"`: "3", "gamma=1 train not C=10": "2 4",
		`"C=10" state=ok`: "5", "melon1": "", "gam": "1 2 3 4 5 6 7"} {
		t.Run(text, func(t *testing.T) {
			q, err := query.ParseSearch(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := s.Where(q); err != nil || jobIDs(got) != want {
				t.Errorf("%s: got jobs %q, %v; want %q", text, jobIDs(got), err, want)
			}
		})
	}
}

// TestImpossibleConditionIsAnError checks that a condition on a value that no job can have is an
// error.
func TestImpossibleConditionIsAnError(t *testing.T) {
	s := grid()
	for text, want := range map[string]string{
		"C=1 and gama=2": `character 9: there is no column "gama" (did you mean "gamma"?)`,
		"state=succeeded or state=success": `character 26: there is no state "success"; ` +
			`there are open, done, bad, queued`,
		"state=faled":           `(did you mean "failed"?)`,
		"exit=x":                `exit is a number, and "x" is not`,
		"cause=memry":           `there is no cause "memry" (did you mean "memory"?)`,
		"signal=KILLED":         `there is no signal "KILLED"`,
		"exit>=256":             "256 is not an exit code",
		"exit!=-1":              "-1 is not an exit code",
		"C=1 and attempts=many": `character 18: attempts is a number, and "many" is not`,
		"time>1x":               "elapsed_seconds is a duration such as",
	} {
		t.Run(text, func(t *testing.T) {
			q, err := query.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Where(q); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", text, err, want)
			}
		})
	}
}

// TestNotesOfWhere checks that values that < and > could not compare are reported, and so are
// columns without values.
func TestNotesOfWhere(t *testing.T) {
	s := grid()
	for text, want := range map[string]string{
		"acc>0.5 or acc<0": `acc of 1 job is not a number and left out (job 5: "bad")`,
		"note>1":           `note of 5 jobs is not a number and left out (such as job 1: "a")`,
		"C>high":           `C of 7 jobs is a number and left out: it was compared with a text (such as job 1: "0.1")`,
	} {
		t.Run(text, func(t *testing.T) {
			_, notes := where(t, s, text)
			same(t, text, strings.Join(notes, "|"), want)
		})
	}
	some, _ := where(t, s, "job=7")
	_, notes := where(t, some, "1 < acc < 2")
	same(t, "notes", strings.Join(notes, "|"), "no job has acc")
}

// TestConditionsOnStatisticsApplyToGroups checks that conditions on statistics apply to groups
// (E3).
func TestConditionsOnStatisticsApplyToGroups(t *testing.T) {
	s := grid()
	for text, want := range map[string][2]string{
		"C>=1 acc_mean>0.9":               {"C", "acc_mean"},
		"C>=1 train":                      {"C", ""},
		"solved>2, (jobs>3 and gamma=1)":  {"gamma", "solved jobs"},
		"acc_mean>1 or C=1":               {"", "acc_mean C"},
		"C=1 (state=failed or host=ws1*)": {"C state host", ""},
	} {
		t.Run(text, func(t *testing.T) {
			q, err := query.ParseSearch(text)
			if err != nil {
				t.Fatal(err)
			}
			var got [2]string
			rows, groups := s.Split([]*query.Query{q})
			for i, part := range [][]*query.Query{rows, groups} {
				var names []string
				for _, c := range part {
					names = append(names, c.Names(false)...)
				}
				got[i] = strings.Join(names, " ")
			}
			same(t, text, got, want)
		})
	}
}

// TestExit137MatchesSIGKILL checks that exit=137 also matches a job that SIGKILL ended.
func TestExit137MatchesSIGKILL(t *testing.T) {
	s := NewTable(TableInput{Jobs: []Result{
		{Job: 1, State: jobs.Failed, Outcome: &jobs.Outcome{Started: 1, Signal: "SIGKILL"}},
		{Job: 2, State: jobs.Failed, Outcome: &jobs.Outcome{Started: 1, Exit: 137}},
		{Job: 3, State: jobs.Failed, Outcome: &jobs.Outcome{Started: 1, Signal: "SIGTERM"}},
		{Job: 4, State: jobs.Succeeded, Outcome: &jobs.Outcome{Started: 1}},
		{Job: 5, State: jobs.Skipped},
	}})
	for text, want := range map[string]string{"exit=137": "1 2", "exit>128": "1 2 3", "exit!=0": "1 2 3 5",
		"exit=''": "5", "signal=SIGKILL": "1", "exit=137 and signal=''": "2"} {
		t.Run(text, func(t *testing.T) {
			got, _ := where(t, s, text)
			same(t, text, jobIDs(got), want)
		})
	}
}

// TestColumnsWithoutJobs checks that a run has its parameter columns before any of its jobs has
// finished, in the order of the template.
func TestColumnsWithoutJobs(t *testing.T) {
	s := NewTable(TableInput{Params: []string{"gamma", "C"}, Names: []string{"acc"}})
	same(t, "the columns", columnNames(s), "job gamma C acc state elapsed_seconds host")
	w, notes := where(t, s, "C>1 and acc>0.5")
	same(t, "rows and notes", fmt.Sprint(w.Len(), notes), "0 []")
	some := []Result{{Job: 1, Params: []jobs.Param{{Name: "C", Value: "1"}, {Name: "x", Value: "2"}}}}
	same(t, "the rows", plainText(NewTable(TableInput{Jobs: some, Params: []string{"gamma", "C"}})),
		"1 - 1 2 queued - -")
}
