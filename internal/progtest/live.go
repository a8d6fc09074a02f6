package progtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
)

// AwaitRunning waits until the dispatcher of the run in dir has run for another d. The time is the
// dispatcher's own, in live.json: however slow the machine is, the dispatcher has had this time to
// do what it must not do.
func AwaitRunning(t testing.TB, dir string, d time.Duration) {
	t.Helper()
	now := func() (at time.Time) {
		b, _ := os.ReadFile(filepath.Join(dir, "live.json"))
		var state struct{ At time.Time }
		if json.Unmarshal(b, &state) == nil {
			at = state.At
		}
		return at
	}
	var began time.Time
	polltest.Until(t, "the dispatcher has published its state for "+d.String(), func() bool {
		at := now()
		if began.IsZero() {
			began = at
		}
		return !began.IsZero() && at.Sub(began) >= d
	})
}
