package sched

import (
	"math"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestTimesAreBounded checks that an attempt starts and ends while it can have run, whatever its host
// reports, and that a host whose clock is less than a day off is believed.
func TestTimesAreBounded(t *testing.T) {
	const hour = jobs.Stamp(time.Hour)
	launched := jobs.Stamp(wallStart)
	for _, tt := range []struct {
		name    string
		outcome jobs.Outcome
		started jobs.Stamp // 0: within the run
		took    time.Duration
	}{
		{"plausible", jobs.Outcome{Started: launched + 1, Ended: launched + 2*jobs.Stamp(time.Second)}, launched + 1,
			2*time.Second - 1},
		{"an hour ahead", jobs.Outcome{Started: launched + hour, Ended: launched + hour + 7}, launched + hour, 7},
		{"in 1970", jobs.Outcome{Started: 1, Ended: 1e9}, 0, 1e9 - 1},
		{"in 2262", jobs.Outcome{Started: math.MaxInt64 - 5, Ended: math.MaxInt64}, 0, 5},
		{"89 years long", jobs.Outcome{Started: launched, Ended: math.MaxInt64, CPU: math.MaxInt64}, launched,
			maxClockError},
		{"suspended for ever", jobs.Outcome{Started: launched, Ended: launched + 5, Suspended: math.MaxInt64}, launched,
			0},
		{"before the epoch", jobs.Outcome{Started: math.MinInt64, Ended: math.MaxInt64}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stageWithJobs(t, 1, Config{}, testHost("a", 1))
			o := tt.outcome
			m := &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}, Outcome: o}}}
			hosts.Bound(m)
			s.step(AttemptsEnded{"a", m})
			a := s.job(1).Attempts[0]
			got := a.Outcome
			if tt.started != 0 && got.Started != tt.started || got.Started < a.Launched-jobs.Stamp(maxClockError) ||
				got.Started > s.c.now.Wall+jobs.Stamp(maxClockError) {
				t.Errorf("it started at %v, launched at %v", got.Started.Time(), a.Launched.Time())
			}
			wantBetween(t, "run time", got.Elapsed(), tt.took, tt.took+time.Minute)
			if got.CPU > jobs.MaxSlots*(got.Elapsed()+time.Second) || got.Suspended > maxClockError+time.Hour {
				t.Errorf("outcome %+v", got)
			}
		})
	}
}
