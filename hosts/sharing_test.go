package hosts

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSlotsAreDivided checks that slots are divided by the weights of users, then by those of the
// runs of each user, and that others get what one does not want.
func TestSlotsAreDivided(t *testing.T) {
	for _, tt := range []struct {
		name    string
		slots   int
		weights map[int]int
		claims  []SlotClaim
		want    []int
	}{
		{"alone", 4, nil, []SlotClaim{{User: 1, Run: "a", Want: 9}}, []int{4}},
		{"users are equal, however many runs they have", 6, nil,
			[]SlotClaim{{User: 1, Run: "a", Want: 9}, {User: 1, Run: "b", Want: 9}, {User: 1, Run: "c", Want: 9},
				{User: 2, Run: "a", Want: 9}}, []int{1, 1, 1, 3}},
		{"weights of runs count within their user", 6, nil,
			[]SlotClaim{{User: 1, Run: "a", Want: 9, Weight: 1}, {User: 1, Run: "b", Want: 9, Weight: 2},
				{User: 2, Run: "a", Want: 9, Weight: 1000}}, []int{1, 2, 3}},
		{"weights of users", 6, map[int]int{2: 2},
			[]SlotClaim{{User: 1, Run: "a", Want: 9}, {User: 2, Run: "b", Want: 9}}, []int{2, 4}},
		{"what one does not want goes to the others", 6, nil,
			[]SlotClaim{{User: 1, Run: "a", Want: 1}, {User: 2, Run: "b", Want: 9},
				{User: 3, Run: "c", Want: 9}}, []int{1, 3, 2}},
		{"what is held is wanted", 4, nil, []SlotClaim{{User: 1, Run: "a", Held: 4}, {User: 2, Run: "b", Want: 9}},
			[]int{2, 2}},
		{"absurd claims", 4, map[int]int{2: math.MaxInt}, []SlotClaim{{User: 1, Run: "a", Want: 4, Weight: -1},
			{User: 2, Run: "b", Want: math.MaxInt, Held: -1}}, []int{0, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := DivideSlots(tt.slots, tt.weights, tt.claims, 0.5); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		})
	}
}

// TestDivisionIsFair checks the division of slots for random claims. No more slots are given than
// exist, nobody gets more than it wants, nothing is left while somebody wants more, and the order
// of the claims does not matter. Over all offsets, every claim gets its exact share.
func TestDivisionIsFair(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		slots := 1 + rng.IntN(16)
		claims := make([]SlotClaim, 1+rng.IntN(6))
		for i := range claims {
			claims[i] = SlotClaim{User: rng.IntN(3), Run: string(rune('a' + i)), Weight: 1 + rng.IntN(3),
				Want: rng.IntN(12), Held: rng.IntN(4)}
		}
		offset := rng.Float64()
		got := DivideSlots(slots, nil, claims, offset)
		sum, wanted := 0, 0
		for i, n := range got {
			d := int(claims[i].demand(slots))
			if n < 0 || n > d {
				t.Fatalf("%+v of %d slots: %v", claims, slots, got)
			}
			sum, wanted = sum+n, wanted+d
		}
		if full := min(slots, wanted); sum > slots || sum < full-1 || wanted <= slots && sum != wanted {
			t.Fatalf("%+v of %d slots: %v", claims, slots, got)
		}
		turned := append(slices.Clone(claims[1:]), claims[0])
		if g := DivideSlots(slots, nil, turned, offset); g[len(g)-1] != got[0] {
			t.Fatalf("%+v: in another order %v instead of %v", claims, g, got)
		}
	}
	many := []SlotClaim{{User: 2, Run: "0", Want: 4089, Held: 2402}, {User: 2, Run: "1", Want: 2639, Held: 2098},
		{User: 3, Want: 3040, Held: 290}, {User: 0, Want: 4313, Held: 940}}
	got := DivideSlots(2719, map[int]int{0: 1841, 3: 206}, many, 0) // the last part ends at a whole number
	if want := []int{1, 1, 465, 2252}; !slices.Equal(got, want) {
		t.Errorf("many slots: %v, want %v", got, want)
	}
	claims := []SlotClaim{{User: 1, Run: "a", Weight: 1, Want: 9}, {User: 1, Run: "b", Weight: 2, Want: 9},
		{User: 2, Run: "c", Weight: 1, Want: 9}}
	var sums [3]int
	for i := range 600 {
		for k, n := range DivideSlots(4, nil, claims, float64(i)/600) {
			sums[k] += n
		}
	}
	if sums != [3]int{400, 800, 1200} {
		t.Errorf("over 600 hosts: %v", sums)
	}
}

