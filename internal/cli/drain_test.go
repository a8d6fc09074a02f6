package cli

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// Continue on a screen ends the drain that the file STOP asked for. It also removes the
// file, which would otherwise say that the run drains.
func TestContinueRemovesTheStopFile(t *testing.T) {
	f := inBackground(t, gated)
	f.until(t, "a job runs", func(p *runview.Picture) bool { return p.Phases[runview.Running] > 0 })
	writeFile(t, f.run.Dir, rundir.StopFile, "")
	f.until(t, "the run drains", func(p *runview.Picture) bool { return p.Draining != "" })
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.Continue}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.run.Path(rundir.StopFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file STOP is still there: %v", err)
	}
	f.until(t, "it drains no longer", func(p *runview.Picture) bool { return p.Draining == "" && p.Status == runview.StatusRunning })
	writeFile(t, ".", "gate", "")
}
