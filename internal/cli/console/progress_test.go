package console

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

func TestProgressLine(t *testing.T) {
	s := &dispatch.Snapshot{Total: 100, Retries: 5, Rate: 8.4, ETA: 4400 * time.Millisecond,
		Hosts: []sched.HostView{{State: sched.Up, Running: 12}, {State: sched.Lost}}}
	s.Counts[jobs.Succeeded], s.Counts[jobs.Failed], s.Counts[jobs.Running], s.Counts[jobs.Queued] = 50, 2, 16, 32
	want := "[##########..........] 52/100  12 running  2 failed  5 tried again  8.4/s  ETA 4 s  1 of 2 hosts up"
	if got := Progress(s); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.More, s.Problem = true, "the disk is full"
	if got := Progress(s); !strings.HasPrefix(got, "52/100+ ") || !strings.Contains(got, "LAUNCHING NOTHING") || strings.Contains(got, "ETA") {
		t.Errorf("%s", got)
	}
	if got := Progress(&dispatch.Snapshot{Hosts: make([]sched.HostView, 1)}); got != "0/0  0 running  connecting" {
		t.Errorf("%s", got)
	}
}

// While nothing runs, nobody knows when the run will be over.
func TestNoETAWhileNothingRuns(t *testing.T) {
	s := &dispatch.Snapshot{Total: 10, ETA: time.Minute, Rate: 1, Hosts: []sched.HostView{{Name: "a"}}}
	s.Counts[jobs.Queued] = 10
	if got := Progress(s); strings.Contains(got, "ETA") {
		t.Errorf("%q", got)
	}
	s.Counts[jobs.Queued], s.Counts[jobs.Running], s.Hosts[0].Running = 9, 1, 1
	if got := Progress(s); !strings.Contains(got, "ETA") {
		t.Errorf("%q", got)
	}
}

func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{1234: "1234/s", 12.34: "12.3/s", 0.99: "1.0/s", 0.5: "30.0/min", 0.001: "3.6/h"} {
		if got := rateText(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}