// TestWhoDividesFewerSlotsFindsSome checks that runs with different inventories divide the slots of the
// largest, less the load of others that each of them respects, whoever has that inventory.
func TestWhoDividesFewerSlotsFindsSome(t *testing.T) {
	claim := func(user, slots, held int) SlotClaim {
		return SlotClaim{User: user, Run: string(rune('a' + slots)), Weight: 1, Slots: slots, Want: slots, Held: held}
	}
	for name, tt := range map[string]struct {
		own    Share
		claims []SlotClaim // the first one is that of own
		want   int
		bound  int
	}{
		"alone":                    {Share{Rule: 4, Slots: 4}, []SlotClaim{claim(1, 4, 0)}, 4, 4},
		"equal":                    {Share{Rule: 4, Slots: 4}, []SlotClaim{claim(1, 4, 0), claim(2, 4, 2)}, 4, 2},
		"fewer than another user":  {Share{Rule: 4, Slots: 4}, []SlotClaim{claim(1, 4, 0), claim(2, 8, 4)}, 8, 4},
		"more than another user":   {Share{Rule: 8, Slots: 8}, []SlotClaim{claim(1, 8, 0), claim(2, 4, 4)}, 8, 4},
		"fewer than an own run":    {Share{Rule: 1, Slots: 1}, []SlotClaim{claim(1, 1, 0), claim(1, 2, 1)}, 2, 1},
		"an own run holds all":     {Share{Rule: 1, Slots: 1}, []SlotClaim{claim(1, 1, 0), claim(1, 2, 2)}, 2, 0},
		"an own run has many":      {Share{Rule: 1, Slots: 1}, []SlotClaim{claim(1, 1, 0), claim(1, 64, 63)}, 64, 1},
		"another user has many":    {Share{Rule: 1, Slots: 1}, []SlotClaim{claim(1, 1, 0), claim(2, 9, 8)}, 9, 1},
		"load of others counts":    {Share{Rule: 8, Slots: 6}, []SlotClaim{claim(1, 8, 0), claim(2, 8, 4)}, 6, 2},
		"a claim without a number": {Share{Rule: 4, Slots: 4}, []SlotClaim{claim(1, 4, 0), {User: 2, Held: 3}}, 4, 1},
		"a forged claim": {
			Share{Rule: 4, Slots: 4},
			[]SlotClaim{claim(1, 4, 0), claim(2, 4096, 9)},
			4096,
			4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := SharedSlots(tt.own, tt.claims)
			if bound := SlotBound(got, nil, tt.claims, 0, 0); got != tt.want || bound != tt.bound {
				t.Errorf("%d slots are divided and %d may be used, want %d and %d", got, bound, tt.want, tt.bound)
			}
		})
	}
}

// TestUsersShareAsRunsOfOneUser checks that two runs whose inventories give a host different numbers of
// slots come to hold their parts of the larger number as jobs end, and the same parts whether they
// belong to one user or to two.
func TestUsersShareAsRunsOfOneUser(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		slots := [2]int{1 + rng.IntN(32), 1 + rng.IntN(32)}
		first, seed := rng.IntN(2), rng.Uint64()
		var ends [2][2]int
		for users := range 2 {
			ends[users] = holdParts(rand.New(rand.NewPCG(seed, 0)), slots, first, users == 1)
		}
		low, all := min(slots[0], slots[1]), max(slots[0], slots[1])
		want := [2]int{min(slots[0], max(all/2, all-low)), min(slots[1], max(all-all/2, all-low))}
		if ends[0] != want || ends[1] != want {
			t.Errorf("slots %v: runs of one user end with %v, of two with %v; want %v", slots, ends[0], ends[1], want)
		}
	}
}

