package sched

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// leaseMargin covers the drift between two machines' clocks.
const leaseMargin = 2 * time.Second

// OwnerFor is how long after it has last seen that the run is its own a dispatcher may
// still extend leases. One that was taken over, and whose run directory hangs, would
// keep a host's lease alive that its successor believes to have run out.
const OwnerFor = 10 * time.Second

// absence is what is known of the time that a host has been away.
type absence struct {
	awaySince     time.Duration // since when no heartbeat has come over a link that worked
	outage        int           // the shared outage in which it went away; 0: none
	graceUntil    time.Duration // until when it may follow the hosts that are back from there
	mismatchSince time.Duration // since when it has reported fewer attempts than we count; 0: it does not
}

// giveUpLost gives up the attempts of hosts that have been silent for too long.
// Nobody is charged. Attempts stay where they are when their job
// says so, while the host's heartbeat file moves, or when more than half of all hosts went silent together: then it is
// our network that is gone, and nothing is gained elsewhere.
func (c *Core) giveUpLost() {
	for _, h := range c.everyHost() {
		if h.linked || (!h.known || h.state == Lost) && h.open == 0 || c.now.Mono < h.lostAt() {
			continue
		}
		breathes := c.heartbeatFileChanges(h)
		if breathes {
			c.reportHeartbeatFile(h)
		}
		wait := h.index >= 0 && c.vanishedTogether(h)
		if h.state == Suspect || h.state == Connecting || h.state == BackingOff {
			if h.state = Lost; h.index >= 0 {
				more := c.leased(h)
				if wait && h.open > 0 && len(c.hosts) > 1 {
					more = "; most of the hosts vanished with it, so the network may be the cause: its jobs are not given up"
				}
				c.logf(h.spec.Name, 0, "%s is lost: %s%s", h.spec.Name, c.silenceText(h), more)
			}
		}
		if h.open == 0 {
			continue
		}
		if wait && h.outage == 0 {
			c.noteOutage(h) // also one that an earlier dispatcher ran into
		}
		wait = wait || c.now.Mono < h.graceUntil
		for f, next := h.head, (*inFlight)(nil); f != nil; f = next {
			next = f.next
			if c.mayLose(h, f, wait, breathes) {
				c.lose(f, "its host "+h.spec.Name+" is lost: "+c.silenceText(h))
			}
		}
	}
}

// silence describes for how long a host has sent no heartbeat, and why.
func (c *Core) silenceText(h *host) string {
	s := noSign + short(c.now.Mono-h.lastHeard)
	if h.reason != "" && !strings.HasPrefix(h.reason, noSign) {
		s += " (" + h.reason + ")"
	}
	return s
}

// lostAt returns when a silent host is given up.
func (h *host) lostAt() time.Duration { return h.lastHeard + h.spec.LostAfterOrDefault() }

// Lease returns for how long after its last heartbeat a host may start what it was
// handed. With copies (copies.go) that is shorter: the end of the run waits for it.
func (cfg *Config) Lease(lostAfter time.Duration) time.Duration {
	if cfg.Copies > 1 {
		lostAfter = min(lostAfter, copyLease)
	}
	return max(lostAfter, cfg.Buffer)
}

// leaseEnd returns when an attempt sent to a host that is cut off can certainly
// not start any more: the lease is extended only from heartbeats that were taken in
// while the link was up, the last of them at the latest when it was cut. With copies
// the end of the run waits for this: then that last sign counts.
func (c *Core) leaseEnd(h *host) time.Duration {
	switch {
	case h.inherited:
		return h.cutAt + c.longLease(h) + OwnerFor
	case c.cfg.Copies > 1:
		return max(h.lastSeen+c.cfg.Lease(h.maxLostAfter)+leaseMargin, h.leasedBefore)
	}
	return h.cutAt + c.longLease(h)
}

// longLease is how long a lease of a run without copies lasts at most, as an earlier
// dispatcher may have given it.
func (c *Core) longLease(h *host) time.Duration {
	return max(h.maxLostAfter, c.cfg.Buffer) + leaseMargin
}

// leased reports whether a lost host's unstarted jobs are still within their lease.
func (c *Core) leased(h *host) string {
	n, left := 0, c.leaseEnd(h)-c.now.Mono
	for f := h.head; f != nil; f = f.next {
		if !f.started {
			n++
		}
	}
	if n == 0 || left <= 0 {
		return ""
	}
	verb := "wait until their"
	if n == 1 {
		verb = "waits until its"
	}
	return fmt.Sprintf("; %s sent to it that may still start there %s lease has run out, in %s", jobs.Plural(n, "job"), verb, short(left))
}

