// Package polltest waits in tests for conditions that send no event: a file that another process
// writes, a process that is not our child, the far end of a socket. For the goroutines of a test
// itself, use channels or a bubble of testing/synctest. It also has what most tests need: Must,
// Long, and Scale. The package is for tests only.
package polltest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The pause between two checks grows and is at least as long as a check. A condition that holds
// soon is noticed soon, and one that takes long costs little, even if each check starts a process.
const (
	firstPause = time.Millisecond
	maxPause   = 20 * time.Millisecond
)

// Patience is how long tests wait for what happens within seconds on an idle machine. It only ends
// tests that would wait forever: a busy machine can be ten times slower.
const Patience = 10 * time.Minute

// Within checks ok repeatedly and reports whether it returned true within limit. It checks once
// more at the end of limit.
func Within(limit time.Duration, ok func() bool) bool {
	pause := firstPause
	for end := time.Now().Add(limit); ; pause = min(2*pause, maxPause) {
		began := time.Now()
		if ok() {
			return true
		}
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		time.Sleep(min(max(pause, time.Since(began)), left)) // no event announces a change
	}
}

// Until waits until ok returns true and fails the test after Patience. what describes what was
// awaited; more returns additional text for the failure.
func Until(t testing.TB, what string, ok func() bool, more ...func() string) {
	t.Helper()
	if Within(Patience, ok) {
		return
	}
	text := ""
	for _, m := range more {
		text += "\n" + m()
	}
	t.Fatalf("%v passed without: %s%s", Patience, what, text)
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// RunWithoutLeaks runs the tests of a package and returns the exit code of TestMain: not 0 if a test
// failed, or if goroutines are left that do not end within a minute. goleak itself waits less than
// half a second, which is too short for a goroutine that waits for a process on a busy machine.
func RunWithoutLeaks(m *testing.M) (code int) {
	code = m.Run()
	if code != 0 {
		return code
	}
	var left error
	if !Within(time.Minute, func() bool { left = goleak.Find(); return left == nil }) {
		fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", left)
		return 1
	}
	return 0
}

// Long skips a test that takes several seconds of CPU time in `make test`. `make test LONG=1`, and
// therefore CI, runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make test LONG=1 runs it")
	}
}

// Scale returns a size or a duration of a test: short in `make test`, usual in `make test LONG=1`,
// and therefore CI, and complete with DCS_LONG=1 as well.
func Scale[T any](short, usual, complete T) T {
	switch {
	case testing.Short():
		return short
	case os.Getenv("DCS_LONG") == "1":
		return complete
	}
	return usual
}