// holdParts returns how many slots two runs hold in the end, which look in turns and end a job before
// each look. The first one has all its slots at the beginning.
func holdParts(rng *rand.Rand, slots [2]int, first int, areTwoUsers bool) [2]int {
	claims := []SlotClaim{{User: 1, Run: "a"}, {User: 1, Run: "b"}}
	if areTwoUsers {
		claims[1].User = 2
	}
	for i := range claims {
		claims[i].Slots, claims[i].Want, claims[i].Weight = slots[i], slots[i], 1
	}
	claims[first].Held = slots[first]
	var kept [2]KeptSlots
	for range 400 {
		me := rng.IntN(2)
		claims[me].Held = max(0, claims[me].Held-1)
		all := SharedSlots(Share{Rule: slots[me], Slots: slots[me]}, claims)
		beyond := kept[me].Mark(all, nil, claims, me, 0)
		bound := min(max(SlotBound(all, nil, claims, me, 0), beyond), slots[me])
		for claims[me].Held < bound {
			claims[me].Held++
			if !SlotsFit(all, claims, me, beyond) {
				claims[me].Held--
				break
			}
		}
	}
	return [2]int{claims[0].Held, claims[1].Held}
}

// TestSlotsThatOthersHoldAreNotUsed checks that a user who has waited may use one slot although
// others hold all of them, and no more.
func TestSlotsThatOthersHoldAreNotUsed(t *testing.T) {
	claims := []SlotClaim{{User: 1, Run: "me", Held: 1}, {User: 2, Run: "other", Held: 1 << 40}}
	if SlotsFit(4, claims, 0, 0) || !SlotsFit(4, claims, 0, 1) {
		t.Error("a user may use one slot that is not there only if it has waited")
	}
	if claims[0].Held = 2; SlotsFit(4, claims, 0, 1) {
		t.Error("a user may use two slots that are not there")
	}
	runs := []SlotClaim{{User: 1, Run: "me", Held: 1}, {User: 1, Run: "mine", Held: 4}}
	if SlotsFit(4, runs, 0, 0) || !SlotsFit(4, runs, 0, 1) {
		t.Error("a run may use one slot beside another run of its user only if it has waited")
	}
	if runs = append(runs, SlotClaim{User: 1, Run: "third", Held: 1}); SlotsFit(4, runs, 0, 1) {
		t.Error("the runs of a user may use two slots that are not there")
	}
	if got := SlotBound(4, nil, claims, 0, 0); got != 0 {
		t.Errorf("%d slots may be used while others hold all", got)
	}
	if claims[1].Held = 3; SlotBound(4, nil, claims, 0, 0) != 1 {
		t.Error("what others still hold is given out")
	}
}

