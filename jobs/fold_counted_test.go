package jobs_test

import (
	"testing"

	"dcs-tui/jobs"
)

// TestWhichAttemptCounts checks which attempt determines the state of a job: the one whose end was
// recorded last in its round, before the job had its result.
func TestWhichAttemptCounts(t *testing.T) {
	lost := func(n int, next jobs.JobState, seq int64) jobs.Record { return over(jobs.KindLost, 1, n, next, seq) }
	job := func(next jobs.JobState, seq int64) jobs.Record {
		return jobs.Record{Kind: jobs.KindJob, Job: 1, Next: next, Seq: seq}
	}
	copies := []jobs.Record{accepted(1), launching(1, 1), running(1, 1), launching(1, 2), running(1, 2)}
	for _, c := range []struct {
		name   string
		script []jobs.Record
		want   int32
	}{
		{"never ran", []jobs.Record{accepted(1), job(jobs.Canceled, 1)}, 0},
		{"success", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0), launching(1, 2),
			lost(2, jobs.Queued, 0), launching(1, 3), exited(1, 3, ok, jobs.Succeeded, 1)}, 3},
		{"the newest fails first", append(copies[:5:5], exited(1, 2, bad, jobs.Running, 0),
			exited(1, 1, slow, jobs.TimedOut, 1)), 1},
		{"the newest is lost first", append(copies[:5:5], lost(2, jobs.Running, 0),
			exited(1, 1, bad, jobs.Failed, 1)), 1},
		{"the other one ends after the result", append(copies[:5:5], exited(1, 1, ok, jobs.Succeeded, 1),
			over(jobs.KindSuperseded, 1, 2, jobs.Succeeded, 0)), 1},
		{"the other one is lost after the result", append(copies[:5:5], exited(1, 1, bad, jobs.Failed, 1),
			lost(2, jobs.Failed, 0)), 1},
		{"a superseded one ends last", append(copies[:5:5], exited(1, 1, bad, jobs.Running, 0),
			over(jobs.KindSuperseded, 1, 2, jobs.Failed, 1)), 1},
		{"lost at last", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0),
			launching(1, 2), lost(2, jobs.Failed, 1)}, 2},
		{"canceled before its start", []jobs.Record{accepted(1), launching(1, 1),
			over(jobs.KindCanceled, 1, 1, jobs.Canceled, 1)}, 1},
		{"a verdict that waited", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0),
			job(jobs.Failed, 1)}, 1},
		{"a lost one comes back and ends second", append(copies[:5:5], lost(2, jobs.Running, 0), running(1, 2),
			exited(1, 1, bad, jobs.Running, 0), exited(1, 2, bad, jobs.Failed, 1)), 2},
		{"a lost one comes back and the job is ended", []jobs.Record{accepted(1), launching(1, 1), running(1, 1),
			lost(1, jobs.Queued, 0), running(1, 1), over(jobs.KindSuperseded, 1, 1, jobs.Queued, 0),
			job(jobs.Canceled, 1)}, 0},
		{"only an earlier round ran", []jobs.Record{accepted(1), launching(1, 1),
			exited(1, 1, bad, jobs.Failed, 1), round(1), job(jobs.Canceled, 2)}, 0},
		{"an attempt of an earlier round ends", append(copies[:5:5], exited(1, 1, bad, jobs.Failed, 1), round(1),
			lost(2, jobs.Queued, 0), job(jobs.Canceled, 2)), 0},
		{"an edited job", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0),
			{Kind: jobs.KindEdited, Job: 1, Spec: &jobs.Spec{ID: 1, Command: "b", Options: jobs.NoOptions}},
			job(jobs.Canceled, 1)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			specs := []*jobs.Spec{{ID: 1, Command: "a", Options: jobs.NoOptions}}
			packed := jobs.NewPacked()
			packed.AddSpec(specs[0])
			for _, table := range []*jobs.Table{{Specs: specs}, packed} {
				for i := range c.script {
					if err := jobs.Fold(table, &c.script[i]); err != nil {
						t.Fatal(err)
					}
				}
				j := table.Job(1)
				if j.Counted != c.want {
					t.Errorf("attempt %d counts, want %d", j.Counted, c.want)
				}
				if a := j.CountedAttempt(); c.want > 0 && a.ID.N != int(c.want) || c.want == 0 && a != nil {
					t.Errorf("attempt %+v counts, want %d", a, c.want)
				}
			}
		})
	}
}
