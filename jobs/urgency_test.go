package jobs

import (
	"cmp"
	"math"
	"testing"
	"time"
)

// TestUrgencyIsOneOrder checks that ready jobs start in the promised order, and that keys, by which
// the screen sorts, are in the same order: jobs of lost hosts first, then by priority, jobs that
// failed before others, and by deadline.
func TestUrgencyIsOneOrder(t *testing.T) {
	at := func(year int) int64 { return time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC).UnixNano() }
	ordered := []Urgency{
		{IsUrgent: true, Priority: math.MaxInt32, Deadline: math.MaxInt64},
		{Priority: math.MinInt32, Deadline: math.MaxInt64},
		{Priority: -1, HasFailed: true, Deadline: math.MaxInt64},
		{Priority: -1, Deadline: at(2000)},
		{Priority: -1, Deadline: at(2030)},
		{Priority: -1, Deadline: at(2031)},
		{Priority: -1, Deadline: at(2100)},
		{Priority: -1, Deadline: math.MaxInt64},
		{Priority: 0, HasFailed: true, Deadline: at(2030)},
		{Priority: 0, HasFailed: true, Deadline: math.MaxInt64},
		{Priority: 0, Deadline: at(2026)},
		{Priority: math.MaxInt32, Deadline: math.MaxInt64},
	}
	for i, a := range ordered {
		for k, b := range ordered {
			if got := a.Compare(b); got != cmp.Compare(i, k) {
				t.Errorf("%+v compared with %+v: got %d", a, b, got)
			}
			if got := cmp.Compare(a.Key(), b.Key()); got != cmp.Compare(i, k) {
				t.Errorf("the key of %+v compared with that of %+v: got %d", a, b, got)
			}
		}
		if a.Key() >= 1<<59 {
			t.Errorf("%+v: the key %x has more than 59 bits", a, a.Key())
		}
	}
}
