package cli

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"dcs-tui/dispatch/view"
	"dcs-tui/jobs/rundir"
)

// Continue on a screen ends the drain that the file STOP asked for. It also removes the
// file, which would otherwise say that the run drains.
func TestContinueRemovesTheStopFile(t *testing.T) {
	f := inBackground(t, gated)
	f.until(t, "a job runs", func(p *view.Picture) bool { return p.Phases[view.Running] > 0 })
	writeFile(t, f.run.Dir, rundir.StopFile, "")
	f.until(t, "the run drains", func(p *view.Picture) bool { return p.Draining != "" })
	if _, err := f.Do(t.Context(), view.Action{Do: view.Continue}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.run.Path(rundir.StopFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file STOP is still there: %v", err)
	}
	f.until(t, "it drains no longer", func(p *view.Picture) bool { return p.Draining == "" && p.Life == view.Live })
	writeFile(t, ".", "gate", "")
}
