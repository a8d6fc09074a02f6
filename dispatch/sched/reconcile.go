package sched

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Before a dispatcher that continues a run launches anything, the hosts list their attempts. A
// journal that has lost its end looks like one whose dispatcher was killed there. Without the
// lists, jobs whose records are lost would run twice.
//
// Usually every listed attempt has a record. Then only attempts of unfinished jobs are
// listed, and launching begins as soon as the hosts that are up have answered. An
// attempt without a record shows damage (Table.Damaged). Then everything is listed, and
// every host is awaited.

// reconcileTime is how long launching waits for the list of a host after damage. It waits for
// longer if jobs that were sent to the host can still start there. A host that has not answered by
// then is treated as lost. Its attempts may be reported later.
const reconcileTime = 90 * time.Second

// Without damage, launching waits listTime for the hosts that are up. For hosts that are being
// connected to, it waits until listUpAfter after a host last came up.
const (
	listTime    = 30 * time.Second
	listUpAfter = 5 * time.Second
)

// numberGap is the number of a job's attempt numbers that are left free if a host with attempts of
// unknown numbers has not answered, so that no number is used twice. Each epoch leaves as many free
// for each epoch before it, because later damage may have removed their records.
const numberGap = 10

// maxNumbersFree bounds the numbers left free in a whole run. Each is an attempt without a host in
// the table, of about 100 bytes.
const maxNumbersFree = 10_000_000

// After damage a consumer may have results whose records are lost, and it treats a known number as
// a repeat. So each dispatcher then begins with its own base, which no other one uses, whatever is
// damaged. Between two bases there is one number for each job, and seqGap more.
const (
	seqGap  = 1000
	seqBase = 1 << 20 // multiplied by the epoch
)

// maxNumbersClaimed bounds the numbers that are left free because hosts report attempts that have no
// record. It is less than maxNumbersFree, because a host may have made them up.
const maxNumbersClaimed = 1_000_000

// maxUnknownNumbers bounds the attempts of one job that a host may report.
const maxUnknownNumbers = 1000

// Found is an attempt with files in the run directory.
type Found struct {
	Host string
	hosts.ProbedJob
}

// reconciling holds what is known about missing records.
type reconciling struct {
	// Until when launching waits for the hosts' lists; 0: it does not wait.
	reconcileUntil time.Duration
	// Until when it waits for hosts that are not, or no longer, in the inventory; 0: there are none.
	missingHostsUntil time.Duration
	jobsToList        jobs.Ranges      // jobs whose attempts are listed, unless there is damage
	lastUpAt          time.Duration    // when the last new host came up, or the core began
	numbersClaimed    int              // numbers left free before attempts that hosts reported
	numbersUnknown    bool             // attempts of unknown numbers may exist
	numbersLeftFree   map[jobs.ID]bool // jobs for which numbers have been left free because of that
	highestUsed       map[jobs.ID]int  // highest used number of a job, where it is not in the table
	secondAttempts    []*inFlight      // those for which isSecond holds
}

// listing holds the state of a host's list of its attempts.
type listing struct {
	listed    bool          // the host has listed the attempts that were asked for
	listUntil time.Duration // until when launching waits for the list
	listAt    time.Duration // when to request the list again; 0: not planned
	listWhy   string        // why its last list was incomplete; "": it was complete
	unclear   bool          // the current list has an attempt that cannot be read
	lacksPack bool          // its last list lacks what is in a pack that is damaged or cannot be read
	// Lists that were requested over this link and have not ended. Others do not count.
	listsAwaited int
}

// leaveSeqsFree chooses the first result number after damage. It is called before any job gets a
// result.
func (c *Core) leaveSeqsFree() {
	if c.table.Damaged {
		c.firstSeq = max(c.table.Seq+1+seqGap+int64(c.table.NumJobs()), int64(c.table.Epoch)*seqBase)
	}
}