// TestHeldSlotsAreKept checks what a run keeps, and may take again, of what it held when more slots are
// claimed than there are: at most its part without usage.
func TestHeldSlotsAreKept(t *testing.T) {
	claim := func(user, held int) SlotClaim { return SlotClaim{User: user, Run: "r", Want: 8, Held: held} }
	heavy, light, declined := claim(1, 5), claim(1, 2), claim(2, 8)
	heavy.Used, light.Want, declined.Declined = 8, 2, true
	for name, c := range map[string]struct {
		claims []SlotClaim
		before int // slots that it held when they last fitted
		want   int
	}{
		"all fit":                     {[]SlotClaim{claim(1, 3), claim(2, 5)}, 7, 0},
		"a false claim":               {[]SlotClaim{claim(1, 4), claim(2, 9)}, 0, 4},
		"one that is believable":      {[]SlotClaim{claim(1, 4), claim(2, 5)}, 0, 4},
		"more than the part":          {[]SlotClaim{claim(1, 6), claim(2, 9)}, 0, 4},
		"a slot was released":         {[]SlotClaim{claim(1, 2), claim(2, 9)}, 3, 3},
		"and more than the part":      {[]SlotClaim{claim(1, 2), claim(2, 9)}, 8, 4},
		"a newcomer":                  {[]SlotClaim{claim(1, 0), claim(2, 9)}, 0, 0},
		"only what is wanted":         {[]SlotClaim{light, claim(2, 9)}, 6, 2},
		"less, by usage":              {[]SlotClaim{heavy, claim(2, 4)}, 5, 3},
		"not more, by usage":          {[]SlotClaim{claim(1, 5), {User: 2, Want: 8, Held: 4, Used: 8}}, 5, 4},
		"not more than without usage": {[]SlotClaim{claim(1, 5), declined}, 5, 4},
		"another run of ours": {[]SlotClaim{claim(1, 2), {User: 1, Run: "s", Want: 8, Held: 2},
			claim(2, 9)}, 2, 2},
		"a negative number": {[]SlotClaim{claim(1, -3), claim(2, 9)}, 0, 0},
	} {
		var k KeptSlots
		fitting := []SlotClaim{claim(1, c.before)}
		k.Mark(8, nil, fitting, 0, 0)
		for range 2 {
			if n := k.Mark(8, nil, c.claims, 0, 0); n != c.want {
				t.Errorf("%s: %d slots are kept, want %d", name, n, c.want)
			}
		}
	}
	var k KeptSlots
	k.Mark(8, nil, []SlotClaim{claim(1, 4), claim(2, 4)}, 0, 0)
	k.Mark(8, nil, []SlotClaim{light, claim(2, 9)}, 0, 0)
	if n := k.Mark(8, nil, []SlotClaim{claim(1, 0), claim(2, 9)}, 0, 0); n != 2 {
		t.Errorf("%d slots are kept for a run that wanted two meanwhile", n)
	}
	claims := []SlotClaim{claim(1, 3), claim(2, 9)}
	if !SlotsFit(8, claims, 0, 3) || SlotsFit(8, claims, 0, 2) {
		t.Error("a run may take again what it keeps, and no more")
	}
}

// TestMemoryOfOthersCountsUpToTheirShare checks that memory of other users counts in full up to the
// equal share of each user, and that memory of the user's own other runs counts in full.
func TestMemoryOfOthersCountsUpToTheirShare(t *testing.T) {
	const me = 0
	claim := func(user int, memory int64) SlotClaim { return SlotClaim{User: user, Memory: memory} }
	for name, c := range map[string]struct {
		claims []SlotClaim
		want   int64
	}{
		"alone":                    {[]SlotClaim{claim(1, 70)}, 0},
		"another run of mine":      {[]SlotClaim{claim(1, 70), claim(1, 80)}, 80},
		"another user":             {[]SlotClaim{claim(1, 0), claim(2, 30)}, 30},
		"another user has much":    {[]SlotClaim{claim(1, 0), claim(2, 90)}, 50},
		"in several runs":          {[]SlotClaim{claim(1, 0), claim(2, 30), claim(2, 30)}, 50},
		"two other users":          {[]SlotClaim{claim(1, 0), claim(2, 90), claim(3, 10)}, 43},
		"impossible numbers":       {[]SlotClaim{claim(1, 0), claim(2, 1<<62), claim(2, 1<<62), claim(1, -5)}, 50},
		"never more than there is": {[]SlotClaim{claim(1, 0), claim(1, 90), claim(2, 90)}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := HeldMemory(100, c.claims, me); got != c.want {
				t.Errorf("others hold %d, want %d", got, c.want)
			}
		})
	}
}