func (c *Core) mayLose(h *host, f *inFlight, wait, breathes bool) bool {
	if (!f.started || f.unconfirmed) && c.now.Mono < c.leaseEnd(h) {
		return false // it could still start there
	}
	j := c.table.Job(f.id.Job)
	if j.State.Terminal() || c.canceled(f.id.Job) || c.tooHard(j) {
		return true
	}
	if f.started && (breathes || !c.sharedDirSettled(h)) {
		return false
	}
	return h.index < 0 || h.removed || !wait && c.onLost(j) != jobs.OnLostWait
}

func (c *Core) onLost(j *jobs.Job) jobs.OnLost {
	if j.Spec.OnLost != jobs.OnLostDefault {
		return j.Spec.OnLost
	}
	return c.cfg.OnLost
}

// goesAstray records that an attempt given up may still be alive on its host. The
// host is asked when it is back, and until it has answered it does not get the job.
func (c *Core) orphan(h *host, id jobs.AttemptID) {
	h.orphans = append(h.orphans, id)
	c.orphaned[id] = true
}

// deadliest is how many hosts may die under a job before the job is to blame. One
// that was given up and has not come back may have died: a job that takes its hosts down
// for good must not get the last of them. One that came back and knew the attempt was
// only out of reach.
const maxDeathsOnHosts = 3

// deadliestOfInstances is the same for hosts on demand: spot instances and nodes of
// preemptible partitions end while jobs run that are not to blame.
const maxDeathsOnInstances = 10

// maxDeaths returns how many hosts like h may die under a job before the job fails.
func (c *Core) maxDeaths(h *host) int {
	if h.instance != nil || c.instanceOf(h.spec.Name) != nil {
		return maxDeathsOnInstances
	}
	return maxDeathsOnHosts
}

// lose closes an attempt without an outcome: its host is given up, or the
// attempt is proved dead. The job goes to the front of the queue.
func (c *Core) lose(f *inFlight, why string) {
	j := c.table.Job(f.id.Job)
	a := j.Attempts[f.id.N-1]
	h := f.host
	r := jobs.Record{Kind: jobs.KindLost, Job: f.id.Job, N: f.id.N, Host: h.spec.Name, Reason: why}
	r.Next = c.stateWithout(j, a)
	if died := c.deaths(j); r.Next == jobs.Queued && f.started && a.Round == j.Round && died+1 >= c.maxDeaths(h) {
		r.Next = jobs.Failed
		r.Reason = fmt.Sprintf("its host or its supervisor died under it %d times, most recently: %s", died+1, why)
	}
	was := c.charged(f)
	c.untrack(f)
	if !f.provedDead {
		c.orphan(h, f.id)
		c.orphanCharge[f.id] = was
	}
	c.emit(r)
}

// forgetOutlived forgets the attempts of j that deaths no longer needs: those that are
// not lost, those of earlier rounds, and all if the job has finished.
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

// mayHaveDied reports whether a counts for deaths unless it is in c.outlived.
func mayHaveDied(j *jobs.Job, a *jobs.Attempt) bool {
	return a.Round == j.Round && a.State == jobs.AttemptLost && !j.State.Terminal()
}

// deaths counts the attempts of this round that had started and may have died.
func (c *Core) deaths(j *jobs.Job) int {
	n := 0
	for _, a := range j.Attempts {
		if a.Round == j.Round && a.State == jobs.AttemptLost && a.Started != 0 && !c.stillRunning[a.ID] {
			n++
		}
	}
	return n
}

// When more than half of the hosts that were there go silent together it is our
// network, or a gateway, that is gone: nothing is gained elsewhere, so jobs wait
// there. The hosts of such an outage come back one by one, each when its
// next connection attempt is due; the rest are awaited in the meantime.

// dialSlack is what a connection attempt may take beyond its pause.
const dialSlack = 30 * time.Second

// together reports whether two hosts that are both away went silent in one outage.
// One from whose outage others have just come back may have taken them along again.
func (c *Core) wentTogether(h, o *host) bool {
	apart := o.lastHeard - h.lastHeard
	return h == o || h.outage > 0 && h.outage == o.outage || c.now.Mono < o.graceUntil ||
		max(apart, -apart) <= h.spec.LostAfterOrDefault()
}

