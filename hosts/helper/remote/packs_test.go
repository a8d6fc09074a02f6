//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// TestHelperReadsPacks checks that a helper knows an attempt whose files are in a pack: after damage
// to the journal it would otherwise answer that the attempt never started (promises 1 and 2).
func TestHelperReadsPacks(t *testing.T) {
	const run = "packedrun"
	dir, id := t.TempDir(), jobs.AttemptID{Job: 7, N: 1}
	claim := attempts.Claim{Run: run, Attempt: id, Host: "melon", By: "1.2.3", Boot: "b", At: 1}
	path := jobs.AttemptFile(dir, id, jobs.FileStatus)
	polltest.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	polltest.Must(t, os.WriteFile(path, claim.EncodeFinished(1, jobs.Outcome{Started: 1, Ended: 2}), 0o600))
	p := attempts.Packer{Disk: rundir.OS, Dir: dir, Run: run, May: func(jobs.AttemptID) bool { return true }}
	if n, err := p.Pack("000"); n != 1 || err != nil {
		t.Fatalf("packed %d attempts, %v", n, err)
	}
	h := &helper{dir: dir, spool: spool{t.TempDir()}}
	h.config.Run = run
	if f, err := h.readFate(id); f.State != attempts.Finished || err != nil {
		t.Errorf("a probe finds state %d, %v", f.State, err)
	}
	listed := 0
	err := attempts.EachFate(readOnlyOS, dir, run, "melon", nil, func(f attempts.Fate) error {
		if f.Attempt == id && f.State == attempts.Finished {
			listed++
		}
		return nil
	})
	if listed != 1 || err != nil {
		t.Errorf("a list has the attempt %d times, %v", listed, err)
	}
}

// TestNoPackLeavesAttemptsUnknown checks that a file that a job put into the place of a pack does not
// keep a probe from finding that an attempt never started (promise 5).
func TestNoPackLeavesAttemptsUnknown(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	must(t, os.WriteFile(filepath.Join(w.runDir, "attempts", "000.AAAA.zip"), []byte("garbage"), 0o600))
	must(t, os.Mkdir(filepath.Join(w.runDir, "attempts", "000.BBBB.zip"), 0o700))
	must(t, unix.Mkfifo(filepath.Join(w.runDir, "attempts", "000.CCCC.zip"), 0o600))
	must(t, unix.Mknod(filepath.Join(w.runDir, "attempts", "000.DDDD.zip"), unix.S_IFSOCK|0o600, 0))
	f.answers("17.1", hosts.NeverStarted)
	f.endRun()
}
