package share

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDivide(t *testing.T) {
	for _, tt := range []struct {
		name    string
		slots   int
		weights map[int]int
		claims  []Claim
		want    []int
	}{
		{"alone", 4, nil, []Claim{{User: 1, Run: "a", Want: 9}}, []int{4}},
		{"users are equal, however many runs they have", 6, nil,
			[]Claim{{User: 1, Run: "a", Want: 9}, {User: 1, Run: "b", Want: 9}, {User: 1, Run: "c", Want: 9}, {User: 2, Run: "a", Want: 9}}, []int{1, 1, 1, 3}},
		{"weights of runs count within their user", 6, nil,
			[]Claim{{User: 1, Run: "a", Want: 9, Weight: 1}, {User: 1, Run: "b", Want: 9, Weight: 2}, {User: 2, Run: "a", Want: 9, Weight: 1000}}, []int{1, 2, 3}},
		{"weights of users", 6, map[int]int{2: 2}, []Claim{{User: 1, Run: "a", Want: 9}, {User: 2, Run: "b", Want: 9}}, []int{2, 4}},
		{"what one does not want goes to the others", 6, nil,
			[]Claim{{User: 1, Run: "a", Want: 1}, {User: 2, Run: "b", Want: 9}, {User: 3, Run: "c", Want: 9}}, []int{1, 3, 2}},
		{"what is held is wanted", 4, nil, []Claim{{User: 1, Run: "a", Held: 4}, {User: 2, Run: "b", Want: 9}}, []int{2, 2}},
		{"absurd claims", 4, map[int]int{2: math.MaxInt}, []Claim{{User: 1, Run: "a", Want: 4, Weight: -1}, {User: 2, Run: "b", Want: math.MaxInt, Held: -1}}, []int{0, 4}},
	} {
		if got := Divide(tt.slots, tt.weights, tt.claims, 0.5); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Whatever the claims are, no more is given than there is, nobody gets more than it wants,
// nothing is left while somebody wants more, and the order of the claims does not matter.
// Over all offsets everybody gets its exact part.
func TestDivideIsFair(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		slots := 1 + rng.IntN(16)
		claims := make([]Claim, 1+rng.IntN(6))
		for i := range claims {
			claims[i] = Claim{User: rng.IntN(3), Run: string(rune('a' + i)), Weight: 1 + rng.IntN(3), Want: rng.IntN(12), Held: rng.IntN(4)}
		}
		offset := rng.Float64()
		got := Divide(slots, nil, claims, offset)
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
		if g := Divide(slots, nil, turned, offset); g[len(g)-1] != got[0] {
			t.Fatalf("%+v: in another order %v instead of %v", claims, g, got)
		}
	}
	claims := []Claim{{User: 1, Run: "a", Weight: 1, Want: 9}, {User: 1, Run: "b", Weight: 2, Want: 9}, {User: 2, Run: "c", Weight: 1, Want: 9}}
	var sums [3]int
	for i := range 600 {
		for k, n := range Divide(4, nil, claims, float64(i)/600) {
			sums[k] += n
		}
	}
	if sums != [3]int{400, 800, 1200} {
		t.Errorf("over 600 hosts: %v", sums)
	}
}

func TestFits(t *testing.T) {
	claims := []Claim{{User: 1, Run: "me", Held: 1}, {User: 2, Run: "other", Held: 1 << 40}}
	if Fits(4, claims, 0, false) || !Fits(4, claims, 0, true) {
		t.Error("a user may use one slot that is not there only if it has waited")
	}
	if claims[0].Held = 2; Fits(4, claims, 0, true) {
		t.Error("a user may use two slots that are not there")
	}
	if got := Bound(4, nil, claims, 0, 0); got != 0 {
		t.Errorf("%d slots may be used while others hold all", got)
	}
	if claims[1].Held = 3; Bound(4, nil, claims, 0, 0) != 1 {
		t.Error("what others still hold is given out")
	}
}