// startReconciling makes launching wait for the lists of the hosts when a dispatcher continues a
// run.
func (c *Core) startReconciling() {
	switch {
	case c.table.Damaged:
		for i := range c.cfg.Found {
			c.handleFoundFiles(&c.cfg.Found[i])
		}
		c.awaitEveryHost()
	case c.table.Epoch > 1:
		c.jobsToList = UnfinishedJobs(c.table)
		c.lastUpAt = c.now.Mono
		c.reconcileUntil = c.now.Mono + listUpAfter
	}
}

// awaitEveryHost stops launching until every host has listed all its attempts.
func (c *Core) awaitEveryHost() {
	c.reconcileUntil = 0
	c.touchAll()
	for h := range c.everyHost() {
		h.listed = false
		h.listUntil = c.listDeadline(h)
		c.reconcileUntil = max(c.reconcileUntil, h.listUntil)
	}
	missing := c.missingHost()
	if missing != "" {
		c.missingHostsUntil = c.listDeadline(&host{spec: new(hosts.Host),
			linkState: linkState{cutAt: c.now.Mono, inherited: true}})
		missing = "; " + missing + " is not in the inventory and cannot be asked"
	}
	c.reconcileUntil = max(c.reconcileUntil, c.missingHostsUntil, c.now.Mono+1)
	c.logf("", 0, "the journal may lack records: nothing is launched until the hosts have listed their attempts "+
		"of this run, for at most %s%s", text.Span(c.reconcileUntil-c.now.Mono), missing)
}

// rangesToList returns the jobs whose attempts hosts must list. It includes those that have
// finished since the start, because a host that comes up late may have attempts of them.
func (c *Core) rangesToList() jobs.Ranges {
	if c.table.Damaged {
		return nil
	}
	return c.jobsToList
}

// recordUnrecorded records that a host has an attempt without a record, so that later dispatchers
// know it, too.
func (c *Core) recordUnrecorded(host string, id jobs.AttemptID) {
	c.emit(jobs.Record{Kind: jobs.KindDamaged, Host: host,
		Reason: fmt.Sprintf("%s has attempt %s, and the journal does not", host, id)})
}

// UnfinishedJobs returns the jobs whose attempts are compared with the journal: the unfinished
// jobs, and any beyond the last one. After damage it returns nil, which means all jobs.
func UnfinishedJobs(t *jobs.Table) jobs.Ranges {
	if t.Damaged {
		return nil
	}
	var list jobs.Ranges
	for i := range t.NumJobs() {
		if id := jobs.ID(i + 1); t.State(id).Terminal() {
			continue
		} else if n := len(list); n > 0 && id-list[n-1].Last <= listGap {
			list[n-1].Last = id
		} else {
			list = append(list, jobs.Range{First: id, Last: id})
		}
	}
	return append(list, jobs.Range{First: jobs.ID(t.NumJobs() + 1), Last: math.MaxInt32})
}

// listGap is the largest number of finished jobs between two ranges that are joined. It bounds the
// size of the message.
const listGap = 64

// listDeadline returns until when launching waits for a host's list. Jobs that were sent to the
// host earlier cannot start there after that time.
func (c *Core) listDeadline(h *host) time.Duration {
	return max(c.now.Mono+reconcileTime, c.leaseEnd(h))
}

// missingHost returns a host that had attempts and is not in the inventory, or "".
func (c *Core) missingHost() string {
	for j := range c.table.RowsWithOptions() {
		for _, a := range j.Attempts {
			if a.Host != "" && c.byName[a.Host] == nil {
				return a.Host
			}
		}
	}
	return ""
}

// awaitUnlisted makes launching wait for a host that leaves the run before it has listed its attempts
// after damage: until nothing more can start there.
func (c *Core) awaitUnlisted(h *host) {
	if c.table.Damaged && c.reconcileUntil > 0 && !h.listed {
		c.missingHostsUntil = max(c.missingHostsUntil, c.listDeadline(h))
	}
}

