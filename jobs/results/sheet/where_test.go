package sheet

import (
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

func where(t *testing.T, s *Sheet, text string) (*Sheet, []string) {
	t.Helper()
	f, err := ParseFilter(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	w, notes, err := s.Where(f)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w, notes
}

// whereCases are filters over grid(), and the jobs that each finds.
var whereCases = map[string]string{
	"C>=1 and state=succeeded":         "3 4 5",
	"C>=1, state=succeeded":            "3 4 5",
	"C>=1&&state==succeeded":           "3 4 5",
	"C=0.10":                           "1 2", // numbers as numbers
	"C='0.10'":                         "",    // in quotes as text
	"C='0.1'":                          "1 2",
	"[C]=10 or [gamma]=0":              "1 3 5 6 7",
	"not (C=10 or gamma=0)":            "2 4",
	"!C=10 and not not gamma=0":        "1 3",
	"C<1 or C>1 and gamma=1":           "1 2 6 7", // and binds closer
	"(C<1 or C>1) and gamma=1":         "2 6 7",
	"acc<=0.5":                         "1 3",
	"acc>0.5":                          "2 6",
	"acc=nan":                          "4",
	"acc!=nan":                         "1 2 3 5 6 7",
	"acc>=-inf":                        "1 2 3 6",
	"acc=''":                           "7",
	"acc!=''":                          "1 2 3 4 5 6",
	"note=*":                           "1 2 3 5 6",
	"note=c*":                          "3", // also over a slash
	"note=?":                           "1 2 5 6",
	"note='*'":                         "",
	"note~'^[ab]$'":                    "1 2",
	"note !~ [a-c]":                    "4 5 6 7",
	"note>=c":                          "3 5 6",
	"note<'b'":                         "1",
	"host=melon* and exit=3":           "6",
	"time>4":                           "5 6",
	"cause~'exit 3'":                   "6",
	"state!=succeeded":                 "6 7",
	"name='job 3'":                     "3",
	"name=\"job 3\"":                   "3",
	"job>2 AND job<5 Or job=7":         "3 4 7",
	"host=''":                          "7",
	"exit=''":                          "7",
	"exit='3'":                         "6",
	"exit=?":                           "1 2 3 4 5 6",
	"exit~.":                           "1 2 3 4 5 6",
	"C=1 and(gamma=0)or(gamma=1)":      "2 3 4 6 7",
	"state=*ed and elapsed_seconds=6":  "6",
	"C=0.1 or C=1 or C=10 and gamma=2": "1 2 3 4",
	"ID=1 or Id=2":                     "1 2", // names are not case-sensitive, and those of the screen work
	"STATE=failed":                     "6",
	"GAMMA=0 and c>1":                  "5",
	"TIME>4s":                          "5 6",
	"time>=0.1m":                       "6",
	"TRY=1 and Acc>0.5":                "2",
	"CPU<1s MEM<1.5G":                  "1 2 3 4 5 6",
	"NAME='job 3' or HOST=''":          "3 7",
	"CAUSE~'exit 3'":                   "6",
	"C=1 gamma=0":                      "3", // a blank is `and`
	"C=1 gamma=0 or job=7":             "3 7",
	"C=1 not gamma=0":                  "4",
	"C=1 (gamma=0 or gamma=1)":         "3 4",
}

// Issue 5, point 3: --where. The screen's search finds the same by the same comparisons.
func TestWhere(t *testing.T) {
	s := grid()
	for text, want := range whereCases {
		if got, _ := where(t, s, text); ids(got) != want {
			t.Errorf("%s: %s, want %s", text, ids(got), want)
		}
		f, err := ParseSearch(text)
		if err != nil {
			t.Errorf("as a search: %s: %v", text, err)
			continue
		}
		if got, _, err := s.Where(f); err != nil || ids(got) != want {
			t.Errorf("as a search: %s: %v %v, want %s", text, got, err, want)
		}
	}
	// A text where a number is asked for matches nothing, and is told.
	if _, notes := where(t, s, "acc>0.5 or acc<0"); len(notes) != 1 || notes[0] != `acc of 1 job is no number and left out (job 5: "bad")` {
		t.Errorf("%q", notes)
	}
}

// Issue 5, point 5: exit=137 is a job that was killed, too.
func TestWhereOfSignals(t *testing.T) {
	s := New(Input{Jobs: []results.Result{
		{Job: 1, State: jobs.Failed, Outcome: &jobs.Outcome{Started: 1, Signal: "SIGKILL"}},
		{Job: 2, State: jobs.Failed, Outcome: &jobs.Outcome{Started: 1, Exit: 137}},
		{Job: 3, State: jobs.Failed, Outcome: &jobs.Outcome{Started: 1, Signal: "SIGTERM"}},
		{Job: 4, State: jobs.Succeeded, Outcome: &jobs.Outcome{Started: 1}},
		{Job: 5, State: jobs.Skipped},
	}})
	for text, want := range map[string]string{"exit=137": "1 2", "exit>128": "1 2 3", "exit!=0": "1 2 3 5", "exit=''": "5", "signal=SIGKILL": "1", "exit=137 and signal=''": "2"} {
		if got, _ := where(t, s, text); ids(got) != want {
			t.Errorf("%s: %s, want %s", text, ids(got), want)
		}
	}
}

func TestBadFilters(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "the filter is empty",
		"  ":                             "the filter is empty",
		"C":                              `character 2: after "C" one of = != < <= > >= ~ !~ is wanted, not its end`,
		"C=1 and state:failed":           "character 21: \"state:failed\" is how the screen's filter has it; here it is \"state=failed\"",
		"C is 3":                         `character 3: after "C"`,
		"C=":                             "character 3: a value is wanted",
		"C=)":                            "character 3: a value is wanted",
		"=3":                             `character 1: a comparison such as C>=0.1 is wanted, not "="`,
		"C=1 gamma":                      "character 5: \"gamma\" is not expected here",
		"(C=1":                           "character 5: a ) is wanted, not its end",
		"C=1)":                           "character 4: \")\" is not expected",
		"C=1 and":                        "character 8: a comparison",
		"not":                            "character 4: a comparison",
		"C='1":                           "character 3: the quote is not closed",
		"[C=1":                           "character 1: the [ is not closed",
		"C~'('":                          "missing closing )",
		"C=1 & gamma=2":                  `character 5: "&" is no word`,
		"é=1 und gamma=2":                "character 5: \"und\"",
		strings.Repeat("(", 200) + "C=1": "more than 100 parentheses",
		strings.Repeat("not ", 200):      "more than 100",
		strings.Repeat("x", 20_000):      "at most 10000",
	} {
		if f, err := ParseFilter(text); err == nil || f != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: %v, want %s", text, err, want)
		}
	}
	s := grid()
	for text, want := range map[string]string{
		"C=1 and gama=2":                   "character 9: there is no column \"gama\"; did you mean gamma?",
		"state=succeeded or state=success": "character 20: no job is ever \"success\"; the states are",
		"exit=x":                           "no exit code is \"x\": they are numbers from 0 to 255",
		"exit>=256":                        "no exit code is \"256\"",
		"exit!='-1'":                       "no exit code is \"-1\"",
		"C=1 and attempts=many":            "character 9: attempts is a number, and \"many\" is none",
		"time>1x":                          "elapsed_seconds is a number, and \"1x\" is none",
		"exit>1K":                          "no exit code is \"1K\"",
	} {
		f, err := ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Where(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Whatever is typed: no panic, errors without escapes; a filter and its negation share
// the rows between them.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"C>=0.1 and state=succeeded", "not (a=1 or b!~'x y') , c<=-3", "[1]>0.5 && host=ws*", "acc=nan||note=''", "((", "C='", "é~[", "a=b=c"} {
		f.Add(s)
	}
	s := grid()
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseFilter(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x1b\x00\n") {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		yes, _, err := s.Where(parsed)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x1b\x00\n") {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		other, err := ParseFilter("not (" + text + ")")
		if err != nil {
			if len(text) > maxFilter-10 || strings.Contains(err.Error(), "more than") {
				return
			}
			t.Fatalf("%q cannot be negated: %v", text, err)
		}
		no, _, err := s.Where(other)
		if err != nil || yes.Len()+no.Len() != s.Len() {
			t.Fatalf("%q: %d and %d rows, %v", text, yes.Len(), no.Len(), err)
		}
	})
}

// A run has its parameters before any of its jobs is over, in the order of the template.
func TestColumnsWithoutJobs(t *testing.T) {
	s := New(Input{Params: []string{"gamma", "C"}, Names: []string{"acc"}})
	if got := head(s); got != "job gamma C acc state elapsed_seconds host" {
		t.Error(got)
	}
	if w, notes := where(t, s, "C>1 and acc>0.5"); w.Len() != 0 || len(notes) > 0 {
		t.Errorf("%d rows, %q", w.Len(), notes)
	}
	some := []results.Result{{Job: 1, Params: []jobs.Param{{Name: "C", Value: "1"}, {Name: "x", Value: "2"}}}}
	if got := show(New(Input{Jobs: some, Params: []string{"gamma", "C"}})); got != "1 - 1 2 queued - -" {
		t.Error(got)
	}
}
