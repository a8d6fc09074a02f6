package sched

import (
	"math"
	"time"

	"dcs-tui/jobs"
)

// queueStats holds the state of a queue: how long its jobs take, how many wait, its fair share, and
// its slots.
type queueStats struct {
	runTimes
	recent recentMeans
	censored

	queued      int     // number of waiting jobs
	queuedSlots int     // slots that those need
	estimated   int     // number of those with a user's estimate
	estimateSum float64 // sum of those estimates, in seconds

	longestFailure time.Duration // run time of the longest failure since the last success
	hasFailed      bool          // a job has failed in a way that may show that its host is bad

	// Set only while a forecast is computed.
	sent, sentSlots int // attempts given to hosts and not known to have started
	dist            distribution

	share    fairShare // fairshare.go
	slotPool pool      // pools.go
}

// runTimes holds the run times, in seconds, of the jobs that succeeded. The time until a failure
// does not show how long a job takes.
type runTimes struct {
	n                    int
	mean, sumSquaredDevs float64 // m2: sum of the squared deviations from the mean (Welford)
}

func (s *runTimes) add(x float64) {
	s.n++
	d := x - s.mean
	s.mean += d / float64(s.n)
	s.sumSquaredDevs += d * (x - s.mean)
}

// recentMeans are moving averages of run times, in seconds, of all jobs and of those that
// succeeded. Each is 0 until such a job has ended.
type recentMeans struct {
	n, numSucceeded int
	all, succeeded  float64
}

// maxRecent is the number of jobs over which recentMeans average.
const maxRecent = 16

func (m *recentMeans) add(x float64, ok bool) {
	m.n = min(m.n+1, maxRecent)
	m.all += (x - m.all) / float64(m.n)
	if ok {
		m.numSucceeded = min(m.numSucceeded+1, maxRecent)
		m.succeeded += (x - m.succeeded) / float64(m.numSucceeded)
	}
}

// allQueues are the queues of the run.
type allQueues struct {
	stats          map[string]*queueStats
	queues         []*queueStats // the same queues in a fixed order
	lastOpts       *jobs.Options // options of the last lookup
	lastStats      *queueStats   // result of the last lookup
	appliedOptions *jobs.Options // options of the last call of applyQueueOptions
	chargeAhead    float64       // seconds for which running attempts are charged ahead
}

// censored holds the jobs that still run: each will take at least its age. A job that is younger
// than the mean has no effect yet. One that is older counts with its age, and never shortens the
// mean. The sums are of the deviations from the mean and of their squares, as of the last check.
type censored struct {
	numOlder        int
	sum, sumSquares float64
}

// minFinished is how many jobs of a queue must have succeeded before their run times are used.
const minFinished = 5

// addCensored adds a running job of that age.
func (s *queueStats) addCensored(age float64) {
	if d := age - s.mean; s.n > 0 && d > 0 {
		s.numOlder++
		s.sum += d
		s.sumSquares += d * d
	}
}

// moments returns the mean and standard deviation of finished and censored run times. It leaves out
// one running job of that age, so that an outlier does not hide itself; age 0 leaves out none. ok
// is false if too few jobs have finished.
func (s *queueStats) moments(age float64) (mean, dev float64, ok bool) {
	if s.n < minFinished {
		return 0, 0, false
	}
	k, d1, d2 := s.numOlder, s.sum, s.sumSquares
	if d := age - s.mean; d > 0 && k > 0 {
		k, d1, d2 = k-1, max(0, d1-d), max(0, d2-d*d)
	}
	if k == 0 {
		d1, d2 = 0, 0
	}
	n := float64(s.n + k)
	return s.mean + d1/n, math.Sqrt(max(0, s.sumSquaredDevs+d2-d1*d1/n) / (n - 1)), true
}

// estimate returns an upper estimate of a job's run time: the mean and two standard deviations.
func (s *queueStats) estimate(age float64) (seconds float64, ok bool) {
	mean, dev, ok := s.moments(age)
	return mean + 2*dev, ok
}

// statsOf returns the statistics of a job's queue.
func (c *Core) statsOf(s *jobs.Spec) *queueStats {
	if c.lastStats != nil && c.lastOpts == s.Options {
		return c.lastStats
	}
	st := c.stats[s.Queue]
	if st == nil {
		st = &queueStats{share: fairShare{name: s.Queue, weight: 1, usageAt: c.now.Mono},
			slotPool: pool{unit: "slot", rule: "--queue-slots allows its queue", limit: -1}}
		c.stats[s.Queue] = st
		c.queues = append(c.queues, st)
	}
	c.lastOpts, c.lastStats = s.Options, st
	return st
}

// addWaiting adds a queued job to the counts of its queue. n is 1 to add it, or -1 to remove it.
// It ignores other jobs.
func (c *Core) addWaiting(j *jobs.Job, n int) {
	if j.State == jobs.Queued {
		st := c.statsOf(j.Spec)
		st.queued += n
		st.queuedSlots += n * j.Spec.SlotCount()
		if e := j.Spec.Estimate; e > 0 {
			st.estimated += n
			st.estimateSum += float64(n) * e.Seconds()
		}
	}
}

// maxLearned bounds the number of earlier results from which a new dispatcher learns.
const maxLearned = 10_000

// learnTimes learns run times from the newest results of earlier dispatchers.
func (c *Core) learnTimes() {
	n := 0
	for i := len(c.table.Jobs) - 1; i >= 0 && n < maxLearned; i-- {
		j := &c.table.Jobs[i]
		if j.State != jobs.Succeeded {
			continue
		}
		for k := len(j.Attempts) - 1; k >= 0; k-- {
			if a := j.Attempts[k]; a.State == jobs.AttemptExited && a.Outcome != nil && a.Outcome.OK() {
				c.statsOf(j.Spec).add(min(a.Outcome.Elapsed(), c.maxElapsed(j)).Seconds())
				n++
				break
			}
		}
	}
}

// age returns how long an attempt has run, without the time that it was suspended. For an attempt
// that an earlier dispatcher started, it is computed from the clocks. It is not known how long that
// one was suspended, so all suspended time of its host counts.
func (f *inFlight) age(now time.Duration) time.Duration {
	return max(0, f.earlierRunTime+now-f.startedAt-max(0, f.host.suspendedTime(now)-f.suspendedAtStart))
}

// suspendedTime returns the total time for which jobs have been suspended on the host.
func (h *host) suspendedTime(now time.Duration) time.Duration {
	if h.linked && h.isMeasured && h.heartbeat.Owner.Suspend {
		return h.heartbeat.Suspended + max(0, now-h.heartbeatAt) // since then
	}
	return h.heartbeat.Suspended
}

// ranBefore returns how long an attempt that was taken over has run. The start is by the host's
// clock, so the result is limited to the time since the launch.
func (c *Core) ranBefore(a *jobs.Attempt) time.Duration {
	if a.Started == 0 {
		return 0
	}
	return max(0, min(c.now.Wall.Sub(a.Started), c.now.Wall.Sub(a.Launched)))
}
