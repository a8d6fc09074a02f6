package hosts

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// behavior is how a simulated user shares a host.
type behavior int

const (
	honest  behavior = iota
	older            // a version without usage
	cheater          // deletes its record and claims no usage
	faker            // wants slots, and takes none
	keeper           // takes what it can, and never gives a slot back
	liar             // claims to hold more slots than there are, and takes none
)

// simUser is a user with one run, whose jobs take a slot each.
type simUser struct {
	uid       int
	kind      behavior
	want      int
	held      int
	bound     int
	kept      KeptSlots
	usage     SlotUsage
	offers    SlotOffers
	starving  time.Duration // since when the part is empty; 0: it is not
	last      bool          // may use a slot that others hold
	jobs      time.Duration // mean duration
	slotHours float64       // held
	gone      bool          // no helper runs
}

type simEvent struct {
	at time.Duration
	do func()
}
type simQueue []simEvent

func (q simQueue) Len() int           { return len(q) }
func (q simQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q simQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(e any)        { *q = append(*q, e.(simEvent)) }
func (q *simQueue) Pop() any {
	e := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return e
}

// simHost is a host with several users. Times are those of its boot clock.
type simHost struct {
	rng     *rand.Rand
	slots   int
	weights map[int]int
	users   []*simUser
	now     time.Duration
	events  simQueue

	idleSince time.Duration // since when a slot is free that somebody wants; -1: none is
	longest   time.Duration
	idle      time.Duration // slot time
	exceeded  int           // most slots beyond those of the host
}

func newSim(seed uint64, slots int, users ...*simUser) *simHost {
	s := &simHost{rng: rand.New(rand.NewPCG(seed, 1)), slots: slots, users: users, idleSince: -1, now: time.Hour}
	for i, u := range users {
		u.uid = i
		s.after(s.random(3*time.Second), func() { s.look(u) })
	}
	return s
}

func (s *simHost) random(mean time.Duration) time.Duration {
	return min(time.Duration(s.rng.ExpFloat64()*float64(mean)), 10*mean) + time.Millisecond
}

func (s *simHost) after(d time.Duration, do func()) { heap.Push(&s.events, simEvent{s.now + d, do}) }

// run simulates for d.
func (s *simHost) run(d time.Duration) {
	for end := s.now + d; len(s.events) > 0 && s.events[0].at <= end; {
		e := heap.Pop(&s.events).(simEvent)
		s.account(e.at)
		e.do()
	}
}

// account adds up what happened until at.
func (s *simHost) account(at time.Duration) {
	held, isWanted := 0, false
	for _, u := range s.users {
		held += u.held
		u.slotHours += float64(u.held) * (at - s.now).Hours()
		isWanted = isWanted || u.want > u.held && u.kind != faker && !u.gone
	}
	s.exceeded = max(s.exceeded, held-s.slots)
	if held < s.slots && isWanted {
		if s.idleSince < 0 {
			s.idleSince = s.now
		}
		s.longest = max(s.longest, at-s.idleSince)
		s.idle += time.Duration(s.slots-held) * (at - s.now)
	} else {
		s.idleSince = -1
	}
	s.now = at
}

func (s *simHost) claims(viewer *simUser) (claims []SlotClaim, me int) {
	for _, u := range s.users {
		if u.gone && u.held == 0 {
			continue
		}
		if u == viewer {
			me = len(claims)
		}
		c := SlotClaim{User: u.uid, Run: "r", Want: u.want, Held: u.held, Slots: s.slots}
		if u.kind == liar {
			c.Held = 2 * s.slots
		}
		if u.kind == honest {
			c.Used = u.usage.Mean(u.uid)
		}
		claims = append(claims, c)
	}
	return claims, me
}

// look is a look of a user's helper, after which it starts jobs.
func (s *simHost) look(u *simUser) {
	s.after(time.Second+time.Duration(s.rng.Int64N(int64(2*time.Second))), func() { s.look(u) })
	if u.gone {
		return
	}
	claims, me := s.claims(u)
	if s.now-u.usage.At >= 10*time.Second {
		u.usage.Observe(s.now, time.Hour, s.slots, u.uid, claims)
	}
	switch u.kind {
	case older:
		for i := range claims {
			claims[i].Used = 0
		}
	case cheater:
		u.usage = SlotUsage{At: u.usage.At}
	}
	if u.kind != older {
		u.usage.SetUsed(u.uid, claims)
		u.offers.Mark(s.now, s.slots, claims, me)
	}
	_, offset := math.Modf(float64(s.now/time.Minute) * math.Phi)
	view := slices.Clone(claims)
	view[me].Want = max(view[me].Want, 1)
	u.bound = SlotBound(s.slots, s.weights, view, me, offset)
	if u.kind == keeper {
		u.bound = s.slots
	}
	switch {
	case u.bound > 0 || u.want == 0:
		u.starving, u.last = 0, false
	case u.starving == 0:
		u.starving = s.now
	case s.now-u.starving > LastSlotDelay:
		u.last = true
	}
	beyond := u.kept.Mark(s.slots, s.weights, view, me, offset)
	if u.last {
		beyond = max(beyond, 1)
	}
	u.bound = max(u.bound, beyond)
	for u.kind != faker && u.kind != liar && u.held < min(u.want, u.bound) {
		u.held++
		claims, me := s.claims(u)
		if !SlotsFit(s.slots, claims, me, beyond) {
			u.held--
			break
		}
		s.start(u)
	}
}

// start starts a job, whose slots stay claimed for the next one if the user may still use them.
func (s *simHost) start(u *simUser) {
	s.after(s.random(u.jobs), func() {
		if u.held <= min(u.want, u.bound) || u.kind == keeper {
			s.start(u)
		} else {
			u.held--
		}
	})
}

func drawUser(rng *rand.Rand, kind behavior) *simUser {
	return &simUser{kind: kind, want: 20, jobs: time.Duration(1+rng.IntN(120)) * time.Second}
}

// TestUsersConverge checks, for random jobs and looks, that a host that one user had for itself
// serves a newcomer first, that no slot is left for long, and that in the end the usages of both are
// in proportion to their weights.
func TestUsersConverge(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 7))
		a, b := drawUser(rng, honest), drawUser(rng, honest)
		s := newSim(seed, 8, a, b)
		s.weights = map[int]int{1: 1 + rng.IntN(3)}
		w := float64(s.weights[1])
		b.gone = true
		s.run(4 * time.Hour)
		b.gone, b.slotHours, s.longest, s.idle = false, 0, 0, 0
		s.run(time.Hour / 2)
		equal := 8 * w / (w + 1)
		if first := 2 * b.slotHours; first < equal+(8-equal)/10 {
			t.Errorf("seed %d: the newcomer had %.1f slots first, want more than its %.1f", seed, first, equal)
		}
		s.run(4 * time.Hour)
		ua, ub := a.usage.Mean(0), b.usage.Mean(1)/w
		if math.Abs(ua-ub) > 0.4 || s.exceeded > 1 {
			t.Errorf("seed %d: usages by weight %.2f and %.2f, %d slots exceeded", seed, ua, ub, s.exceeded)
		}
		if s.longest > 30*time.Second {
			t.Errorf("seed %d: a slot was left for %v", seed, s.longest)
		}
	}
}

