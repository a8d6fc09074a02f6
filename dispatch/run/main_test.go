package run

import (
	"path/filepath"
	"testing"

	"dcs-tui/jobs/rundir"
)

// emptyRun returns a run without jobs.
func emptyRun(t *testing.T) *rundir.Run {
	t.Helper()
	run, err := rundir.CreateAt(filepath.Join(t.TempDir(), "r"), "r", rundir.Settings{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
