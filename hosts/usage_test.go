package hosts

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestUsageDecays checks how the mean of a user follows the slots that the user holds, in looks at
// any intervals, and that what nobody looked at is not charged.
func TestUsageDecays(t *testing.T) {
	const alice, bob = 1, 2
	hold := func(n int) []SlotClaim { return []SlotClaim{{User: alice, Run: "a", Held: n}} }
	look := func(u *SlotUsage, until, every time.Duration, held int) {
		for u.At < until {
			u.Observe(u.At+every, time.Hour, 8, alice, hold(held))
		}
	}
	for _, c := range []struct {
		name string
		do   func(*SlotUsage)
		want float64
	}{
		{"nothing", func(*SlotUsage) {}, 0},
		{"one half-life", func(u *SlotUsage) { look(u, time.Hour, 10*time.Second, 4) }, 2},
		{"two half-lives", func(u *SlotUsage) { look(u, 2*time.Hour, 20*time.Second, 4) }, 3},
		{"long", func(u *SlotUsage) { look(u, 20*time.Hour, 10*time.Second, 4) }, 4},
		{"long ago", func(u *SlotUsage) {
			look(u, 20*time.Hour, 10*time.Second, 8)
			u.Observe(u.At+time.Hour, time.Hour, 8, alice, hold(8)) // a gap is not charged, but decays
		}, 4},
		{"more than the host has", func(u *SlotUsage) { look(u, 40*time.Hour, 10*time.Second, 1<<40) }, 9},
		{"a clock that went back", func(u *SlotUsage) {
			look(u, 20*time.Hour, 10*time.Second, 8)
			u.Observe(time.Minute, time.Hour, 8, alice, hold(8))
		}, 0},
		{"many users", func(u *SlotUsage) {
			look(u, 2*time.Hour, 10*time.Second, 1)
			for i := range 10 {
				many := hold(1)
				for k := range 100 {
					many = append(many, SlotClaim{User: 100 + 100*i + k, Held: 9})
				}
				for range 100 {
					u.Observe(u.At+10*time.Second, time.Hour, 8, alice, many)
				}
			}
			if len(u.Users) != maxUsers {
				t.Errorf("%d users are kept, want %d", len(u.Users), maxUsers)
			}
		}, 0.96},
	} {
		var u SlotUsage
		u.Observe(time.Second, time.Hour, 8, alice, nil)
		u.At = 0
		if c.do(&u); math.Abs(u.Mean(alice)-c.want) > 0.02 || u.Mean(bob) != 0 {
			t.Errorf("%s: usage %v and %v, want %v and 0", c.name, u.Mean(alice), u.Mean(bob), c.want)
		}
	}
}

// TestClaimedUsageCountsAgainstItsUser checks that what a user claims to have used counts only if it
// is more than what was seen, and never for our own user.
func TestClaimedUsageCountsAgainstItsUser(t *testing.T) {
	u := SlotUsage{Users: []UserUsage{{1, 3}, {2, 4}}}
	claims := []SlotClaim{{User: 1, Used: 8}, {User: 2, Used: 1}, {User: 3, Used: 2}, {User: 2, Used: 5}}
	u.SetUsed(1, claims)
	var got []float64
	for _, c := range claims {
		got = append(got, c.Used)
	}
	if want := []float64{3, 4, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("usages %v, want %v", got, want)
	}
}

