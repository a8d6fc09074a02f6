//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// "What bad input gets": a 1 MB command line and 100 MB of output.
func TestLarge(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	long := job("1.1", "exit 9 #"+strings.Repeat("x", 1<<20))
	f.launch(long, job("2.1", "head -c 104857600 /dev/zero"), job("3.1", "exit 8"))
	for id, want := range map[string]int{"1.1": 9, "2.1": 0, "3.1": 8} {
		if o := f.exit(id); o.Exit != want || o.Error != "" {
			t.Errorf("%s: %+v, want exit %d", id, o, want)
		}
	}
	if st, err := os.Stat(w.file("2.1", jobs.FileOut)); err != nil || st.Size() != 100<<20 {
		t.Errorf("output: %v, %v", st, err)
	}
	if names, _ := w.spool().list(dirScript); len(names) > 0 {
		t.Errorf("scripts are left: %v", names)
	}
	f.bye()
}

// Promise 3: a disk that a job fills keeps its outcome from nobody, and a full
// one refuses jobs before they start, at no cost to them.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	disk := filepath.Join(w.workDir, "disk")
	if err := os.MkdirAll(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("dcs-test", disk, "tmpfs", 0, "size=256k,mode=700"); err != nil {
		t.Skipf("LOUD: not allowed to mount a small tmpfs (%v): the promise about full disks is not tested", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	o := w.open()
	o.Nonce, o.WorkDir, o.Slots = "another", disk, 1
	f := w.start(o)
	f.launch(job("1.1", "head -c 1000000 /dev/zero; echo $? >&2; exit 6"))
	if out := f.exit("1.1"); out.Exit != 6 {
		t.Errorf("the job that filled the disk: %+v", out)
	}
	dir := filepath.Join(disk, w.run)
	b, err := os.ReadFile(jobs.AttemptFile(dir, attemptID(t, "1.1"), jobs.FileStatus))
	if err != nil {
		t.Fatal(err)
	}
	if f := attempts.Decode(b, w.run, attemptID(t, "1.1")); f.State != attempts.Finished || f.Outcome.Exit != 6 {
		t.Errorf("status %+v, want exit 6", f)
	}
	ran := filepath.Join(w.runDir, "ran")
	f.launch(job("2.1", "echo x > "+ran))
	if m := f.refused("2.1"); !strings.Contains(m.Why, "no space") {
		t.Errorf("refused with %+v", m)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a job ran whose outcome could not be promised")
	}
	// Without room for a tombstone nothing can be settled.
	if p := f.probe("2.1"); p.Answer != hosts.NeverStarted && (p.Answer != hosts.Unknown || !strings.Contains(p.Why, "no space")) {
		t.Errorf("answer %+v", p)
	}
	if h := w.start(o).hello; !strings.Contains(h.Error, "no space") {
		t.Errorf("a hello on a full disk: %+v", h)
	}
	f.bye()
}

// Promise 3: a sentinel that cannot be written stands in the spool until it can.
func TestSentinelDelayed(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	dir, away := filepath.Join(w.runDir, "attempts"), filepath.Join(w.runDir, "away")
	f.launch(job("1.1", "rm -r "+dir+"; echo up > "+ready+"; read x < "+gate+"; exit 3"))
	w.hear(ready)
	write(t, dir, "in the way")
	w.say(gate)
	if o := f.exit("1.1"); o.Exit != 3 {
		t.Errorf("%+v, want exit 3", o)
	}
	await(f, func(m *hosts.Trouble) bool { return strings.Contains(m.Text, "could not be written") })
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "000"), 0o700); err != nil {
		t.Fatal(err)
	}
	if p := f.probe("1.1"); p.Answer != hosts.HasExited || p.Outcome.Exit != 3 {
		t.Errorf("asked: %+v", p)
	}
	f.bye() // settles
	if f := w.status("1.1"); f.State != attempts.Finished || f.Outcome.Exit != 3 {
		t.Errorf("status %+v, want exit 3", f)
	}
}
