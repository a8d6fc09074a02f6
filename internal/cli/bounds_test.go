package cli

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// Rule 9: who was told that nothing that runs is touched does not have the run taken
// over, and what runs ended, because its dispatcher has died meanwhile.
func TestCancelOfWhatWaitsNeedsADispatcher(t *testing.T) {
	var refused *runview.Refused
	if _, err := new(runScreen).act(t.Context(), runview.Action{Do: runview.Cancel, Jobs: jobs.One(1), Waiting: true}); !errors.As(err, &refused) {
		t.Error(err)
	}
}

// A cancel that has taken the run over is not cut off because its screen is left: what
// was said to end does.
func TestACancelOutlivesItsScreen(t *testing.T) {
	f := inBackground(t, gated+gated)
	f.until(t, "a job runs", func(p *runview.Picture) bool { return p.Phases[runview.Running] > 0 })
	syscall.Kill(f.process.Load().Process.Pid, syscall.SIGKILL)
	f.until(t, "it is dead", func(p *runview.Picture) bool { return p.Status == runview.StatusCrashed })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Do(ctx, runview.Action{Do: runview.CancelRun}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	f.until(t, "all are cancelled", func(p *runview.Picture) bool { return p.Phases[runview.Cancelled] == 2 })
	gone(t, f.run, false) // it takes leave of its host yet, in a directory that is about to be removed
}
