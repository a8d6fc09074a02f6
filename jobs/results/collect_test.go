package results

import (
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestFinishedAndUnfinished checks that each job has either a result or a row without an outcome.
func TestFinishedAndUnfinished(t *testing.T) {
	p := &Place{UID: "u", Name: "r", Created: 7, Dir: "/d", HostDirs: map[string]string{"melon1": "melon1:/kept"}}
	for seed := range uint64(50) {
		specs, records := jobstest.History(seed, 12, 150)
		table := &jobs.Table{Specs: specs}
		for i := range records {
			if err := jobs.Fold(table, &records[i]); err != nil {
				t.Fatal(err)
			}
			over, open := p.Finished(table), p.Unfinished(table)
			for _, r := range over {
				if !r.State.Terminal() || r.Created != 7 {
					t.Fatalf("seed %d: result of job %d, which is %s", seed, r.Job, r.State)
				}
				if want := map[bool]string{true: "melon1:/kept/", false: "/d/"}[r.Host == "melon1"]; r.Stdout != "" && r.Stdout[:len(want)] != want {
					t.Fatalf("seed %d: %s is at %s", seed, r.Host, r.Stdout)
				}
			}
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

// TestFilesDir checks that fetched files of a host that does not share the run directory are on
// this machine, and that all other files of its jobs are only on the host (X2).
func TestFilesDir(t *testing.T) {
	p := &Place{UID: "u", Name: "r", Dir: "/d", HostDirs: map[string]string{"far": "far:/kept"},
		Here: func(id jobs.AttemptID) bool { return id.Job == 2 }}
	for id, c := range map[int]struct {
		host, dir string
		apart     bool
	}{1: {"far", "far:/kept", true}, 2: {"far", "/d", true}, 3: {"ws", "/d", false}} {
		j := row(jobs.Succeeded, attempt(1, c.host, jobs.AttemptExited, ended(0)))
		j.Attempts[0].ID.Job = jobs.ID(id)
		if dir, apart := p.FilesDir(j.Attempts[0]); dir != c.dir || apart != c.apart {
			t.Errorf("%d on %s: %q, %v", id, c.host, dir, apart)
		}
		if r := p.Result(j); r.Apart != c.apart || r.Stdout != jobs.AttemptFile(c.dir, j.Attempts[0].ID, jobs.FileOut) {
			t.Errorf("%d on %s: %q, %v", id, c.host, r.Stdout, r.Apart)
		}
	}
	p.Here = nil
	if dir, apart := p.FilesDir(attempt(1, "far", jobs.AttemptExited, ended(0))); dir != "far:/kept" || !apart {
		t.Errorf("nobody says what was brought: %q, %v", dir, apart)
	}
}