// TestSlotsAreNotLeft checks, for random users of several versions who come and go, that a slot
// that somebody wants is not left for long.
func TestSlotsAreNotLeft(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var users []*simUser
		for range 2 + rng.IntN(3) {
			u := drawUser(rng, []behavior{honest, honest, older}[rng.IntN(3)])
			users = append(users, u)
		}
		s := newSim(seed, 1+rng.IntN(12), users...)
		for _, u := range users {
			var turn func()
			turn = func() {
				u.want = rng.IntN(2) * rng.IntN(16)
				s.after(s.random(20*time.Minute), turn)
			}
			turn()
		}
		s.run(6 * time.Hour)
		if share := s.idle.Hours() / 6 / float64(s.slots); s.longest > 3*time.Minute || share > 0.01 {
			t.Errorf("seed %d: a slot was left for %v, %.1f %% in all", seed, s.longest, 100*share)
		}
	}
}

// TestFalseClaimsTakeOnlyAPart checks that users who hold slots keep them, up to their parts, when
// another one claims to hold all of them.
func TestFalseClaimsTakeOnlyAPart(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 13))
		a, b, c := drawUser(rng, older), drawUser(rng, older), drawUser(rng, liar)
		s := newSim(seed, 9, a, b, c)
		c.gone = true
		s.run(4 * time.Hour)
		c.gone, a.slotHours, b.slotHours = false, 0, 0
		s.run(10 * time.Hour)
		if a, b := a.slotHours/10, b.slotHours/10; min(a, b) < 2.9 || a+b > 6.3 {
			t.Errorf("seed %d: %.2f and %.2f slots beside a false claim, want 3 each", seed, a, b)
		}
	}
}

// TestLiesGainLittle checks what users gain who lie about their usage, beside one who had the host.
func TestLiesGainLittle(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   behavior
		first  float64 // most slots of the liar in the first two hours
		later  float64 // in the ten hours that follow
		victim float64 // fewest slots of the other in these
	}{
		{"a newcomer", honest, 6, 4.3, 3.7},
		{"without any record", cheater, 6, 5.1, 2.9},
		{"an older version", older, 4.1, 4.1, 3.8},
		{"slots that are never taken", faker, 0, 0, 3.9},
		{"slots that are never given back", keeper, 6.1, 6.1, 1.9},
	} {
		for seed := range uint64(2) {
			rng := rand.New(rand.NewPCG(seed, 11))
			a, b := drawUser(rng, honest), drawUser(rng, c.kind)
			s := newSim(seed, 8, a, b)
			b.gone = true
			s.run(4 * time.Hour)
			b.gone, b.slotHours = false, 0
			s.run(2 * time.Hour)
			first := b.slotHours / 2
			a.slotHours, b.slotHours = 0, 0
			s.run(10 * time.Hour)
			later, victim := b.slotHours/10, a.slotHours/10
			if first > c.first || later > c.later || victim < c.victim {
				t.Errorf("%s: %.2f slots first, %.2f later, and %.2f for the other; want at most %v, %v, "+
					"and at least %v", c.name, first, later, victim, c.first, c.later, c.victim)
			}
		}
	}
}
