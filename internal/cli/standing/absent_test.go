package standing

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The last line names hosts and short reasons; the whole messages stand above it.
func TestNoHostsText(t *testing.T) {
	long := "ws01: the host key of ws01 is not known: ssh-ed25519 SHA256:abc (connect once by hand; or use --accept-new)"
	hs := []sched.HostView{{Name: "ws01", Reason: long}, {Name: "ws02", Reason: "ws02: 10.0.0.2:22 refuses connections: connection refused"},
		{Name: "ws03", Reason: strings.ReplaceAll(long, "ws01", "ws03")}, {Name: "ws04", Reason: long}, {Name: "ws05", Reason: long}}
	want := "no host could be used: ws01 (the host key of ws01 is not known), ws02 (10.0.0.2:22 refuses connections), " +
		"ws03 (the host key of ws03 is not known), 2 more; see above"
	if got := NoHosts(hs); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := NoHosts(nil); got != "there is no host" {
		t.Errorf("%q", got)
	}
}

// resume names the attempts that nobody can be asked about, and how long they hold
// their jobs.
func TestAbsentHosts(t *testing.T) {
	table := &jobs.Table{}
	attempt := func(id jobs.ID, host string, st jobs.AttemptState) {
		a := &jobs.Attempt{ID: jobs.AttemptID{Job: id, N: 1}, Host: host, State: st}
		table.Jobs = append(table.Jobs, jobs.Job{State: jobs.Running, Attempts: []*jobs.Attempt{a}})
	}
	attempt(1, "here", jobs.AttemptRunning)
	attempt(2, "gone", jobs.AttemptRunning)
	attempt(3, "gone", jobs.AttemptRunning)
	attempt(4, "away", jobs.AttemptLaunching)
	got := Absent(table, []*hosts.Host{{Name: "here"}}, time.Hour)
	if len(got) != 2 || !strings.HasPrefix(got[0], "away is not in the inventory, attempt 4.1 may still run there: unless the run directory shows how it ends, or that the host goes on, it is given up and its job runs again elsewhere in 1h 00m;") ||
		!strings.HasPrefix(got[1], "gone is not in the inventory, attempts 2.1, 3.1 may still run there: unless the run directory shows how they end, or that the host goes on, they are given up and their jobs run again elsewhere in 1m 00s;") {
		t.Errorf("%q", got)
	}
}
