package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// TestCancelTakesOverADeadRun checks that cancel takes over a run without a live dispatcher. A
// dispatcher on another machine is dead if its heartbeat has not changed for StaleAfter, measured
// on this machine.
func TestCancelTakesOverADeadRun(t *testing.T) {
	for _, test := range []struct {
		name  string
		until time.Duration                          // how long the owner sends heartbeats
		end   func(t *testing.T, runDir *rundir.Run) // what the owner does then
		gone  bool
		after time.Duration // minimum time from the request; polling adds up to half a second
	}{
		{name: "it was dead", gone: true, after: journal.StaleAfter},
		{name: "it dies while it is waited for", until: 35 * time.Second, gone: true, after: 35*time.Second +
			journal.StaleAfter},
		{name: "it leaves", until: 25 * time.Second, gone: true, after: 30 * time.Second,
			end: func(t *testing.T, runDir *rundir.Run) {
				disktest.Elsewhere(t, runDir, func(o map[string]any) { disktest.Heartbeats(o); o["left"] = true })
			}},
		{name: "it goes on", until: time.Hour, after: cancelTimeout},
		{name: "its file is torn", until: 5 * time.Second, after: 2 * cancelTimeout,
			end: func(t *testing.T, runDir *rundir.Run) {
				os.WriteFile(runDir.Path(rundir.OwnerFile), []byte("x"), 0o600)
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := disktest.NewRun(t)
			j := takeOver(t, run)
			j.Close()
			disktest.Elsewhere(t, run, nil)
			synctest.Test(t, func(t *testing.T) {
				owner, err := journal.ReadOwner(run)
				if err != nil || owner.Liveness() != journal.Unsure {
					t.Fatalf("%v (%v)", owner, err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				go func() {
					for began := time.Now(); ; {
						select {
						case <-ctx.Done():
							return
						case <-time.After(5 * time.Second):
						}
						switch {
						case time.Since(began) <= test.until:
							disktest.Elsewhere(t, run, disktest.Heartbeats)
						case test.end != nil:
							test.end(t, run)
							return
						}
					}
				}()
				began := time.Now()
				gone := awaitOwnerEnd(run, owner)
				if waited := time.Since(began); gone != test.gone || waited < test.after || waited > test.after+
					500*time.Millisecond {
					t.Errorf("gone %v after %s, want %v after %s", gone, waited, test.gone, test.after)
				}
			})
		})
	}
}

// TestCancelOfARunWhoseDispatcherDiedElsewhere kills a dispatcher that seems to be on another
// machine. It checks that cancel reports what it waits for, takes the run over, and ends the job.
func TestCancelOfARunWhoseDispatcherDiedElsewhere(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	dir := tempDir(t)
	writeFile(t, dir, "jobs.txt", "echo $$ > ran; while [ -e jobs.txt ]; do sleep 0.02; done\necho 2\n")
	cmd := programCommand(t, dir, "run", "--name", "r", "jobs.txt")
	startProgram(t, cmd)
	awaitFile(t, filepath.Join(dir, "ran"), "\n")
	cmd.Process.Kill()
	cmd.Wait()
	run, err := rundir.Open(filepath.Join(dir, "dcs-runs", "r"))
	must(t, err)
	disktest.Elsewhere(t, run, nil)
	out, err := programCommand(t, dir, "cancel", "--yes", "r").CombinedOutput()
	must(t, err)
	checkContains(t, string(out), "if it sends no heartbeat for 30 s, the run is taken over", "r: canceled")
	if names, _, err := run.RequestNames(); err != nil || len(names) > 0 {
		t.Errorf("requests are left, which the next resume would carry out: %v, %v", names, err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(readFile(dir, "ran"))); err == nil {
		t.Error("the job is alive")
	}
}
