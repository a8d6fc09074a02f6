package sched

import (
	"cmp"
	"math"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// defaultHalfLife is after how long slot time that a queue has used counts half.
const defaultHalfLife = time.Hour

// aheadUnknown is for how long, in seconds, what runs is taken to continue while no run
// time is known.
const aheadUnknown = 1

// turn is what decides whose turn it is among queues: the one with the smallest
// load, which is what it has used, averaged with a half-life, over the share. An attempt is
// charged its CPU time, and at least the time of its slots (charge). What runs and
// what was sent to hosts is charged ahead, so that many slots that are free at once are
// shared out at once. A queue that had nothing to do saves up what it may use later, but
// not for ever: what the others use counts less and less.
type turn struct {
	name     string
	share    float64 // at least 1
	priority int     // of the queue: a smaller one goes first, whatever the shares are

	used    float64 // slot seconds, or CPU seconds where those are more, as of at
	at      time.Duration
	running int // slots of attempts known to run
	handed  int // … of open ones not known to have started

	mean float64 // seconds that a job of it takes; 0: not known
	each float64 // … that one which was handed over is charged ahead
	load float64 // only while jobs are placed
}

// heed handles what a newly accepted job says of its queue: the newest one counts.
func (c *Core) heed(s *jobs.Spec) {
	o := s.Options
	if o == c.heeded {
		return
	}
	c.heeded = o
	if o.Share == 0 && o.QueuePriority == nil && o.QueueSlots == 0 {
		return
	}
	st := c.statsOf(s)
	if o.Share > 0 {
		st.turn.share = float64(o.Share)
	}
	if o.QueuePriority != nil {
		st.turn.priority = *o.QueuePriority
	}
	if o.QueueSlots > 0 && o.QueueSlots != st.slotPool.most {
		st.slotPool.most = o.QueueSlots
		c.queue.capacityChanged()
	}
}

// catchUp brings what was used up to now.
func (t *turn) catchUp(now, halfLife time.Duration) {
	dt := now - t.at
	if dt <= 0 {
		return
	}
	t.at = now
	if t.used == 0 && t.running == 0 {
		return
	}
	kept := math.Exp2(-dt.Seconds() / halfLife.Seconds())
	t.used = t.used*kept + float64(t.running)*(1-kept)*halfLife.Seconds()/math.Ln2
}

// takes charges an attempt that is open now.
func (c *Core) takes(f *flight) {
	t := &f.stats.turn
	t.handed += f.slots
	t.weigh(c.ahead)
}

// moves charges it as one that runs, and has run for so long already.
func (c *Core) moves(f *flight, ran time.Duration) {
	t := &f.stats.turn
	t.catchUp(c.now.Mono, c.cfg.HalfLife)
	t.handed -= f.slots
	t.running += f.slots
	t.used += float64(f.slots) * ran.Seconds()
}

// leaves charges it no more. What it was charged is corrected when its host has said how
// long it has run and what it has used: we may hear of start and end at once.
func (c *Core) leaves(f *flight) {
	t := &f.stats.turn
	t.catchUp(c.now.Mono, c.cfg.HalfLife)
	was := c.charged(f)
	if f.started {
		t.running -= f.slots
	} else {
		t.handed -= f.slots
	}
	if f.took > 0 {
		t.used = max(0, t.used+charge(f.slots, f.took, f.cpu)-was)
	}
}

// charge returns what an attempt is charged that has run for so long and used so much CPU.
func charge(slots int, took, cpu time.Duration) float64 {
	return max(float64(slots)*took.Seconds(), cpu.Seconds())
}

// charged returns what an open attempt has been charged so far.
func (c *Core) charged(f *flight) float64 {
	if !f.started {
		return 0
	}
	return float64(f.slots)*f.age(c.now.Mono).Seconds() + f.extra
}

// exceed charges what running attempts of a host have used beyond their slots since its
// last beat.
func (c *Core) exceed(h *host, b *hosts.Beat) {
	for f := h.head; f != nil && len(b.Cores) > 0; f = f.next {
		beyond := min(boundedCores(b.Cores[f.id.String()]), float64(h.cores())) - float64(f.slots)
		if since := c.now.Mono - max(h.beatAt, f.startedAt); f.started && beyond > 0 && since > 0 {
			f.stats.turn.catchUp(c.now.Mono, c.cfg.HalfLife)
			f.extra += beyond * since.Seconds()
			f.stats.turn.used += beyond * since.Seconds()
		}
	}
}

// cores returns how many cores a host has, as it says; the most that there can be before
// it has said so.
func (h *host) cores() int {
	if h.hello == nil || h.hello.Cores == 0 {
		return jobs.MaxSlots
	}
	return h.hello.Cores
}

// boundedCPU returns the CPU time of an attempt, as far as it can be true.
func boundedCPU(cpu time.Duration, cores int, took time.Duration) time.Duration {
	return time.Duration(min(max(0, float64(cpu)), float64(cores)*float64(took), math.MaxInt64/2))
}

// learnUse charges what earlier dispatchers' attempts have used: one look at each, most
// of which are over for so long that they count for nothing.
func (c *Core) learnUse() {
	half := c.cfg.HalfLife.Seconds()
	oldest := c.now.Wall - jobs.Stamp(20*min(c.cfg.HalfLife, 365*24*time.Hour))
	for i := range c.table.Jobs {
		j := &c.table.Jobs[i]
		for _, a := range j.Attempts {
			if a.Outcome == nil || a.Outcome.Ended < oldest {
				continue
			}
			ran := min(a.Outcome.Elapsed(), c.mostElapsed(j))
			took := ran.Seconds()
			if took == 0 {
				continue
			}
			rate := charge(j.Spec.SlotCount(), ran, boundedCPU(a.Outcome.CPU, jobs.MaxSlots, ran)) / took
			ago := max(0, c.now.Wall.Sub(a.Outcome.Ended)).Seconds()
			t := &c.statsOf(j.Spec).turn
			t.used += rate * math.Exp2(-ago/half) * (1 - math.Exp2(-took/half)) * half / math.Ln2
		}
	}
	for _, st := range c.queues {
		st.turn.at = c.now.Mono
	}
}

// weighQueues makes the loads that this step's placing goes by. All queues are charged
// ahead for the same time: that of the longest jobs, so that one slot too many or few is
// made good by one slot, and not by all of them at once.
func (c *Core) weighQueues() {
	if len(c.queues) < 2 && !c.hybrid {
		return
	}
	c.ahead = 0
	sum, known := 0.0, 0
	for _, st := range c.queues {
		t := &st.turn
		t.catchUp(c.now.Mono, c.cfg.HalfLife)
		t.mean, _ = c.times.of(t.name)
		if t.mean == 0 && st.guessed > 0 {
			t.mean = st.guess / float64(st.guessed)
		}
		if t.mean > 0 && t.running+t.handed+st.queued > 0 {
			c.ahead = max(c.ahead, t.mean)
			sum, known = sum+t.mean, known+1
		}
	}
	if known == 0 {
		c.ahead, sum, known = aheadUnknown, aheadUnknown, 1
	}
	c.ahead = min(c.ahead, c.cfg.HalfLife.Seconds())
	for _, st := range c.queues {
		st.turn.each = st.turn.mean
		if st.turn.mean == 0 { // as the others
			st.turn.each = sum / float64(known)
		}
		st.turn.weigh(c.ahead)
	}
}

func (t *turn) weigh(ahead float64) {
	t.load = (t.used + float64(t.running)*ahead + float64(t.handed)*t.each) / t.share
}

// compare returns which of two queues goes first: -1, 0, 1.
func (t *turn) compare(o *turn) int {
	switch {
	case t == o:
		return 0
	case t.priority != o.priority:
		return cmp.Compare(t.priority, o.priority)
	case t.load < o.load:
		return -1
	case t.load > o.load:
		return 1
	}
	return 0
}

// correct charges a lost attempt what it has used in truth, now that its outcome is known.
func (c *Core) correct(a *jobs.Attempt, j *jobs.Job, o *jobs.Outcome) {
	h := c.hostWith(a.Host, a.Machine)
	if took := min(o.Elapsed(), c.mostElapsed(j)); h != nil && c.astray[a.ID] && took > 0 {
		t := &c.statsOf(j.Spec).turn
		t.catchUp(c.now.Mono, c.cfg.HalfLife)
		t.used = max(0, t.used+charge(j.Spec.SlotCount(), took, boundedCPU(o.CPU, h.cores(), took))-c.lostUse[a.ID])
	}
}
