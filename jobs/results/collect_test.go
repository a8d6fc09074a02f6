package results

import (
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// Each job is over or not: it has a result or a row that says nothing yet, and asking
// for what is new gives each new result once.
func TestCollect(t *testing.T) {
	p := &Place{UID: "u", Name: "r", Created: 7, Dir: "/d", HostDirs: map[string]string{"melon1": "melon1:/kept"}}
	for seed := range uint64(50) {
		specs, records := jobstest.History(seed, 12, 150)
		table := &jobs.Table{Specs: specs}
		seen, last := map[[2]int64]bool{}, int64(0)
		for i := range records {
			if err := jobs.Fold(table, &records[i]); err != nil {
				t.Fatal(err)
			}
			for _, r := range p.Since(table, last) {
				key := [2]int64{int64(r.Job), r.Seq}
				if seen[key] || !r.State.Terminal() || r.Created != 7 {
					t.Fatalf("seed %d: result %v again, %s", seed, key, r.State)
				}
				seen[key] = true
				if want := map[bool]string{true: "melon1:/kept/", false: "/d/"}[r.Host == "melon1"]; r.Stdout != "" && r.Stdout[:len(want)] != want {
					t.Fatalf("seed %d: %s is at %s", seed, r.Host, r.Stdout)
				}
			}
			last = table.Seq
			over, open := p.Since(table, 0), p.Unfinished(table)
			if len(over)+len(open) != len(table.Jobs) || len(open) != table.Unfinished() {
				t.Fatalf("seed %d: %d and %d of %d jobs", seed, len(over), len(open), len(table.Jobs))
			}
			for _, r := range open {
				if r.State.Terminal() || r.Outcome != nil || r.Stdout != "" || (r.State == jobs.Running) != (r.Host != "") {
					t.Fatalf("seed %d: %+v", seed, r)
				}
			}
		}
	}
}
