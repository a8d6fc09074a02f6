//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// tmpfs mounts a small disk of its own at dir.
func (w *world) tmpfs(dir, size string) {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := unix.Mount("dcs-test", dir, "tmpfs", 0, "mode=700,size="+size); err != nil {
		hosttest.LeaveOut(w.t, "not allowed to mount a small tmpfs (%v): full and read-only disks of a host", err)
	}
	w.t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// fill writes until the disk is full, and returns the file that does it.
func (w *world) fill(dir string) string {
	w.t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	for b := make([]byte, 4096); ; {
		if _, err := f.Write(b); err != nil {
			return path
		}
	}
}

// apart is a world whose attempts are on a small disk of their own.
func apart(t *testing.T, size string) (w *world, open *hosts.Open, disk, dir string) {
	w = newWorld(t)
	disk = filepath.Join(w.runDir, "disk")
	w.tmpfs(disk, size)
	open = w.open()
	open.Nonce, open.WorkDir = "another", disk
	return w, open, disk, filepath.Join(disk, w.run)
}

func (w *world) whole(dir, id string, exit int) {
	w.t.Helper()
	b, err := os.ReadFile(jobs.AttemptFile(dir, attemptID(w.t, id), jobs.FileStatus))
	if err != nil {
		w.t.Error(err)
		return
	}
	if f := attempts.Decode(b, w.run, attemptID(w.t, id)); f.State != attempts.Finished || f.Outcome.Exit != exit {
		w.t.Errorf("status of %s: %+v; want exit %d", id, f, exit)
	}
}

// Promise 3, issue 3 point 6: the outcome of a job that runs when its disk fills up
// is written all the same; others are refused in one line, at no cost to them; with
// space again all goes on by itself. What failed on the full disk says so.
func TestDiskFillsAndEmpties(t *testing.T) {
	w, open, disk, dir := apart(t, "512k")
	open.Slots = 1
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(open)
	f.launch(job("1.1", "exit 5"))
	if o := f.exit("1.1"); o.Exit != 5 || o.DiskFull {
		t.Errorf("with space: %+v", o)
	}
	f.launch(job("2.1", "echo up > "+ready+"; read x < "+gate+"; echo lost; exit 6"))
	w.hear(ready)
	filler := w.fill(disk)
	w.say(gate)
	if o := f.exit("2.1"); o.Exit != 6 || !o.DiskFull {
		t.Errorf("on the full disk: %+v, want exit 6 with the hint", o)
	}
	w.whole(dir, "2.1", 6)
	ran := filepath.Join(w.runDir, "ran")
	f.launch(job("3.1", "echo x > "+ran))
	if m := f.refused("3.1"); !strings.Contains(m.Why, "no space") || strings.Contains(m.Why, "\n") {
		t.Errorf("refused with %+v", m)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a job ran whose outcome could not be promised")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	f.launch(job("3.2", "exit 7"))
	if o := f.exit("3.2"); o.Exit != 7 || o.DiskFull {
		t.Errorf("with space again: %+v", o)
	}
	w.whole(dir, "3.2", 7)
	f.bye()
}

// The hint looks at the job's own directory as well; a success has none.
func TestFullWorkingDirectory(t *testing.T) {
	w := newWorld(t)
	disk := filepath.Join(w.runDir, "disk")
	w.tmpfs(disk, "64k")
	w.fill(disk)
	f := w.start(w.open())
	bad, good := job("1.1", "exit 3"), job("2.1", "exit 0")
	bad.Cwd, good.Cwd = disk, disk
	f.launch(bad, good)
	if o := f.exit("1.1"); !o.DiskFull || o.Exit != 3 {
		t.Errorf("%+v, want the hint", o)
	}
	if o := f.exit("2.1"); o.DiskFull || !o.OK() {
		t.Errorf("a success: %+v", o)
	}
	if p := f.probe("1.1"); p.Outcome == nil || !p.Outcome.DiskFull {
		t.Errorf("the sentinel lost the hint: %+v", p)
	}
	f.bye()
}

// Read-only for a while: what ends meanwhile is kept on the host and put where it
// belongs as soon as that can be; nothing new is started.
func TestAttemptsReadOnly(t *testing.T) {
	w, open, _, dir := apart(t, "1m")
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(open)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 6"))
	w.hear(ready)
	// What is open for writing keeps a file system from becoming read-only; a bind
	// mount over it is not kept.
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	f.launch(job("2.1", "exit 1"))
	if m := f.refused("2.1"); !strings.Contains(m.Why, "read-only") {
		t.Errorf("refused with %+v", m)
	}
	w.say(gate)
	if o := f.exit("1.1"); o.Exit != 6 {
		t.Errorf("%+v, want exit 6", o)
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	f.launch(job("2.2", "exit 7"))
	if o := f.exit("2.2"); o.Exit != 7 {
		t.Errorf("writable again: %+v", o)
	}
	f.bye()
	w.whole(dir, "1.1", 6)
	w.whole(dir, "2.2", 7)
}

// The spool on a full disk: what runs ends as it ends, also when it is killed; what
// comes new is refused; with space again all goes on.
func TestSpoolFull(t *testing.T) {
	w := newWorld(t)
	spoolDisk := filepath.Join(w.base, "runs")
	w.tmpfs(spoolDisk, "256k")
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 6"), job("2.1", "echo up > "+ready+"; sleep 1000"))
	w.hearTimes(ready, 2)
	filler := w.fill(spoolDisk)
	long := job("3.1", "exit 1 # "+strings.Repeat("x", 50_000))
	f.launch(long)
	if m := f.refused("3.1"); !strings.Contains(m.Why, "no space") || strings.Contains(m.Why, "\n") {
		t.Errorf("refused with %+v", m)
	}
	f.send(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "2.1")}, Why: "asked"})
	if o := f.exit("2.1"); o.Signal == "" {
		t.Errorf("killed: %+v", o)
	}
	w.say(gate)
	if o := f.exit("1.1"); o.Exit != 6 {
		t.Errorf("%+v, want exit 6", o)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	long.Attempt = attemptID(t, "3.2")
	f.launch(long)
	if o := f.exit("3.2"); o.Exit != 1 || o.Error != "" {
		t.Errorf("with space again: %+v", o)
	}
	f.bye()
}

// A spool that cannot be written at all: a kill ends the job all the same.
func TestKillWithReadOnlySpool(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", nasty(w, ready)))
	w.hearTimes(ready, 3)
	stop := w.spool().path(dirStop)
	if err := os.Remove(stop); err != nil {
		t.Fatal(err)
	}
	write(t, stop, "in the way")
	f.send(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "1.1")}, Why: "asked"})
	if o := f.exit("1.1"); o.Signal == "" {
		t.Errorf("%+v, want it ended", o)
	}
	// Its supervisor knows nothing of a kill and reports as soon as the shell is dead.
	for until := uptime() + bound; ; {
		left := w.alive()
		if len(left) == 0 {
			break
		}
		if uptime() > until {
			t.Fatalf("alive: %s", name(left))
		}
		waitAny(left, bound)
	}
	f.bye()
}

// hostsFault: what the host should have given is not the job's fault.
func TestHostsFault(t *testing.T) {
	for err, want := range map[error]bool{
		unix.ENOSPC: true, unix.EDQUOT: true, unix.ESTALE: true, unix.EIO: true, unix.EAGAIN: true, &os.PathError{Err: unix.EROFS}: true,
		unix.ENOENT: false, unix.EACCES: false, unix.ENOTDIR: false, unix.E2BIG: false, unix.EINVAL: false,
	} {
		if hostsFault(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
