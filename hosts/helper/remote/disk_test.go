//go:build linux

package remote

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// tmpfs mounts a small file system at dir.
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

// fill writes a file until the disk is full, and returns the path of the file.
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

// apart returns a world whose attempts are on a small disk of their own.
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

// TestDiskFillsAndEmpties checks that the outcome of a job that runs while its disk fills up is
// still written. Other jobs are refused with one message and are not charged. Everything continues
// without intervention when there is space again. The outcome of a job that failed on the full disk
// mentions the full disk.
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

// TestFullWorkingDirectory checks that the hint about a full disk also covers the job's own
// directory, and that a successful job has no hint.
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

// TestAttemptsReadOnly checks what happens while the attempts are on a read-only file system. A
// sentinel of a job that ends in the meantime is kept on the host and is written to its final place
// as soon as possible. No new job starts.
func TestAttemptsReadOnly(t *testing.T) {
	w, open, _, dir := apart(t, "1m")
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(open)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 6"))
	w.hear(ready)
	// A file that is open for writing keeps a file system from being remounted read-only. It does
	// not do so for a bind mount over the directory.
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
	f.exits("1.1", 6)
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	f.launch(job("2.2", "exit 7"))
	f.exits("2.2", 7)
	f.bye()
	w.whole(dir, "1.1", 6)
	w.whole(dir, "2.2", 7)
}

// TestSpoolFull checks what happens while the disk of the spool is full. Running jobs end normally,
// also when they are killed. New jobs are refused. Everything continues when there is space again.
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
	f.exits("1.1", 6)
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

// TestKillWithReadOnlySpool checks that a kill ends a job even if nothing can be written to the
// spool.
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
	// The supervisor does not know about the kill and reports the end as soon as the shell is dead.
	for until := uptime() + polltest.Patience; ; {
		left := w.alive()
		if len(left) == 0 {
			break
		}
		if uptime() > until {
			t.Fatalf("alive: %s", name(left))
		}
		waitAny(left, polltest.Patience)
	}
	f.bye()
}

// TestStopOfWhatHasEnded checks that a request to stop a job does not stay in the spool if the job
// ends by itself in the meantime.
func TestStopOfWhatHasEnded(t *testing.T) {
	s, id := spool{t.TempDir()}, attemptID(t, "1.1")
	if err := os.Mkdir(s.path(dirStop), 0o700); err != nil {
		t.Fatal(err)
	}
	h := &helper{spool: s, running: map[jobs.AttemptID]*run{id: {over: make(chan struct{})}}}
	close(h.running[id].over)
	h.end(id)
	if left, err := s.list(dirStop); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v, want nothing", left, err)
	}
}

// TestHostsFault checks that the lack of a resource that the host should provide is not charged to
// the job.
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

// TestLarge checks a command line of 1 MB and an output of 100 MB.
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

// TestFullDisk checks that the outcome of a job that fills its disk is still reported, and that a
// full disk refuses jobs before they start, without a charge (promise 3).
func TestFullDisk(t *testing.T) {
	w, o, _, dir := apart(t, "256k")
	o.Slots = 1
	f := w.start(o)
	f.launch(job("1.1", "head -c 1000000 /dev/zero; echo $? >&2; exit 6"))
	f.exits("1.1", 6)
	w.whole(dir, "1.1", 6)
	ran := filepath.Join(w.runDir, "ran")
	f.launch(job("2.1", "echo x > "+ran))
	if m := f.refused("2.1"); !strings.Contains(m.Why, "no space") {
		t.Errorf("refused with %+v", m)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a job ran whose outcome could not be promised")
	}
	// Without space for a tombstone, the attempt cannot be settled.
	if p := f.probe("2.1"); p.Answer != hosts.NeverStarted && (p.Answer != hosts.Unknown || !strings.Contains(p.Why, "no space")) {
		t.Errorf("answer %+v", p)
	}
	if h := w.start(o).hello; !strings.Contains(h.Error, "no space") {
		t.Errorf("a hello on a full disk: %+v", h)
	}
	f.bye()
}

// TestSentinelDelayed checks that a sentinel that cannot be written stays in the spool until it can
// be (promise 3).
func TestSentinelDelayed(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	dir, away := filepath.Join(w.runDir, "attempts"), filepath.Join(w.runDir, "away")
	f.launch(job("1.1", "rm -r "+dir+"; echo up > "+ready+"; read x < "+gate+"; exit 3"))
	w.hear(ready)
	write(t, dir, "in the way")
	w.say(gate)
	f.exits("1.1", 3)
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
	f.bye() // writes the sentinel to its final place
	if f := w.status("1.1"); f.State != attempts.Finished || f.Outcome.Exit != 3 {
		t.Errorf("status %+v, want exit 3", f)
	}
}

