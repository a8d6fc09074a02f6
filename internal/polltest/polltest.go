// Package polltest waits, in tests, for what sends no event: a file that another process
// writes, processes that are not our children, the far end of a socket. What goroutines
// of a test do by themselves is awaited with channels, or in a bubble of
// testing/synctest. It is for tests only.
package polltest

import (
	"testing"
	"time"
)

// The pause between two looks grows, so that what is there in a moment is seen at once,
// and what takes long costs little.
const (
	firstPause = time.Millisecond
	maxPause   = 20 * time.Millisecond
)

// Within looks until ok holds and reports whether it did so within limit. It looks once
// more when the time is over.
func Within(limit time.Duration, ok func() bool) bool {
	pause := firstPause
	for end := time.Now().Add(limit); !ok(); pause = min(2*pause, maxPause) {
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		time.Sleep(min(pause, left)) // on real time: nothing tells that the world has changed
	}
	return true
}

// Until is Within for what must come to hold: the test fails when it does not. what
// says what was waited for, more what else there is to say then.
func Until(t testing.TB, limit time.Duration, what string, ok func() bool, more ...func() string) {
	t.Helper()
	if Within(limit, ok) {
		return
	}
	text := ""
	for _, m := range more {
		text += "\n" + m()
	}
	t.Fatalf("%v passed without: %s%s", limit, what, text)
}

// Long leaves a test of more than some ten seconds out of `make test`. `make test LONG=1`,
// and so CI, runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make test LONG=1 runs it")
	}
}
