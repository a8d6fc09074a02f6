package sched

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// Copies of running jobs (D3, D4). When a slot is free and no job waits for one, another
// attempt of a job that runs is launched on a second host. The first success counts; the
// others are then ended and use up no try. A job that has several attempts is decided by
// the last of them that is open (fail, without), so nothing else here knows of copies.

const (
	// copyAfter is the age below which a job is not copied unless its host is silent:
	// most jobs as short as that end before a copy has begun.
	copyAfter = time.Second
	// copyEvery is how often the running jobs are looked at for this: all of them each time.
	copyEvery = time.Second
	// losersWait is how long a run that has all results waits for a silent host with an
	// attempt that lost, and copyLease bounds the leases of such a run: what was handed to
	// the host must not start later.
	losersWait = 10 * time.Second
	copyLease  = losersWait
)

// candidate is an attempt whose job may be copied.
type candidate struct {
	f    *flight
	rank int           // smaller goes first
	left time.Duration // expected remaining time; the longest goes first
	why  string
}

// copyIdle uses the slots that no queued job needs: first for jobs of hosts that do not
// answer, then for stragglers, then for the jobs with the longest expected remaining time.
func (c *Core) copyIdle() {
	if c.cfg.Copies < 2 || c.now.Mono < c.copyAt || c.closed() || c.queue.ready > 0 || !c.roomLeft() || c.backlog() {
		return
	}
	c.copyAt = c.now.Mono + copyEvery
	var list []candidate
	for _, h := range c.everyHost() {
		for f := h.head; f != nil; f = f.next {
			if x, ok := c.candidate(f); ok {
				list = append(list, x)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(a.rank-b.rank, cmp.Compare(b.left, a.left))
	})
	for _, x := range list[:min(len(list), mostAStep)] {
		j := c.table.Job(x.f.id.Job)
		if !c.roomLeft() {
			return
		}
		if !c.mayCopy(j) {
			continue // copied a moment ago, from another of its attempts
		}
		cl := c.newClass(j)
		c.fit(cl)
		if h := c.choose(cl); h != nil {
			c.say(h.spec.Name, x.f.id.Job, "job %d runs on %s too: %s", x.f.id.Job, h.spec.Name, x.why)
			c.launch(x.f.id.Job, h)
			c.launchAfter = c.now.Mono + c.cfg.Delay
		}
	}
}

// backlog reports whether a job waits on a host that has no slot for it: it may move to
// another host, which is better than a copy.
func (c *Core) backlog() bool {
	for _, h := range c.hosts {
		if h.state == Up && h.occupied > h.limit && h.surplus() > 0 {
			return true
		}
	}
	return false
}

// candidate says whether the job of an attempt may be copied, and how urgent that is.
func (c *Core) candidate(f *flight) (candidate, bool) {
	j, h := c.table.Job(f.id.Job), f.h
	if f.killed || f.over || j.State != jobs.Running || !c.mayCopy(j) {
		return candidate{}, false
	}
	if h.state == Suspect || !h.linked && c.now.Mono-h.heard >= BeatEvery {
		return candidate{f: f, why: h.spec.Name + " does not answer"}, true
	}
	age := f.age(c.now.Mono)
	if !f.judged() || age < copyAfter {
		return candidate{}, false
	}
	left := age // what has run longer than expected, or is not expected to end, counts as in the middle
	if d, ok := f.expected(age); ok && d > age {
		left = d - age
	}
	if f.straggles {
		return candidate{f, 1, left, "it is a straggler on " + h.spec.Name}, true
	}
	return candidate{f, 2, left, "slots are free"}, true
}

// mayCopy reports whether a job may have one more attempt: within the run's number of
// copies, and within its tries even if all of them fail.
func (c *Core) mayCopy(j *jobs.Job) bool {
	if j.Spec.NoCopies || c.cancelled(j.Spec.ID) || c.tooHard(j) {
		return false
	}
	open := 0
	for _, a := range j.Attempts {
		if a.State.Open() {
			open++
			if a.Round != j.Round {
				return false
			}
		}
	}
	return open < c.cfg.Copies && int(j.Failures)+open < c.tries(j)
}

// giveUpLosers gives up the attempts on silent hosts whose jobs have their results from
// copies. Called when every job has its result: nothing that they bring can count.
func (c *Core) giveUpLosers() {
	if c.cfg.Copies < 2 {
		return
	}
	for _, h := range c.everyHost() {
		if h.linked || c.now.Mono-h.heard < losersWait {
			continue
		}
		for f, next := h.head, (*flight)(nil); f != nil; f = next {
			next = f.next
			if c.mayLose(h, f, false, false) {
				c.lose(f, "its job has a result, and "+h.spec.Name+" does not answer: "+c.silence(h))
			}
		}
	}
}