// TestPassingTrouble checks that file system errors that may go away are distinguished from those
// that a person must fix.
func TestPassingTrouble(t *testing.T) {
	for err, want := range map[error]bool{
		unix.ENOSPC: true, unix.EDQUOT: true, unix.EROFS: true, unix.ESTALE: true, unix.EIO: true,
		unix.EACCES: false, unix.ENOTDIR: false, unix.EPERM: false,
	} {
		wrapped := fmt.Errorf("no job can be run here: %w", &fs.PathError{Op: "create", Path: "/x", Err: err})
		if got := isTransient(wrapped); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestTrialWithLostReplies checks that tryWrite does not fail if the reply to creating or removing
// a file is lost. The repeated call then returns "exists" or "no such file".
func TestTrialWithLostReplies(t *testing.T) {
	for _, op := range []string{"create", "unlink"} {
		dir := filepath.Join(t.TempDir(), "attempts")
		lost := 0
		fault = func(o, path string, after bool) error {
			if o != op || !after || lost > 0 {
				return nil
			}
			lost++
			if op == "create" {
				return unix.EEXIST
			}
			return unix.ENOENT
		}
		err := tryWrite(temps{dir, "ws1", holder{1, 2, 3}})
		fault = nil
		if err != nil || lost != 1 {
			t.Errorf("%s: %v, %d lost", op, err, lost)
		}
		if names, _ := os.ReadDir(dir); len(names) != 0 {
			t.Errorf("%s: left behind: %v", op, names)
		}
	}
}

// TestLinksAreNotFollowed checks that nothing is written through a symbolic link that somebody put
// in the place of an attempt's file.
func TestLinksAreNotFollowed(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	secret := filepath.Join(w.base, "secret")
	for i, file := range []jobs.File{jobs.FileOut, jobs.FileErr} {
		id := fmt.Sprintf("%d.1", i+1)
		write(t, secret, "secret")
		must(t, os.MkdirAll(filepath.Dir(w.file(id, file)), 0o700))
		must(t, os.Symlink(secret, w.file(id, file)))
		f.launch(job(id, "echo out; echo err >&2"))
		if r := f.refused(id); !strings.Contains(r.Why, id+"."+string(file)+": it is a symbolic link, which is not followed") {
			t.Errorf("%s: refused: %s", file, r.Why)
		}
		if b, err := os.ReadFile(secret); string(b) != "secret" {
			t.Errorf("%s: the file behind the link holds %q, %v", file, b, err)
		}
	}
	f.bye()
}

// TestProgressIsNoPipe checks that a pipe that a job put in the place of its progress file does not
// block anybody.
func TestProgressIsNoPipe(t *testing.T) {
	t.Setenv(beatEnv, "50ms")
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", fmt.Sprintf("mkfifo $DCS_PROGRESS; echo up > %s; read x < %s", ready, gate)),
		job("2.1", fmt.Sprintf("echo half > $DCS_PROGRESS; echo up > %s; read x < %s", ready, gate)))
	w.hearTimes(ready, 2)
	await(f, func(b *hosts.Beat) bool { return b.Progress["2.1"] == "half" })
	w.say(gate)
	w.say(gate)
	f.exit("1.1")
	f.exit("2.1")
	f.bye()
}

// TestWorkDirOfAnotherUser checks that checks, runs, and readers refuse a work_dir of another user,
// with advice.
func TestWorkDirOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make directories of other users")
	}
	w := newWorld(t)
	must(t, os.Mkdir(w.workDir, 0o777))
	must(t, os.Chown(w.workDir, 4711, -1))
	for name, set := range map[string]func(o *hosts.Open){
		"a run":    func(o *hosts.Open) {},
		"a check":  func(o *hosts.Open) { o.Check = true },
		"a reader": func(o *hosts.Open) { o.Reads = true },
		"behind a link": func(o *hosts.Open) {
			must(t, os.Symlink(w.workDir, w.workDir+".link"))
			o.WorkDir = w.workDir + ".link"
		},
	} {
		o := w.open()
		set(o)
		f := w.start(o)
		want := fmt.Sprintf("work_dir cannot be used: %s belongs to user 4711, not to us; set another work_dir for this host", o.WorkDir)
		if f.hello.Error != want || f.hello.Passing {
			t.Errorf("%s: %q, passing %v", name, f.hello.Error, f.hello.Passing)
		}
		f.wait()
	}
	if names, err := list(w.workDir); err != nil || len(names) > 0 {
		t.Errorf("left there: %v, %v", names, err)
	}
}
