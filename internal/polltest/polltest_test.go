package polltest

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestConditionIsNoticedSoon checks that a condition that holds at once costs no time, that one
// that holds soon is noticed soon, that one that holds at the last check counts, and that one that
// never holds costs exactly the limit. Slow checks take at most half of the time.
func TestConditionIsNoticedSoon(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		check time.Duration // how long a check takes
		after time.Duration // when the condition starts to hold
		holds bool
		at    time.Duration // when Within must return
	}{
		{"at once", 0, 0, true, 0},
		{"soon", 0, 2 * ms, true, 3 * ms},
		{"later", 0, 500 * ms, true, 511 * ms},
		{"at the end", 0, 1000 * ms, true, 1000 * ms},
		{"too late", 0, 1001 * ms, false, 1000 * ms},
		{"slow checks", 100 * ms, 500 * ms, true, 500 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				holds := Within(1000*ms, func() bool {
					time.Sleep(c.check) // virtual time
					return time.Since(begin) >= c.after
				})
				if at := time.Since(begin); holds != c.holds || at != c.at {
					t.Errorf("Within returned %v after %v, want %v after %v", holds, at, c.holds, c.at)
				}
			})
		})
	}
}
