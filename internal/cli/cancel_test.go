package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// elsewhere rewrites the owner file as if a dispatcher on another machine had written it.
func elsewhere(t *testing.T, run *rundir.Run, change func(owner map[string]any)) {
	t.Helper()
	b, err := os.ReadFile(run.Path(rundir.OwnerFile))
	if err != nil {
		t.Fatal(err)
	}
	size := len(b)
	var owner map[string]any
	if err := json.Unmarshal(b[:size-9], &owner); err != nil {
		t.Fatal(err)
	}
	owner["boot"], owner["host"], owner["left"] = "that of another machine", "elsewhere", false
	if change != nil {
		change(owner)
	}
	if b, err = json.Marshal(owner); err != nil {
		t.Fatal(err)
	}
	b = append(b, bytes.Repeat([]byte{' '}, size-9-len(b))...)
	b = fmt.Appendf(b, "%08x\n", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	if err := os.WriteFile(run.Path(rundir.OwnerFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func beats(owner map[string]any) { owner["beat"] = owner["beat"].(float64) + 1 }

// TestAwaitOwner checks that cancel takes over a run without a live dispatcher. A dispatcher on
// another machine is dead if its heartbeat has not changed for StaleAfter, measured on this
// machine.
func TestAwaitOwner(t *testing.T) {
	for _, test := range []struct {
		name  string
		until time.Duration                     // how long the owner sends heartbeats
		end   func(t *testing.T, r *rundir.Run) // what the owner does then
		gone  bool
		after time.Duration // minimum time from the request; polling adds up to half a second
	}{
		{name: "it was dead", gone: true, after: journal.StaleAfter},
		{name: "it dies while it is waited for", until: 35 * time.Second, gone: true, after: 35*time.Second + journal.StaleAfter},
		{name: "it leaves", until: 25 * time.Second, gone: true, after: 30 * time.Second,
			end: func(t *testing.T, r *rundir.Run) {
				elsewhere(t, r, func(o map[string]any) { beats(o); o["left"] = true })
			}},
		{name: "it goes on", until: time.Hour, after: cancelTimeout},
		{name: "its file is torn", until: 5 * time.Second, after: 2 * cancelTimeout,
			end: func(t *testing.T, r *rundir.Run) { os.WriteFile(r.Path(rundir.OwnerFile), []byte("x"), 0o600) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := emptyRun(t)
			j, _, _, err := journal.Take(context.Background(), run, journal.TakeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			j.Close()
			elsewhere(t, run, nil)
			synctest.Test(t, func(t *testing.T) {
				owner, err := journal.ReadOwner(run)
				if err != nil || owner.Life() != journal.Unsure {
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
							elsewhere(t, run, beats)
						case test.end != nil:
							test.end(t, run)
							return
						}
					}
				}()
				began := time.Now()
				gone := awaitOwner(run, owner)
				if waited := time.Since(began); gone != test.gone || waited < test.after || waited > test.after+500*time.Millisecond {
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
	dir := t.TempDir()
	writeFile(t, dir, "jobs.txt", "echo $$ > ran; while [ -e jobs.txt ]; do sleep 0.02; done\necho 2\n")
	cmd := program(t, dir, "run", "--name", "r", "jobs.txt")
	begin(t, cmd)
	untilFile(t, filepath.Join(dir, "ran"), "\n")
	cmd.Process.Kill()
	cmd.Wait()
	run, err := rundir.Open(filepath.Join(dir, "dcs-runs", "r"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere(t, run, nil)
	out, err := program(t, dir, "cancel", "--yes", "r").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"if it sends no heartbeat for 30 s, the run is taken over", "r: canceled"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if names, _, err := run.RequestNames(); err != nil || len(names) > 0 {
		t.Errorf("requests are left, which the next resume would carry out: %v, %v", names, err)
	}
	pid, _ := os.ReadFile(filepath.Join(dir, "ran"))
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
		t.Error("the job is alive")
	}
}
