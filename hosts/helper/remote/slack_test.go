//go:build linux

package remote

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// A job has the kernel's default timer slack, whatever its supervisor has.
func TestTimerSlack(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.launch(job("1.1", "cat /proc/self/timerslack_ns"))
	f.exit("1.1")
	got, want := strings.TrimSpace(w.content("1.1", jobs.FileOut)), fmt.Sprint(jobSlack.Nanoseconds())
	if got != want {
		t.Errorf("the timer slack of a job is %s ns, want %s", got, want)
	}
	f.bye()
}
