package sched

import (
	"cmp"
	"fmt"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// leaseMargin covers the drift between two machines' clocks.
const leaseMargin = 2 * time.Second

// OwnershipTime is how long a dispatcher may still extend leases after it has last verified that it
// owns the run. Otherwise a dispatcher that was taken over and whose run directory hangs would keep
// a lease alive that its successor considers expired.
const OwnershipTime = 10 * time.Second

// absence describes how long a host has been away.
type absence struct {
	awaySince time.Duration // since when no heartbeat has come over a working link
	// Until when it may return after another host of its outage is back (outage.go).
	graceUntil     time.Duration
	outageReported bool // it was reported that the network may be why it is silent
	// Since when it has reported fewer attempts than expected; 0: it does not.
	mismatchSince time.Duration
}

// giveUpLost gives up the attempts of hosts that have been silent for too long. No tries are
// charged. Attempts are not given up while their job forbids it, while the host's heartbeat file
// changes, or for a longer time if the network may be why the host is silent (outage.go).
func (c *Core) giveUpLost() {
	var newest answers
	for h := range c.visitsWithAbsent() {
		if !h.linked && h.numOpen > 0 {
			c.giveUpAbandoned(h.abandonedAttempts())
		}
		if !c.isOverdue(h) {
			continue
		}
		isAlive := c.isHeartbeatFileChanging(h)
		if isAlive {
			c.reportHeartbeatFile(h)
		}
		if newest == nil {
			newest = c.newestAnswers()
		}
		wait := h.index >= 0 && c.now.Mono < c.awaitedUntil(h, newest)
		switch {
		case wait:
			c.reportOutage(h, newest)
		case h.state == jobs.HostSuspect || h.state == jobs.HostConnecting || h.state == jobs.HostBackingOff:
			h.state = jobs.HostLost
			if h.index >= 0 {
				c.logf(h.spec.Name, 0, "%s is lost: %s%s", h.spec.Name, c.silenceText(h), c.leaseText(h))
			}
		}
		for f, next := h.oldest, (*inFlight)(nil); f != nil; f = next {
			next = f.nextOnHost
			if c.canGiveUp(h, f, wait, isAlive) {
				c.loseAttempt(f, "its host "+h.spec.Name+" is lost: "+c.silenceText(h)+h.sessionAdvice())
			}
		}
	}
}

// isOverdue reports whether a host has been silent for lost_after, and has attempts or is not lost yet.
func (c *Core) isOverdue(h *host) bool {
	return !h.linked && (h.wasUsed && h.state != jobs.HostLost || h.numOpen > 0) && c.now.Mono >= h.lostAt()
}

// sessionAdvice returns the end of a sentence about an attempt that is lost with the connection if the
// host is known to end all processes of a session with it, or "".
func (h *host) sessionAdvice() string {
	if h.hello == nil || !h.hello.EndsSessions {
		return ""
	}
	return "; the host ends the processes of users who log out, and `loginctl enable-linger` there prevents it"
}

// reportOutage reports, once, that the jobs of a silent host wait for it because the network may be
// the cause.
func (c *Core) reportOutage(h *host, newest answers) {
	part, suspected := c.suspectedPart(h, newest)
	if h.outageReported || !suspected || h.numOpen == 0 {
		return
	}
	h.outageReported = true
	left := h.lastReceivedAt + c.outageAfter(h) - c.now.Mono
	c.logf(h.spec.Name, 0, "%s: %s; %s is silent, so the network may be the cause: its %s %s for it, "+
		"for at most another %s (outage_after)", h.spec.Name, c.silenceText(h), part,
		text.Plural(h.numOpen, "attempt"), text.Verb(h.numOpen, "waits", "wait"), text.Span(left))
}

// abandonJob gives up the attempts of a job at a person's request, if they are all on hosts that
// have been silent for so long that they are suspect. It reports whether they are.
func (c *Core) abandonJob(j *jobs.Job) bool {
	var open []*inFlight
	for _, a := range j.Attempts {
		f := c.inFlight[a.ID]
		switch {
		case f == nil:
		case f.host.linked || c.now.Mono-f.host.lastReceivedAt < f.host.suspectAfter:
			return false
		default:
			open = append(open, f)
		}
	}
	for _, f := range open {
		f.abandoned = true
		f.host.touch()
		name := f.host.spec.Name
		c.logf(name, f.id.Job, "job %d is queued again, as a person asked: %s cannot be reached, "+
			"and attempt %s may still run there", f.id.Job, name, f.id)
	}
	c.giveUpAbandoned(open)
	return len(open) > 0
}

// giveUpAbandoned gives up those of the attempts that a person has abandoned and that cannot start
// any more.
func (c *Core) giveUpAbandoned(list []*inFlight) {
	for _, f := range list {
		if f.abandoned && (f.started || c.now.Mono >= c.leaseEnd(f.host)) {
			c.loseAttempt(f, abandonedReason+f.host.spec.Name+" cannot be reached: "+c.silenceText(f.host))
		}
	}
}

// abandonedAttempts returns the attempts of the host that a person has abandoned.
func (h *host) abandonedAttempts() (list []*inFlight) {
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if f.abandoned {
			list = append(list, f)
		}
	}
	return list
}

