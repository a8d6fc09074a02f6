package sched

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// Copies of running jobs. When a slot is free, another attempt of a straggler is launched on
// a second host; when no job waits for the slot, also one of other jobs that run. The first success counts; the
// others are then ended and use up no try. A job that has several attempts is decided by
// the last of them that is open (fail, without), so nothing else here knows of copies.

const (
	// copyAfter is the age below which a job is not copied unless its host is silent:
	// most jobs as short as that end before a copy has begun.
	copyAfter = time.Second
	// copyEvery is how often the running jobs are looked at for this: all of them each time.
	copyEvery = time.Second
	// stragglerEvery is added to it while jobs wait, which are not handed out ahead of need
	// from then on until a slot is free.
	stragglerEvery = 4 * time.Second
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

// copiesWait reports whether a straggler waits for a free slot while jobs wait in the queue.
// Hosts then get nothing ahead of need, or no slot would become free.
func (c *Core) copiesWait() bool {
	return c.cfg.Copies >= 2 && c.straggling > 0 && c.queue.ready > 0 && c.now.Mono >= c.copyAt
}

// copyRunning launches copies on free slots. While jobs wait in the queue, only stragglers
// get one, before those jobs; otherwise first the jobs of hosts that do not answer, then
// stragglers, then the jobs with the longest expected remaining time.
func (c *Core) copyRunning() {
	if c.cfg.Copies < 2 || c.now.Mono < c.copyAt || c.closed() || !c.roomLeft() {
		return
	}
	queued := c.queue.ready > 0
	if queued && c.straggling == 0 || !queued && c.backlog() {
		return
	}
	c.copyAt = c.now.Mono + copyEvery
	if queued {
		c.copyAt += stragglerEvery
	}
	var list []candidate
	for _, h := range c.everyHost() {
		for f := h.head; f != nil; f = f.next {
			if queued && !f.straggles {
				continue
			}
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

// candidate reports whether the job of an attempt may be copied, and how urgent that is.
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
	if j.Spec.NoCopies || c.canceled(j.Spec.ID) || c.tooHard(j) {
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

// A straggler has run for more than twice the time that jobs of its queue take. It
// is flagged, and is among the first to be copied (copies.go).
const (
	stragglerAt = 2
	// judgeEvery is how often the running jobs are looked at: all of them each time.
	judgeEvery = TickEvery
	// stragglerLeast is the age below which nobody is told of a job: a hiccup of a second
	// among jobs of milliseconds is nothing to look into.
	stragglerLeast = 5 * time.Second
)

// judge looks at what runs.
func (c *Core) judge() {
	if c.now.Mono < c.judgeAt {
		return
	}
	c.judgeAt = c.now.Mono + judgeEvery
	for _, st := range c.queues {
		st.censored = censored{}
	}
	for _, h := range c.hosts {
		for f := h.head; f != nil; f = f.next {
			if f.judged() {
				f.stats.runs(f.age(c.now.Mono).Seconds())
			}
		}
	}
	for _, h := range c.hosts {
		for f := h.head; f != nil; f = f.next {
			if age := f.age(c.now.Mono); !f.straggles && age >= stragglerLeast && f.judged() {
				c.judgeOne(f, age)
			}
		}
	}
}

// judged reports whether the age of an attempt means something: it runs, its host is heard,
// and nobody is ending it.
func (f *flight) judged() bool { return f.started && f.h.linked && !f.killed && !f.over }

func (c *Core) judgeOne(f *flight, age time.Duration) {
	expected, ok := f.expected(age)
	if !ok || age <= stragglerAt*expected {
		return
	}
	f.straggles = true
	c.straggling++
	than := "jobs of its queue take " + short(expected) + " at most, as a rule"
	if f.spec.Estimate > 0 {
		than = "it was estimated at " + short(expected)
	}
	c.say(f.h.spec.Name, f.id.Job, "job %d is a straggler: it has run for %s on %s, and %s", f.id.Job, short(age), f.h.spec.Name, than)
}

// expected is how long it should take: as its user said, or as others of its queue
// took.
func (f *flight) expected(age time.Duration) (time.Duration, bool) {
	if f.spec.Estimate > 0 {
		return f.spec.Estimate, true
	}
	s, ok := f.stats.estimate(age.Seconds())
	return seconds(s), ok
}

// seconds converts without overflow.
func seconds(s float64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return time.Duration(min(max(s, 0), most) * float64(time.Second))
}

// Estimate returns how long a job takes at most, as a rule: what its user said, or mean
// and two standard deviations of its queue. 0: not known.
func (c *Core) Estimate(id jobs.ID) time.Duration {
	j := c.table.Job(id)
	if j == nil {
		return 0
	}
	if f := c.flightOf(j); f != nil && f.started {
		d, _ := f.expected(f.age(c.now.Mono))
		return d
	}
	if j.Spec.Estimate > 0 {
		return j.Spec.Estimate
	}
	s := 0.0
	if st := c.stats[j.Spec.Queue]; st != nil {
		s, _ = st.estimate(0)
	}
	return seconds(s)
}

// Straggler reports whether a job runs far longer than others of its queue.
func (c *Core) Straggler(id jobs.ID) bool {
	j := c.table.Job(id)
	if j == nil || j.State != jobs.Running {
		return false
	}
	f := c.flightOf(j)
	return f != nil && f.straggles
}

// Stragglers returns the number of attempts that are stragglers.
func (c *Core) Stragglers() int { return c.straggling }

// flightOf returns the newest open attempt of a job, nil if there is none.
func (c *Core) flightOf(j *jobs.Job) *flight {
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		if f := c.flights[j.Attempts[i].ID]; f != nil {
			return f
		}
	}
	return nil
}
