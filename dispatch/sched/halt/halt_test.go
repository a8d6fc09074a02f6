package halt

import (
	"slices"
	"testing"

	"dcs-tui/jobs"
)

// TestResultsHaltARun checks after how many results a rule halts the run, and that the one before
// is near it.
func TestResultsHaltARun(t *testing.T) {
	ok, failed := jobs.Succeeded, jobs.Failed
	for _, c := range []struct {
		name    string
		rule    Rule
		results []jobs.JobState // repeated
		after   int             // 0: never
		why     string
	}{
		{"no rule", Rule{}, []jobs.JobState{failed}, 0, ""},
		{"failures", Rule{Jobs: 3}, []jobs.JobState{ok, failed, jobs.TimedOut}, 5, "3 jobs have failed (--halt 3)"},
		{"2 has another meaning", Rule{Jobs: 2}, []jobs.JobState{failed, failed}, 2,
			"2 jobs have failed (--halt soon,fail=2)"},
		{"the first success", Rule{Of: Successes, Jobs: 1}, []jobs.JobState{failed, ok}, 2,
			"1 job has succeeded (--halt soon,success=1)"},
		{"all", Rule{Of: All, Jobs: 2, Now: true}, []jobs.JobState{ok, jobs.Skipped}, 3,
			"2 jobs have ended (--halt now,done=2)"},
		{"a share of the 40 jobs", Rule{Percent: 12}, []jobs.JobState{failed, ok}, 9,
			"5 of 40 jobs have failed (--halt 12%)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var results [jobs.Skipped + 1]int
			n := Counter{Rule: c.rule, Results: &results}
			for i := range 40 {
				wasNear := n.IsNear(40)
				results[c.results[i%len(c.results)]]++
				if n.Reached(40) == "" {
					continue
				}
				if i+1 != c.after || n.Reached(40) != c.why || !wasNear {
					t.Errorf("after %d results: %s, near before: %v; want %s after %d", i+1, n.Reached(40), wasNear,
						c.why, c.after)
				}
				return
			}
			if c.after > 0 {
				t.Errorf("not reached, want %s after %d results", c.why, c.after)
			}
		})
	}
}

// TestMissingCommandHaltsARun checks that a run is halted when the first jobs find no command, and
// only if that is so on all hosts that take jobs and no attempt has ended otherwise.
func TestMissingCommandHaltsARun(t *testing.T) {
	for _, c := range []struct {
		name   string
		rule   Rule
		n      int
		usable []string
		then   jobs.Outcome
		halts  bool
	}{
		{"on the only host", Rule{}, maxNotFound, []string{"a"}, jobs.Outcome{Exit: exitNotRunnable}, true},
		{"another host takes jobs", Rule{}, maxNotFound, []string{"a", "b"}, jobs.Outcome{Exit: exitNotFound}, false},
		{"too few", Rule{}, maxNotFound - 2, []string{"a"}, jobs.Outcome{Exit: exitNotFound}, false},
		{"one was found", Rule{}, maxNotFound, []string{"a"}, jobs.Outcome{Exit: 1}, false},
		{"never", Rule{Never: true}, maxNotFound, []string{"a"}, jobs.Outcome{Exit: exitNotFound}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := Counter{Rule: c.rule}
			for i := range c.n {
				n.CountAttempt(&jobs.Record{Job: jobs.ID(i + 1), Host: "a", Outcome: &jobs.Outcome{Exit: exitNotFound}})
			}
			n.CountAttempt(&jobs.Record{Job: 99, Host: "a", Outcome: &c.then})
			if why := n.NoCommand(slices.Values(c.usable)); (why != "") != c.halts {
				t.Errorf("halted because %q, want %v", why, c.halts)
			}
		})
	}
}
