package sched

import (
	"time"

	"dcs-tui/dispatch/sched/fairshare"
	"dcs-tui/dispatch/sched/forecast"
	"dcs-tui/jobs"
)

// queueStats holds the state of a queue: how long its jobs take, how many wait, its fair share, and
// its slots.
type queueStats struct {
	forecast.RunTimes
	recent forecast.RecentMeans

	queued      int     // number of waiting jobs
	queuedSlots int     // slots that those need
	estimated   int     // number of those with a user's estimate
	estimateSum float64 // sum of those estimates, in seconds

	longestFailure time.Duration // run time of the longest failure since the last success
	hasFailed      bool          // a job has failed in a way that may show that its host is bad
	numGoodHosts   int           // number of hosts on which a job has succeeded, with those that have left

	// Set only while a forecast is computed.
	sent, sentSlots int // attempts given to hosts and not known to have started
	dist            forecast.Distribution

	share              *fairshare.Queue
	slotPool           pool // pools.go
	bufferable, others line // its classes with ready jobs
}

// allQueues are the queues of the run.
type allQueues struct {
	stats          map[string]*queueStats
	queues         []*queueStats // the same queues in a fixed order
	lastOpts       *jobs.Options // options of the last lookup
	lastStats      *queueStats   // result of the last lookup
	appliedOptions *jobs.Options // options of the last call of applyQueueOptions
}

// statsOf returns the statistics of a job's queue.
func (c *Core) statsOf(s *jobs.Spec) *queueStats {
	if c.lastStats != nil && c.lastOpts == s.Options {
		return c.lastStats
	}
	st := c.stats[s.Queue]
	if st == nil {
		st = &queueStats{share: c.shares.Add(s.Queue, c.now.Mono),
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
	for id := jobs.ID(c.table.NumJobs()); id > 0 && n < maxLearned; id-- {
		if c.table.State(id) != jobs.Succeeded {
			continue
		}
		j := c.peek(id)
		for k := len(j.Attempts) - 1; k >= 0; k-- {
			if a := j.Attempts[k]; a.State == jobs.AttemptExited && a.Outcome != nil && a.Outcome.OK() {
				c.statsOf(j.Spec).Add(min(a.Outcome.Elapsed(), c.maxElapsed(j)).Seconds())
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
	if h.isMeasured && h.suspendsJobs() {
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
