package polltest

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestConditionIsNoticedSoon checks that a condition that holds at once costs no time, that one
// that holds soon is noticed soon, that one that holds at the last check counts, and that one that
// never holds costs exactly the limit.
func TestConditionIsNoticedSoon(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		after time.Duration // when the condition starts to hold
		holds bool
		at    time.Duration // when Within must return
	}{
		{"at once", 0, true, 0},
		{"soon", 2 * ms, true, 3 * ms},
		{"later", 500 * ms, true, 511 * ms},
		{"at the end", 1000 * ms, true, 1000 * ms},
		{"too late", 1001 * ms, false, 1000 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				holds := Within(1000*ms, func() bool { return time.Since(begin) >= c.after })
				if at := time.Since(begin); holds != c.holds || at != c.at {
					t.Errorf("%v after %v", holds, at)
				}
			})
		})
	}
}