const abandonedReason = "a person asked to queue its job again, and "

// silenceText describes how long a host has sent no heartbeat, and why. It does not begin the reason
// with the name of the host, which the sentence has.
func (c *Core) silenceText(h *host) string {
	s := noSign + text.Span(c.now.Mono-h.lastReceivedAt)
	if h.reason != "" && !h.silent {
		s += " (" + text.WithoutSubject(h.reason, h.spec.Name) + ")"
	}
	return s
}

// lostAt returns when a silent host is given up.
func (h *host) lostAt() time.Duration { return h.lastReceivedAt + h.spec.LostAfterOrDefault() }

// Lease returns for how long after its last heartbeat a host may start jobs that were sent to it.
// It is shorter with copies, because the end of the run waits for it, but long enough for the next
// heartbeat to extend it.
func (cfg *Config) Lease(lostAfter, heartbeat time.Duration) time.Duration {
	if cfg.Copies > 1 {
		lostAfter = min(lostAfter, max(copyLease, 3*heartbeat))
	}
	return max(lostAfter, cfg.Buffer)
}

// leaseEnd returns when an attempt that was sent to a host that is cut off can certainly not start
// any more. A lease is extended only by heartbeats that were accepted while the link was up, so it
// ends at most one lease after the link was cut. With copies the end of the run waits for this
// time. In that case it counts from the last heartbeat.
func (c *Core) leaseEnd(h *host) time.Duration {
	switch {
	case h.inherited:
		return h.cutAt + c.maxLease(h) + OwnershipTime
	case c.cfg.Copies > 1:
		return max(h.lastSeenAt+c.cfg.Lease(h.maxLostAfter, h.maxHeartbeat)+leaseMargin, h.leasedBefore)
	}
	return h.cutAt + c.maxLease(h)
}

// maxLease returns the longest lease of a run without copies, as an earlier dispatcher may have
// given it.
func (c *Core) maxLease(h *host) time.Duration {
	return max(h.maxLostAfter, c.cfg.Buffer) + leaseMargin
}

// LongestLease returns for how long after its record the launch of any attempt of this run can be
// carried out by a host.
func (c *Core) LongestLease() time.Duration {
	longest := max(c.cfg.Buffer, c.claims.leftLease)
	for _, h := range c.allHosts() {
		longest = max(longest, c.leaseOf(h))
	}
	return longest + OwnershipTime
}

// leaseOf returns for how long a launch that was sent to the host can be carried out from now on.
func (c *Core) leaseOf(h *host) time.Duration { return max(c.maxLease(h), h.leasedBefore-c.now.Mono) }

// leaseText describes the jobs that a lost host may still start within their lease, to follow
// another text. It returns "" if there are none.
func (c *Core) leaseText(h *host) string {
	n, left := h.numBuffered(), c.leaseEnd(h)-c.now.Mono
	if n == 0 || left <= 0 {
		return ""
	}
	verb := "wait until their"
	if n == 1 {
		verb = "waits until its"
	}
	return fmt.Sprintf("; %s sent to it that may still start there %s lease has run out, in %s",
		text.Plural(n, "job"), verb, text.Span(left))
}

// canGiveUp reports whether an attempt of a host that has been silent for lost_after may be given
// up. wait is set if the jobs of the host wait for it because the network may be the cause, and
// isAlive if its heartbeat file changes. A person who removes or stops the host ends that wait.
func (c *Core) canGiveUp(h *host, f *inFlight, wait, isAlive bool) bool {
	if !f.started && c.now.Mono < c.leaseEnd(h) {
		return false // it could still be claimed there
	}
	j := c.table.Job(f.id.Job)
	if j.State.Terminal() || c.isCancelPending(f.id.Job) || c.hardness.IsTooHard(j) {
		return true
	}
	if f.started && (isAlive || !c.isSharedDirSettled(h)) {
		return false
	}
	return h.index < 0 || h.removed || (!wait || h.isStopped()) && c.lostPolicy(j) != jobs.OnLostWait
}

func (c *Core) lostPolicy(j *jobs.Job) jobs.OnLost {
	return cmp.Or(j.Spec.OnLost, c.cfg.OnLost) // 0 is OnLostDefault
}

