package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// table returns jobs with the given attempts. Each is "HOST STATE", or "HOST STATE never" for an
// attempt that is not known to have started.
func table(t *testing.T, list ...[]string) *jobs.Table {
	t.Helper()
	table := &jobs.Table{}
	for i, attempts := range list {
		j := jobs.Job{Spec: &jobs.Spec{ID: jobs.ID(i + 1)}}
		for n, text := range attempts {
			w := strings.Fields(text)
			a := &jobs.Attempt{ID: jobs.AttemptID{Job: jobs.ID(i + 1), N: n + 1}, Host: w[0]}
			must(t, a.State.UnmarshalText([]byte(w[1])))
			if len(w) == 2 {
				a.Started = 5
			}
			if a.State == jobs.AttemptExited {
				a.Outcome = &jobs.Outcome{}
			}
			j.Attempts = append(j.Attempts, a)
		}
		table.Jobs = append(table.Jobs, j)
	}
	return table
}

// TestWhatIsFetchedFromWhere checks what a fetch copies from which host (X2). far and gone keep
// their files, and ws shares the run directory.
func TestWhatIsFetchedFromWhere(t *testing.T) {
	all := [][]string{
		{"far exited"},                  // 1
		{"far lost", "gone exited"},     // 2
		{"ws exited"},                   // 3
		{"far running"},                 // 4
		{"far launching never"},         // 5
		{"far superseded never"},        // 6: withdrawn
		{"gone canceled"},               // 7
		{"far exited never"},            // 8: its start was not reported
		{"ws lost never", "ws exited"},  // 9
		{"gone exited", "far canceled"}, // 10
	}
	every := []jobs.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		name    string
		ids     []jobs.ID
		fetched string // must be the copied ones of the plan
		want    string
	}{
		{"all", every, "", "far[1.1 2.1 8.1 10.2] gone[2.2 7.1 10.1] here 2 open 2"},
		{"resumed", every, "1.1 2.2 8.1", "far[2.1 10.2] gone[7.1 10.1] here 5 open 2"},
		{"some", []jobs.ID{2, 3}, "", "far[2.1] gone[2.2] here 1 open 0"},
		{"all fetched", []jobs.ID{1, 7}, "1.1 7.1", "here 2 open 0"},
		{"shared alone", []jobs.ID{3, 9}, "", "here 2 open 0"},
		{"never ran", []jobs.ID{6}, "", "here 0 open 0"},
		{"none, and one that is not there", []jobs.ID{99}, "", "here 0 open 0"},
	} {
		p := PlanFetch(table(t, all...), c.ids, func(h string) bool { return h != "ws" },
			func(id jobs.AttemptID) bool { return slices.Contains(strings.Fields(c.fetched), id.String()) })
		got := ""
		for _, h := range p.Hosts {
			got += fmt.Sprintf("%s%v ", h.Host, h.Attempts)
		}
		if got += fmt.Sprintf("here %d open %d", p.Here, p.Open); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if copied := strings.Join(text.Each(p.Copied, jobs.AttemptID.String), " "); copied != c.fetched {
			t.Errorf("%s: copied earlier are %q, want %q", c.name, copied, c.fetched)
		}
	}
}