// TestUsageIsDivided checks the parts of users with different usages.
func TestUsageIsDivided(t *testing.T) {
	claim := func(user, held int, used float64) SlotClaim {
		return SlotClaim{User: user, Run: "r", Want: 8, Held: held, Used: used}
	}
	declined := claim(2, 5, 0)
	declined.Declined = true
	little := claim(2, 0, 0)
	little.Want = 2
	for _, c := range []struct {
		name    string
		weights map[int]int
		claims  []SlotClaim
		want    []int
	}{
		{"equal", nil, []SlotClaim{claim(1, 4, 3), claim(2, 4, 3)}, []int{4, 4}},
		{"alone", nil, []SlotClaim{claim(1, 8, 8)}, []int{8}},
		{"a newcomer gets its equal part first", nil, []SlotClaim{claim(1, 8, 8), claim(2, 0, 0)}, []int{4, 4}},
		{"and then one slot more than it holds", nil, []SlotClaim{claim(1, 4, 8), claim(2, 4, 0)}, []int{3, 5}},
		{"not less than half the equal part", nil, []SlotClaim{claim(1, 2, 8), claim(2, 6, 0)}, []int{2, 6}},
		{"sums are equal", nil, []SlotClaim{claim(1, 3, 5), claim(2, 5, 3)}, []int{3, 5}},
		{"a slot that was declined", nil, []SlotClaim{claim(1, 3, 8), declined}, []int{3, 5}},
		{"one who wants little", nil, []SlotClaim{claim(1, 8, 8), little}, []int{6, 2}},
		{"weights", map[int]int{2: 3}, []SlotClaim{claim(1, 2, 2), claim(2, 6, 6)}, []int{2, 6}},
		{"absurd", nil, []SlotClaim{claim(1, 4, 1e300), claim(2, 4, 0)}, []int{3, 5}},
	} {
		if got := DivideSlots(8, c.weights, c.claims, 0); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestSlotsAreOfferedAgain checks when a user counts as one who has declined a slot: if one was free for
// 30 s that it wanted and we could use, and for ten minutes.
func TestSlotsAreOfferedAgain(t *testing.T) {
	type look struct {
		at         int // seconds
		ours, held int // slots held by us and by the other user
		satisfied  bool
	}
	for name, c := range map[string]struct {
		looks []look
		want  bool
	}{
		"soon":             {[]look{{10, 3, 4, false}, {20, 3, 4, false}, {39, 3, 4, false}}, false},
		"after 30 s":       {[]look{{10, 3, 4, false}, {20, 3, 4, false}, {40, 3, 4, false}}, true},
		"it takes some":    {[]look{{10, 2, 4, false}, {30, 2, 5, false}, {50, 2, 5, false}}, false},
		"none is free":     {[]look{{10, 3, 4, false}, {30, 4, 4, false}, {50, 3, 4, false}}, false},
		"it wants no more": {[]look{{10, 3, 5, true}, {50, 3, 5, true}}, false},
		"we want no more":  {[]look{{10, 6, 1, false}, {50, 6, 1, false}}, false},
		"it goes on":       {[]look{{10, 3, 4, false}, {40, 3, 4, false}, {639, 4, 4, false}}, true},
		"it ends":          {[]look{{10, 3, 4, false}, {40, 3, 4, false}, {640, 4, 4, false}}, false},
	} {
		var o SlotOffers
		var claims []SlotClaim
		for _, l := range c.looks {
			claims = []SlotClaim{{User: 1, Want: 6, Held: l.ours}, {User: 2, Want: 8, Held: l.held},
				{User: 2, Run: "b", Want: 1}}
			if l.satisfied {
				claims[1].Want, claims[2].Want = l.held, 0
			}
			o.Mark(time.Duration(l.at)*time.Second, 8, claims, 0)
		}
		if claims[0].Declined || claims[1].Declined != c.want || claims[2].Declined != c.want {
			t.Errorf("%s: %+v, want that the other user has declined: %v", name, claims, c.want)
		}
	}
}

// TestViewsLeaveNoSlot checks the argument of docs/reference/host-files.md for random views: if
// each user knows its own usage, and the others know of no less, the parts that users compute for
// themselves add up to all slots, but for rounding. It checks, too, that a user keeps half of its
// part without usage, and that a user who holds no more than its part costs others no slot.
func TestViewsLeaveNoSlot(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		const slots = 12
		claims := make([]SlotClaim, 2+rng.IntN(4))
		users := make([][]int, len(claims))
		for i := range claims {
			claims[i] = SlotClaim{User: i, Want: rng.IntN(20), Held: rng.IntN(8), Used: 12 * rng.Float64()}
			users[i] = []int{i}
		}
		without := slices.Clone(claims)
		for i := range without {
			without[i].Used = 0
		}
		equal := divideAmongUsers(slots, nil, without, users)
		sum, wanted := 0.0, 0.0
		for i := range claims {
			view := slices.Clone(claims)
			taken := 0.0
			for k := range view {
				if k != i {
					view[k].Used += 5 * rng.Float64() * float64(rng.IntN(2))
					view[k].Declined = rng.IntN(3) == 0
					taken += max(equal[k].part, min(claims[k].demand(slots), float64(claims[k].Held+1)))
				}
			}
			part := divideAmongUsers(slots, nil, view, users)[i].part
			sum, wanted = sum+part, wanted+claims[i].demand(slots)
			if least := max(equal[i].part/2, min(equal[i].part, slots-taken)); part < least-1e-9 {
				t.Fatalf("%+v: user %d gets %v, want at least %v", view, i, part, least)
			}
		}
		if sum < min(slots, wanted)-1e-9 {
			t.Fatalf("%+v: %v slots of %v are given to somebody", claims, sum, min(slots, wanted))
		}
	}
}
