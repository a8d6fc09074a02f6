package blame

import (
	"testing"

	"dcs-tui/jobs"
)

func attempt(job jobs.ID) jobs.AttemptID { return jobs.AttemptID{Job: job, N: 1} }

// TestStreakCountsJobs checks that several failures of one job count as one, that a success ends the
// streak, and that a host is proven after a success until another job fails there.
func TestStreakCountsJobs(t *testing.T) {
	var q Record
	want := func(when string, streak int, proven, provenBut7 bool) {
		t.Helper()
		if q.NumStreak != streak || q.IsProven(0) != proven || q.IsProven(7) != provenBut7 {
			t.Errorf("%s: streak %d, proven %v, proven but for job 7 %v; want %d, %v, %v", when, q.NumStreak,
				q.IsProven(0), q.IsProven(7), streak, proven, provenBut7)
		}
	}
	q.AddFailure(Failure{ID: attempt(1), Took: 2})
	q.AddFailure(Failure{ID: jobs.AttemptID{Job: 1, N: 2}, Took: 3})
	q.AddFailure(Failure{ID: attempt(2), Took: 1})
	want("two jobs have failed", 2, false, false)
	if q.Longest() != 2 {
		t.Errorf("the longest failure took %d, want 2", q.Longest())
	}
	q.Succeeded++
	q.EndStreak()
	want("a job has succeeded", 0, true, true)
	q.AddFailure(Failure{ID: attempt(7)})
	want("job 7 has failed", 1, false, true)
	if !q.Contradict(7) || q.Contradict(8) || !q.Streak[0].IsContradicted {
		t.Error("only the failure of job 7 is contradicted")
	}
	if !q.Explain(7) || q.Explain(7) {
		t.Error("the failure of job 7 is not explained once")
	}
	want("job 7 is at fault", 0, true, true)
	for i := range jobs.ID(2 * maxRemembered) {
		q.AddFailure(Failure{ID: attempt(10 + i)})
	}
	if len(q.Streak) != maxRemembered || q.NumStreak != 2*maxRemembered {
		t.Errorf("%d failures of %d are remembered", len(q.Streak), q.NumStreak)
	}
}

// addend returns the numbers of failures and successes that a letter stands for.
func addend(r rune) (numFailed, numSucceeded int) {
	if r == 'P' || r == '+' {
		return 0, 1
	}
	return 1, 0
}

// TestOthersExplainAStreak checks that a streak may be bad luck while jobs fail as often on other
// hosts, and is none while they succeed there. The host's own results do not count.
func TestOthersExplainAStreak(t *testing.T) {
	for _, c := range []struct {
		name    string
		results string // of the other hosts: + or -, and those of the host itself in capitals: P or M
		want    bool
	}{
		{"nothing is known", "", true},
		{"jobs succeed elsewhere", "++++++++++++++++++++", false},
		{"jobs fail elsewhere, too", "+-+-+-+-+-+-+-+-+-+-", true},
		{"only the host itself fails", "+M+M+M+M+M+M+M+M+M+M+M+M", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all Results
			var o Others
			for _, r := range c.results {
				if r == 'P' || r == 'M' {
					o.Update(all)
					all.Add(addend(r))
					o.Skip(all)
				} else {
					all.Add(addend(r))
				}
			}
			o.Update(all)
			if got := o.Explain(5); got != c.want {
				t.Errorf("five failures in a row may be bad luck: %v, want %v", got, c.want)
			}
		})
	}
}
