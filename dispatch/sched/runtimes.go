package sched

import (
	"math"
	"time"

	"dcs-tui/jobs"
)

// runStats are how long the jobs of a queue take. Only jobs that succeeded count as
// finished: how soon another failed says nothing about how long one takes.
type runStats struct {
	n        int
	mean, m2 float64 // seconds; m2: sum of the squared deviations from the mean (Welford)

	censored
	queued  int     // jobs that wait
	slots   int     // … that those need
	guessed int     // … for which their user has an estimate
	guess   float64 // … the sum of those, seconds

	// Only while a forecast is made.
	handed, handedSlots int // given to hosts and not known to have started
	law                 law

	turn     turn // share.go
	slotPool pool // reserve.go
}

// censored are jobs that still run: each will take at least its age. One that is
// younger than the mean says nothing yet. One that is older counts as its age, which is
// less than what it will have taken: never as a short one. Sums of the deviations
// from the mean and of their squares, as of the last look.
type censored struct {
	k      int
	d1, d2 float64
}

// leastFinished is how many jobs of a queue must have succeeded before their run times
// say anything.
const leastFinished = 5

func (s *runStats) add(x float64) {
	s.n++
	d := x - s.mean
	s.mean += d / float64(s.n)
	s.m2 += d * (x - s.mean)
}

// runs handles the age of a job that runs.
func (s *runStats) runs(age float64) {
	if d := age - s.mean; s.n > 0 && d > 0 {
		s.k++
		s.d1 += d
		s.d2 += d * d
	}
}

// moments returns mean and standard deviation of finished and censored run times,
// without one that runs and has this age; 0: without none. An outlier must not hide
// behind itself.
func (s *runStats) moments(age float64) (mean, dev float64, ok bool) {
	if s.n < leastFinished {
		return 0, 0, false
	}
	k, d1, d2 := s.k, s.d1, s.d2
	if d := age - s.mean; d > 0 && k > 0 {
		k, d1, d2 = k-1, max(0, d1-d), max(0, d2-d*d)
	}
	if k == 0 {
		d1, d2 = 0, 0
	}
	n := float64(s.n + k)
	return s.mean + d1/n, math.Sqrt(max(0, s.m2+d2-d1*d1/n) / (n - 1)), true
}

// estimate is how long a job of the queue takes at most, as a rule: mean and two
// standard deviations.
func (s *runStats) estimate(age float64) (seconds float64, ok bool) {
	mean, dev, ok := s.moments(age)
	return mean + 2*dev, ok
}

// statsOf returns the statistics of a job's queue.
func (c *Core) statsOf(s *jobs.Spec) *runStats {
	if c.lastStats != nil && c.lastOpts == s.Options {
		return c.lastStats
	}
	st := c.stats[s.Queue]
	if st == nil {
		st = &runStats{turn: turn{name: s.Queue, share: 1, at: c.now.Mono}, slotPool: pool{unit: "slot", rule: "--queue-slots allows its queue", most: -1}}
		c.stats[s.Queue] = st
		c.queues = append(c.queues, st)
	}
	c.lastOpts, c.lastStats = s.Options, st
	return st
}

// countWaiting adds a queued job to what its queue has waiting, n of 1, or takes it
// off, n of -1.
func (c *Core) countWaiting(j *jobs.Job, n int) {
	if j.State == jobs.Queued {
		st := c.statsOf(j.Spec)
		st.queued += n
		st.slots += n * j.Spec.SlotCount()
		if e := j.Spec.Estimate; e > 0 {
			st.guessed += n
			st.guess += float64(n) * e.Seconds()
		}
	}
}

// mostLearnt bounds what a new dispatcher learns from the results that there are.
const mostLearnt = 10_000

// learnTimes handles the newest results of earlier dispatchers.
func (c *Core) learnTimes() {
	n := 0
	for i := len(c.table.Jobs) - 1; i >= 0 && n < mostLearnt; i-- {
		j := &c.table.Jobs[i]
		if j.State != jobs.Succeeded {
			continue
		}
		for k := len(j.Attempts) - 1; k >= 0; k-- {
			if a := j.Attempts[k]; a.State == jobs.AttemptExited && a.Outcome != nil && a.Outcome.OK() {
				c.statsOf(j.Spec).add(min(a.Outcome.Elapsed(), c.mostElapsed(j)).Seconds())
				n++
				break
			}
		}
	}
}

// age is for how long an attempt has run, less the time that it was suspended; one that an
// earlier dispatcher started as the clocks tell. Of that it is not known what came before it
// started, so all suspended time of its host counts as its own.
func (f *flight) age(now time.Duration) time.Duration {
	return max(0, f.ran+now-f.startedAt-max(0, f.h.suspended(now)-f.held))
}

// suspended returns for how long jobs have been suspended on the host in all.
func (h *host) suspended(now time.Duration) time.Duration {
	if h.linked && h.measured && h.beat.Owner.Suspend {
		return h.beat.Suspended + max(0, now-h.beatAt) // since then
	}
	return h.beat.Suspended
}

// ranBefore is for how long an attempt that was taken over has run: the host's clock
// says when it started, and it cannot have run for longer than since its launch.
func (c *Core) ranBefore(a *jobs.Attempt) time.Duration {
	if a.Started == 0 {
		return 0
	}
	return max(0, min(c.now.Wall.Sub(a.Started), c.now.Wall.Sub(a.Launched)))
}