// recordOrphan records that an attempt that was given up may still be alive on its host. The host
// is asked when it is back, and does not get the job again before it has answered.
func (c *Core) recordOrphan(h *host, id jobs.AttemptID) {
	h.orphans = append(h.orphans, id)
	h.touch()
	c.orphaned[id] = true
}

// maxDeathsOnHosts is the number of hosts that may die while they run a job before the job is
// considered the cause. A host that was given up and has not come back may have died. A job that
// crashes its hosts must not get the last of them. A host that came back and knew the attempt was
// only unreachable.
const maxDeathsOnHosts = 3

// maxDeathsOnInstances is the same for hosts on demand: spot instances and nodes of preemptible
// partitions end without any fault of their jobs.
const maxDeathsOnInstances = 10

// maxDeaths returns how many hosts like h may die under a job before the job fails.
func (c *Core) maxDeaths(h *host) int {
	if h.instance != nil || c.instanceOf(h.spec.Name) != nil {
		return maxDeathsOnInstances
	}
	return maxDeathsOnHosts
}

// loseAttempt closes an attempt without an outcome, because its host is given up or the attempt has
// died. The job goes to the front of the queue.
func (c *Core) loseAttempt(f *inFlight, why string) {
	j := c.table.Job(f.id.Job)
	a := j.Attempts[f.id.N-1]
	h := f.host
	r := jobs.Record{Kind: jobs.KindLost, Job: f.id.Job, N: f.id.N, Host: h.spec.Name, Reason: why}
	r.Next = c.stateWithoutResult(j, a)
	died := c.numDeaths(j)
	if r.Next == jobs.Queued && f.started && !f.abandoned && a.Round == j.Round && died+1 >= c.maxDeaths(h) {
		r.Next = jobs.Failed
		r.Reason = fmt.Sprintf("its host or its supervisor died under it %d times, most recently: %s", died+1, why)
	}
	was := c.chargeSoFar(f)
	c.untrack(f)
	if !f.provedDead {
		c.recordOrphan(h, f.id)
		c.orphanCharge[f.id] = was
	}
	c.emit(r)
}

// pruneStillRunning forgets the attempts of j that numDeaths no longer needs: those that are not
// lost, those of earlier rounds, and all of them if the job has finished.
func (c *Core) pruneStillRunning(j *jobs.Job) {
	if len(c.stillRunning) == 0 {
		return
	}
	for _, a := range j.Attempts {
		if !mayHaveDied(j, a) {
			delete(c.stillRunning, a.ID)
		}
	}
}

// mayHaveDied reports whether numDeaths counts a unless a is in Core.stillRunning.
func mayHaveDied(j *jobs.Job, a *jobs.Attempt) bool {
	return a.Round == j.Round && a.State == jobs.AttemptLost && !j.State.Terminal()
}

// numDeaths returns how many attempts of this round had started and may have died.
func (c *Core) numDeaths(j *jobs.Job) int {
	return numAttempts(j, func(a *jobs.Attempt) bool {
		return a.State == jobs.AttemptLost && a.Started != 0 && !c.stillRunning[a.ID]
	})
}

// A helper that says hello and then sends no heartbeat is started again with the next connection,
// and its host keeps its jobs. After maxSilentLinks consecutive links of this kind, the host is
// treated like one that does not respond. Its hellos then extend no lease and delay no loss.
// Otherwise a run could wait for it forever.
const maxSilentLinks = 3

// isSilent reports whether the host's helper may again be one that never sends heartbeats.
func (h *host) isSilent() bool { return h.silentLinks >= maxSilentLinks && !h.hasHeartbeat }

// isAnswering reports whether a helper responds that may be given jobs.
func (h *host) isAnswering() bool { return h.linked && h.ineligible == "" && !h.isSilent() }

// mismatchTime is how long a host must report too few attempts before it is queried about them.
const mismatchTime = 5 * HeartbeatInterval

// checkCounts compares the host's count of attempts with ours. Messages in transit make them differ
// for short times. If they differ for longer, a message was lost, and the host is queried about its
// older attempts. A lost report must not leave a run open forever.
func (c *Core) checkCounts(h *host) {
	if h.heartbeat.Running+h.heartbeat.Buffered >= h.numOpen {
		h.mismatchSince = 0
		return
	}
	if h.mismatchSince == 0 {
		h.mismatchSince = c.now.Mono
	}
	if c.now.Mono-h.mismatchSince < mismatchTime {
		return
	}
	h.mismatchSince = 0
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if c.now.Mono-max(f.launchedAt, f.startedAt) >= mismatchTime {
			h.outbox.probe = append(h.outbox.probe, f.id)
		}
	}
}