// vanishedTogether reports whether more than half of the hosts that were there are
// away together with this one. A single host always is.
func (c *Core) vanishedTogether(h *host) bool {
	n, gone := 0, 0
	for _, o := range c.hosts {
		if !o.known {
			continue
		}
		n++
		if !o.linked && c.wentTogether(h, o) {
			gone++
		}
	}
	return gone*2 > n
}

// noteOutage remembers which hosts are away together with h, if they are many.
func (c *Core) noteOutage(h *host) {
	if h.index < 0 || !c.vanishedTogether(h) {
		return
	}
	var group []*host
	id := h.outage
	for _, o := range c.hosts {
		if o.known && !o.linked && c.wentTogether(h, o) {
			group = append(group, o)
			id = max(id, o.outage)
		}
	}
	if id == 0 {
		c.outages++
		id = c.outages
	}
	for _, o := range group {
		o.outage = id
	}
}

// backFromOutage gives the others of the outage time to follow.
func (c *Core) backFromOutage(h *host) {
	if h.outage > 0 {
		for _, o := range c.hosts {
			if o != h && !o.linked && o.outage == h.outage {
				o.graceUntil = c.now.Mono + max(o.spec.LostAfterOrDefault(), c.cfg.BackoffCap+dialSlack)
			}
		}
	}
	h.outage, h.graceUntil = 0, 0
}

// A helper that says hello and then sends no heartbeat is started again with the next
// connection, and its host keeps its jobs. When that has failed some
// times in a row the host is treated as one that does not answer: its hellos extend
// no lease and put off no loss, or a run could wait for it for ever.
const maxMuteLinks = 3

// doubted reports whether the host has a helper that may be one more that is mute.
func (h *host) isMute() bool { return h.muteLinks >= maxMuteLinks && !h.hasHeartbeat }

// answers reports whether a helper answers that may be given jobs.
func (h *host) answers() bool { return h.linked && h.ineligible == "" && !h.isMute() }

// oddFor is how long a host must miss attempts before it is asked about them.
const mismatchTime = SuspectAfter

// heal compares the host's count of attempts with ours. Messages under way make
// them differ for moments; when a difference lasts, a message was lost in spite of
// all, and the attempts that have been there for long are asked about. A report
// that never came must not leave a run open for ever.
func (c *Core) checkCounts(h *host) {
	if h.heartbeat.Running+h.heartbeat.Buffered >= h.open {
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
	for f := h.head; f != nil; f = f.next {
		if c.now.Mono-max(f.launchedAt, f.startedAt) >= mismatchTime {
			h.outbox.probe = append(h.outbox.probe, f.id)
		}
	}
}

// TickEvery is the longest time without a Step (Core.Next sees to it). A gap
// longer than stallAfter is a stall of our own: a stopped process, a disk that did
// not answer, a starved machine.
const (
	TickInterval = 3 * time.Second
	stallAfter   = 2 * TickInterval
)

// stallEvery is the least time between two reports of stalls: the record of one may cause the next.
const stallReportInterval = time.Minute

// stalled takes the time of our own stall out of the silence of the hosts: their heartbeats wait
// to be read. A stall counts as one tick, so that a dispatcher that stalls all the time still
// notices a dead host. Instants only move later: a lease that has run out here has run out. Waits
// that cost nothing, such as that for the next connection attempt, go on during a stall.
func (c *Core) stalled(gap time.Duration) {
	shift := gap - TickInterval
	var always, ifSet []*time.Duration // 0 is "not set" for those of ifSet
	always = append(always, &c.anyUp)
	ifSet = append(ifSet, &c.reconcileUntil, &c.strangersUntil, &c.lastUp, &c.waitLostUntil)
	for _, h := range c.everyHost() {
		l := &h.sharedDir
		always = append(always, &h.lastSeen, &h.lastHeard, &h.cutAt, &h.awaySince)
		ifSet = append(ifSet, &h.mismatchSince, &l.firstAskedAt, &l.firstAnswerAt, &l.changedAt, &h.graceUntil, &h.listUntil)
	}
	for _, at := range always {
		*at += shift
	}
	for _, at := range ifSet {
		if *at > 0 {
			*at += shift
		}
	}
	if c.stallReportedAt == 0 || c.now.Mono-c.stallReportedAt >= stallReportInterval {
		c.stallReportedAt = c.now.Mono
		c.logf("", 0, "this dispatcher was suspended for %s (stopped, or its disk did not answer); the hosts' silence in that time does not count", short(gap))
	}
}
