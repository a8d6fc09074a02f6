package heap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type number int

func (n number) Before(o number) bool { return n < o }

// TestElementsLeaveInOrder checks that elements leave a heap in order, however they were added.
func TestElementsLeaveInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for size := range 100 {
		var h Heap[number]
		var want, got []number
		for range size {
			x := number(r.IntN(50))
			h.Push(x)
			if want = append(want, x); r.IntN(4) == 0 {
				got = append(got, h.Pop())
				i := slices.Index(want, slices.Min(want))
				if got[len(got)-1] != want[i] {
					t.Fatalf("got %d, want %d", got[len(got)-1], want[i])
				}
				want = slices.Delete(want, i, i+1)
			}
		}
		slices.Sort(want)
		for _, x := range want {
			if first := h.Pop(); first != x {
				t.Fatalf("got %d, want %d", first, x)
			}
		}
		if len(h) != 0 {
			t.Fatalf("%d elements are left", len(h))
		}
	}
}