// listsUntil returns until when the lists of all attempts are awaited, and whether none is missing.
func (c *Core) listsUntil() (by time.Duration, all bool) {
	by, all = c.missingHostsUntil, c.missingHostsUntil == 0
	for h := range c.everyHost() {
		if !h.listed {
			by, all = max(by, h.listUntil), false
		}
	}
	return by, all
}

// awaitsUnrecorded reports whether hosts may still list attempts that have no record, because of damage. In a
// pack that they cannot read, there are none that are alive.
func (c *Core) awaitsUnrecorded() bool {
	if !c.table.Damaged || c.reconcileUntil == 0 {
		return false
	}
	by, _ := c.listsUntil()
	return c.now.Mono < by
}

// reconcile lets launching begin when the lists are complete, or have been awaited for long enough.
func (c *Core) reconcile() {
	c.endSecondAttempts()
	if c.reconcileUntil == 0 {
		return
	}
	if !c.table.Damaged {
		c.reconcileUntil = c.reconcileDeadline()
		return
	}
	by, all := c.listsUntil()
	for h := range c.everyHost() {
		if h.lacksPack { // its jobs may have results: a person must decide
			by = max(by, c.now.Mono+probeInterval)
		}
	}
	if c.now.Mono < by {
		c.reconcileUntil = by
		return
	}
	c.reconcileUntil = 0
	c.numbersUnknown = !all
	if c.numbersUnknown {
		c.numbersLeftFree = make(map[jobs.ID]bool)
	}
	c.cancelNotFound()
	word := "every host has listed its attempts of this run"
	if !all {
		word = "not every host has listed its attempts of this run"
	}
	c.logf("", 0, "%s; launching begins", word)
}

// reconcileDeadline returns until when launching waits for the lists of hosts that are up or may
// come up, or 0.
func (c *Core) reconcileDeadline() time.Duration {
	by := time.Duration(0)
	for h := range c.everyHost() {
		switch {
		case h.listed:
		case h.linked:
			by = max(by, h.listUntil)
		case h.dialing:
			by = max(by, c.lastUpAt+listUpAfter)
		}
	}
	if c.now.Mono >= by {
		return 0
	}
	return by
}

// cancelNotFound ends jobs that are being canceled and of which no attempt was found.
func (c *Core) cancelNotFound() {
	for _, id := range slices.Sorted(maps.Keys(c.table.Cancels)) {
		if c.table.Job(id).State == jobs.Queued {
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Canceled, Reason: c.table.Cancels[id].Reason})
		}
	}
}

// requestList requests the list of a host that has just come up: each time if there is damage,
// otherwise until the host has sent one.
func (c *Core) requestList(h *host) {
	if c.table.Damaged {
		h.listed, h.outbox.list = false, true
		return
	}
	if c.table.Epoch < 2 || h.listed {
		return
	}
	h.outbox.list = true
	if h.listUntil > 0 {
		return // a host that comes and goes is awaited only once
	}
	c.lastUpAt, h.listUntil = c.now.Mono, c.now.Mono+listTime
	if !c.anyHost(func(o *host) bool { return o != h && o.linked }) {
		c.reconcileUntil = h.listUntil // nothing could be launched until now
	}
}

