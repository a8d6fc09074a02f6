package sched

import (
	"maps"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// After damage to the journal (Table.Damaged) there may be attempts that no record
// tells of. Claims and sentinels do: every host is asked for all that it has of the
// run before anything is launched, or a job whose record is lost would run twice.

// reconcileTime is how long launching waits for the hosts' lists, or longer, until what a
// host was handed cannot start there any more. A host that has not answered by then is
// treated as one that is lost: its attempts may turn up later.
const reconcileTime = 90 * time.Second

// numberGap is left free in the numbers of a job's attempts where a host with attempts of
// unknown numbers has not answered, so that a number is never used twice; and each epoch
// begins behind so many for each before it, whose records later damage may have taken.
const numberGap = 10

// mostFree bounds the numbers left free in a whole run: each is an attempt without a host
// in the table, of some 100 bytes.
const mostFree = 10_000_000

// After damage a consumer may have results whose records are lost, and takes a number that
// it knows for a repeat. So each dispatcher then begins with a base of its own, which no
// damage makes any other one take; and seqGap is left free beside one number for each job,
// should so many have been given that a base is reached.
const (
	seqGap  = 1000
	seqBase = 1 << 20 // times its epoch
)

// mostNumbers bounds the attempts of one job that a host may tell of.
const mostNumbers = 1000

// Found is an attempt that the files of the run directory tell of (X1): given to New
// when records may be missing.
type Found struct {
	Host string
	hosts.ProbedJob
}

// reconciling is what the core knows of records that may be missing.
type reconciling struct {
	reconcileBy time.Duration    // until when launching waits for the hosts' lists; 0: it does not
	strangersBy time.Duration    // … and because of hosts that the inventory lacks; 0: there are none
	gap         bool             // attempts of unknown numbers may be about
	numbered    map[jobs.ID]bool // … and of these jobs numbers have been left free for them
	usedUp      map[jobs.ID]int  // numbers up to this one are not free, where the table does not say so
}

// leaveSeqsFree is called before anything gets a result: consumers may have results whose
// records are lost.
func (c *Core) leaveSeqsFree() {
	if c.table.Damaged {
		c.firstSeq = max(c.table.Seq+1+seqGap+int64(len(c.table.Jobs)), int64(c.table.Epoch)*seqBase)
	}
}

// startReconciling is called at the beginning of a run whose journal was damaged.
func (c *Core) startReconciling() {
	if !c.table.Damaged {
		return
	}
	for i := range c.cfg.Found {
		c.foundOnFile(&c.cfg.Found[i])
	}
	for _, h := range c.hosts {
		h.listBy = c.listBy(h)
		c.reconcileBy = max(c.reconcileBy, h.listBy)
	}
	stranger := c.stranger()
	if stranger != "" {
		c.strangersBy = c.listBy(&host{spec: new(hosts.Host), cutAt: c.now.Mono, inherited: true})
		stranger = "; " + stranger + " is not in the inventory and cannot be asked"
	}
	c.reconcileBy = max(c.reconcileBy, c.strangersBy, c.now.Mono+1)
	c.say("", 0, "the journal is damaged: nothing is launched until the hosts have said what they have of this run, for %s at most%s", short(c.reconcileBy-c.now.Mono), stranger)
}

// listBy is until when launching waits for a host's list: what was handed to it cannot
// start any more by then.
func (c *Core) listBy(h *host) time.Duration {
	return max(c.now.Mono+reconcileTime, c.leaseEnd(h))
}

// stranger is a host that had attempts and that the inventory lacks; "": there is none.
func (c *Core) stranger() string {
	for i := range c.table.Jobs {
		for _, a := range c.table.Jobs[i].Attempts {
			if a.Host != "" && c.inInventory(a.Host) == nil {
				return a.Host
			}
		}
	}
	return ""
}

// reconcile sees whether launching may begin.
func (c *Core) reconcile() {
	if c.reconcileBy == 0 {
		return
	}
	all, by := c.strangersBy == 0, c.strangersBy
	for _, h := range c.hosts {
		if !h.listed {
			all, by = false, max(by, h.listBy)
		}
	}
	if c.now.Mono < by {
		c.reconcileBy = by
		return
	}
	c.reconcileBy = 0
	if c.gap = !all; c.gap {
		c.numbered = make(map[jobs.ID]bool)
	}
	c.cancelLeft()
	word := "every host has said what it has of this run"
	if !all {
		word = "not every host has said what it has of this run"
	}
	c.say("", 0, "%s; launching begins", word)
}

// cancelLeft ends jobs that a person wanted ended and of which nothing was found.
func (c *Core) cancelLeft() {
	for _, id := range slices.Sorted(maps.Keys(c.table.Cancels)) {
		if c.table.Job(id).State == jobs.Queued {
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Cancelled, Reason: c.table.Cancels[id]})
		}
	}
}

