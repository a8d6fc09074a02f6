package standing

import (
	"testing"
	"time"

	"dcs-tui/jobs"
)

// B6: deadlines that were missed are counted, and those that cannot be met are shown.
func TestDeadlinesText(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	at := func(d time.Duration) jobs.Stamp { return jobs.StampOf(now.Add(d)) }
	job := func(state jobs.JobState, deadline, est time.Duration, ended jobs.Stamp) jobs.Job {
		j := jobs.Job{State: state, Spec: &jobs.Spec{Options: &jobs.Options{Estimate: est}}}
		if deadline != 0 {
			j.Spec.Deadline = now.Add(deadline)
		}
		if ended != 0 {
			j.Attempts = []*jobs.Attempt{{State: jobs.AttemptExited, Outcome: &jobs.Outcome{Started: ended - 1, Ended: ended}}}
		}
		return j
	}
	since := func(d time.Duration, j jobs.Job) jobs.Job {
		j.Attempts = []*jobs.Attempt{{State: jobs.AttemptRunning, Launched: at(-d)}}
		return j
	}
	h := time.Hour
	for _, c := range []struct {
		want string
		jobs []jobs.Job
	}{
		{"", []jobs.Job{job(jobs.Succeeded, 0, 0, at(-h)), job(jobs.Queued, 0, h, 0)}},
		{"deadlines: 1 met", []jobs.Job{job(jobs.Succeeded, -h, 0, at(-2*h))}},
		{"deadlines: 1 missed", []jobs.Job{job(jobs.Succeeded, -h, 0, at(-h/2))}},
		{"deadlines: 3 missed", []jobs.Job{job(jobs.Failed, h, 0, at(-h)), job(jobs.Queued, -h, 0, 0), job(jobs.Running, -1, 0, 0)}},
		{"deadlines: 1 met, 2 cannot be met any more, 2 to come", []jobs.Job{job(jobs.Queued, h, 2*h, 0), since(h/2, job(jobs.Running, h, 2*h, 0)),
			since(3*h/2, job(jobs.Running, h, 2*h, 0)), job(jobs.Queued, h, 0, 0), job(jobs.Succeeded, h, 0, at(-h))}},
	} {
		if got := deadlinesText(&jobs.Table{Jobs: c.jobs}, now); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