// apply handles a part of a host's list.
func (e HostListed) apply(c *Core) {
	h := c.byName[e.Host]
	if e.Msg.Last {
		h.listsAwaited--
	}
	why := e.Msg.Why
	if !c.table.Damaged {
		h.unclear = h.unclear || slices.ContainsFunc(e.Msg.Jobs, c.isUnclear)
		if h.unclear && why == "" {
			why = "the files of an attempt that has no record cannot be read"
		}
		if i := slices.IndexFunc(e.Msg.Jobs, c.isUnrecorded); i >= 0 {
			c.recordUnrecorded(h.spec.Name, e.Msg.Jobs[i].Attempt)
			c.leaveSeqsFree()
			c.awaitEveryHost()
			for other := range c.everyHost() {
				other.outbox.list = other.linked
			}
			return
		}
		for i := range e.Msg.Jobs {
			c.endForeign(h, &e.Msg.Jobs[i])
		}
	} else {
		for i := range e.Msg.Jobs {
			c.handleFound(h, &e.Msg.Jobs[i])
		}
	}
	if !e.Msg.Last || c.table.Damaged && !e.Msg.All {
		return
	}
	h.listed, h.lacksPack = why == "", e.Msg.LacksPack
	if !h.listed {
		if h.listWhy != why {
			advice := ""
			if h.lacksPack && c.table.Damaged {
				advice = "; nothing is launched until it is whole and readable, or moved away if these may run again"
			}
			c.logf(h.spec.Name, 0, "%s could not list all its attempts of this run: %s%s", h.spec.Name, why, advice)
		}
		h.listAt = c.now.Mono + probeInterval
	}
	h.listWhy, h.unclear = why, false
}

// isUnrecorded reports whether a host has an attempt that no record assigns to a host. A tombstone
// does not count, because it may come from a launch that was taken back before its record was
// durable. An attempt whose number was given again to another host does not count either: then
// the word of this host stands against the journal.
func (c *Core) isUnrecorded(p hosts.ProbedJob) bool {
	a := c.table.Attempt(p.Attempt)
	return p.Answer != hosts.NeverStarted && p.Answer != hosts.Unknown && (a == nil || a.Host == "")
}

// endForeign ends an attempt that a host has although its record names another host. It reports
// whether the attempt is one. Only this host is told, so a lie about the attempt changes nothing.
func (c *Core) endForeign(h *host, p *hosts.ProbedJob) bool {
	a := c.table.Attempt(p.Attempt)
	if a == nil || a.Host == "" || a.Host == h.spec.Name {
		return false
	}
	if p.Answer == hosts.IsRunning || p.Answer == hosts.Buffered || p.Answer == hosts.Unknown {
		h.kill(p.Attempt, "its number was given to another host")
	}
	return true
}

// isUnclear reports whether a host has files of an attempt without a record that it cannot read.
// They may be a tombstone.
func (c *Core) isUnclear(p hosts.ProbedJob) bool {
	return p.Answer == hosts.Unknown && c.table.Attempt(p.Attempt) == nil
}

// requestListsAgain requests the lists again that were not complete.
func (c *Core) requestListsAgain() {
	for h := range c.visits() {
		if h.linked && h.listAt > 0 && c.now.Mono >= h.listAt {
			h.listAt, h.outbox.list = 0, true
		}
	}
}

// handleFoundFiles handles files of an attempt in the run directory. A claim shows that the attempt
// has started, not that it runs. So nothing else is ended because of it, and an attempt that was
// given up stays lost.
func (c *Core) handleFoundFiles(f *Found) {
	a := c.table.Attempt(f.Attempt)
	if f.Answer == hosts.IsRunning && a != nil && a.State == jobs.AttemptLost && a.Host != "" {
		return
	}
	machine := c.table.At[f.Host]
	if a != nil && a.Host == f.Host {
		machine = a.Machine
	}
	c.handleFound(c.hostOf(f.Host, machine), &f.ProbedJob)
}