// list asks a host that has just answered for its list.
func (c *Core) list(h *host) {
	if c.table.Damaged {
		h.listed, h.out.list = false, true
	}
}

// listed takes in a piece of a host's list.
func (c *Core) listed(e HostListed) {
	h := c.byName[e.Host]
	if h == nil || h.idx < 0 || !h.linked {
		return
	}
	for i := range e.Msg.Jobs {
		c.found(h, &e.Msg.Jobs[i])
	}
	if !e.Msg.Last {
		return
	}
	if h.listed = e.Msg.Why == ""; !h.listed {
		c.say(h.spec.Name, 0, "%s could not say all that it has of this run: %s", h.spec.Name, e.Msg.Why)
		h.listAt = c.now.Mono + probeEvery
	}
}

// relist asks again hosts whose list was not whole.
func (c *Core) relist() {
	for _, h := range c.hosts {
		if h.linked && h.listAt > 0 && c.now.Mono >= h.listAt {
			h.listAt, h.out.list = 0, true
		}
	}
}

// foundOnFile takes in what the run directory tells of an attempt. A claim says that it has
// started, not that it runs: nothing else is ended because of it, and one that was given
// up as lost stays so.
func (c *Core) foundOnFile(f *Found) {
	a := c.table.Attempt(f.Attempt)
	if f.Answer == hosts.IsRunning && a != nil && a.State == jobs.AttemptLost && a.Host != "" {
		return
	}
	c.found(c.hostOf(f.Host), &f.ProbedJob)
}

// found takes in what a host has of an attempt. One that the table does not know
// is entered, so that the ordinary rules apply to it; one that nobody waits for is
// ended.
func (c *Core) found(h *host, p *hosts.ProbedJob) {
	id := p.Attempt
	j, a := c.table.Job(id.Job), c.table.Attempt(id)
	switch {
	case a != nil && a.Host == h.spec.Name:
		c.probedOne(h, p)
		return
	case j == nil || id.N < 1 || id.N > len(j.Attempts)+mostNumbers:
		return // not of this run as far as it is known, and a host's word does not change that
	case p.Answer == hosts.NeverStarted:
		return
	case a != nil && a.Host != "" || j.State.Terminal():
		if p.Answer == hosts.IsRunning || p.Answer == hosts.Buffered {
			c.say(h.spec.Name, id.Job, "attempt %s on %s is ended: the record of it is lost, and its job has a result or another attempt of that number", id, h.spec.Name)
			h.kill(id, "its job has a result or another attempt")
		} else if p.Answer == hosts.Unknown {
			h.kill(id, "it may be alive, and its job has a result or another attempt")
		}
		c.useUp(id)
		return
	}
	outlasted := h.linked && p.Answer == hosts.IsRunning && !c.outlasts(id, j, p.Started)
	if !c.emit(jobs.Record{Kind: jobs.KindLaunching, Job: id.Job, N: id.N, Host: h.spec.Name}) {
		return
	}
	c.say(h.spec.Name, id.Job, "attempt %s on %s had no record left; it was found by its files", id, h.spec.Name)
	f := c.fly(h, id, j.Spec)
	h.known = true
	h.count(f)
	c.probedOne(h, p)
	if outlasted { // its end is waited for as any other's
		c.killFlight(f, "a newer attempt has run longer")
	}
	if p.Answer == hosts.Buffered && f.waiting() && otherOpen(j, id.N) {
		h.withdraw(f) // its job did not wait for it
	}
}

// useUp keeps the number of an attempt that no record tells of from being given to
// another. The host tells of it again to whoever replays the damaged journal next.
func (c *Core) useUp(id jobs.AttemptID) {
	if c.usedUp == nil {
		c.usedUp = map[jobs.ID]int{}
	}
	c.usedUp[id.Job] = max(c.usedUp[id.Job], id.N)
}

// nextNumber is the number of a job's next attempt.
func (c *Core) nextNumber(j *jobs.Job) int {
	n := len(j.Attempts)
	if c.gap && !c.numbered[j.Spec.ID] {
		c.numbered[j.Spec.ID] = true
		n = max(n+numberGap, min(numberGap*c.table.Epoch, n+mostNumbers-1, mostFree/len(c.table.Jobs)))
	}
	return max(n, min(c.usedUp[j.Spec.ID], len(j.Attempts)+mostNumbers-1)) + 1
}
