package disktest

import (
	"path/filepath"
	"testing"

	"dcs-tui/jobs/rundir"
)

// NewRun creates a run named r, without jobs, in a temporary directory.
func NewRun(t testing.TB) *rundir.Run {
	t.Helper()
	r, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Settings{Version: "test", Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