// handleFound handles an attempt that a host has. If the table does not know it, it is added, so
// that the ordinary rules apply. It is ended if nobody waits for it.
func (c *Core) handleFound(h *host, p *hosts.ProbedJob) {
	id := p.Attempt
	j, a := c.table.Job(id.Job), c.table.Attempt(id)
	switch {
	case a != nil && a.Host == h.spec.Name:
		// The record of a change of machines may be lost. A machine that has run the attempt is the
		// right one. A machine that does not know the attempt proves nothing.
		if h.owns(a) || p.Answer == hosts.IsRunning || p.Answer == hosts.HasExited || p.Answer == hosts.Buffered {
			c.handleProbed(h, p)
		}
		return
	case c.endForeign(h, p):
		return
	case j == nil:
		if id.N > 0 && id.N <= maxUnknownNumbers && len(c.highestUsed) < maxNumbersClaimed {
			// The job may be submitted again, and must not be confused with this attempt.
			c.markNumberUsed(id)
		}
		return
	case id.N < 1 || id.N > len(j.Attempts)+maxUnknownNumbers:
		return // as far as is known it is not of this run, and a host's report does not change that
	case p.Answer == hosts.NeverStarted:
		return
	case j.State.Terminal() && (p.Answer == hosts.HasExited || p.Answer == hosts.Dead):
		c.markNumberUsed(id)
		return
	case h.numOpen >= jobs.MaxSlots && (j.State.Terminal() || hasOtherOpen(j, id.N)): // the host lies
		h.kill(id, "its job has a result or another attempt")
		c.markNumberUsed(id)
		return
	}
	isSecond := h.linked && p.Answer == hosts.IsRunning && !j.State.Terminal() && hasOtherOpen(j, id.N)
	if free := id.N - len(j.Attempts) - 1; free > 0 {
		c.numbersClaimed += free
		if c.numbersClaimed > maxNumbersClaimed {
			return
		}
	}
	r := jobs.Record{Kind: jobs.KindLaunching, Job: id.Job, N: id.N, Host: h.spec.Name}
	what := ""
	if j.State.Terminal() {
		r.Next, what = j.State, "; its job has a result, so it is ended"
	}
	if !c.emit(r) {
		return
	}
	c.logf(h.spec.Name, id.Job, "attempt %s on %s had lost its record; it was found by its files%s", id,
		h.spec.Name, what)
	f := c.track(h, id, j.Spec)
	h.wasUsed = true
	h.addUse(f, 1)
	c.handleProbed(h, p)
	if isSecond {
		f.isSecond = true
		c.secondAttempts = append(c.secondAttempts, f)
	}
	if p.Answer == hosts.Buffered && f.isWaiting() && hasOtherOpen(j, id.N) {
		h.withdraw(f) // its job did not wait for it
	}
}

// endSecondAttempts ends each found attempt whose job has another one that is alive, too, as that one's host
// reports. No attempt is ended because of a found one, however long that claims to have run: only its
// host claims that it was ever launched. While the other host has not answered, both remain: the other attempt may
// have ended before the found one was launched.
func (c *Core) endSecondAttempts() {
	c.secondAttempts = slices.DeleteFunc(c.secondAttempts, func(f *inFlight) bool {
		if c.inFlight[f.id] != f {
			return true
		}
		isAwaiting := false
		for _, a := range c.table.Job(f.id.Job).Attempts {
			switch o := c.inFlight[a.ID]; {
			case o == nil || o.isSecond:
			case o.isAlive && !o.killed: // the end of the found one is awaited like that of any other attempt
				c.killAttempt(f, "its job has another attempt")
				return true
			default:
				isAwaiting = true
			}
		}
		f.isSecond = isAwaiting
		return !isAwaiting
	})
}

// markNumberUsed prevents the number of an attempt without a record from being used again. The host
// reports that attempt again to every dispatcher that replays the damaged journal.
func (c *Core) markNumberUsed(id jobs.AttemptID) {
	if c.highestUsed == nil {
		c.highestUsed = map[jobs.ID]int{}
	}
	c.highestUsed[id.Job] = max(c.highestUsed[id.Job], id.N)
}

// nextNumber returns the number of a job's next attempt.
func (c *Core) nextNumber(j *jobs.Job) int {
	n := len(j.Attempts)
	if c.numbersUnknown && !c.numbersLeftFree[j.Spec.ID] {
		c.numbersLeftFree[j.Spec.ID] = true
		n = max(n+numberGap, min(numberGap*c.table.Epoch, n+maxUnknownNumbers-1, maxNumbersFree/c.table.NumJobs()))
	}
	return max(n, min(c.highestUsed[j.Spec.ID], len(j.Attempts)+maxUnknownNumbers-1)) + 1
}
