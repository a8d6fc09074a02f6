package dispatch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestOutputOfAHostThatHasLeft checks output that only its host has, when that host has left the
// inventory. Output that was fetched is read from the run directory. Until then, the error names
// its location (X2).
func TestOutputOfAHostThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a")
		r.submit(1)
		r.finish(1)

		dir := t.TempDir()
		d, err := Start(Config{RunUID: "u1", RunName: "test", RunDir: dir, Sched: sched.Config{Seed: 1},
			Connector: r.hosts, Journal: r.journal,
			Table: r.d.cfg.Table, Open: hosts.Open{Run: "u1", Epoch: 2}, HostDirs: map[string]string{"a": "a:/kept"},
			Inventory: &hosts.Inventory{Hosts: []*hosts.Host{fakeHost("b")}}})
		if err != nil {
			t.Fatal(err)
		}
		id := jobs.AttemptID{Job: 1, N: 1}
		if res, err := query(t.Context(), d,
			func(e *engine) *Result { return e.resultOf(e.core.Table().Job(1)) }); err != nil ||
			!strings.HasPrefix(res.Stdout, "a:/kept/") {
			t.Errorf("the result names %+v, %v", res, err)
		}
		if _, _, err := d.Output(t.Context(), id, jobs.FileOut, 0, 100); err == nil ||
			!strings.Contains(err.Error(), "a:/kept/attempts/000/1.1.out") {
			t.Errorf("Output: got error %v, want one with the path on the host", err)
		}
		path := jobs.AttemptFile(dir, id, jobs.FileOut)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte("brought"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if data, size, err := d.Output(t.Context(), id, jobs.FileOut, -3, 100); err != nil || string(data) != "ght" ||
			size != 7 {
			t.Errorf("%q of %d, %v", data, size, err)
		}
		d.Close()
		r.hosts.wg.Wait()
	})
}
