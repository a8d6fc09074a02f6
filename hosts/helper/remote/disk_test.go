//go:build linux

package remote

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	must(w.t, os.MkdirAll(dir, 0o700))
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
	must(w.t, err)
	defer f.Close()
	for b := make([]byte, 4096); ; {
		if _, err := f.Write(b); err != nil {
			return path
		}
	}
}

// newWorldOnSmallDisk returns a world whose attempts are on a small disk of their own.
func newWorldOnSmallDisk(t *testing.T, size string) (w *world, open *hosts.Open, dir string) {
	w = newWorld(t, patientEnv+"=1")
	disk := filepath.Join(w.runDir, "disk")
	w.tmpfs(disk, size)
	open = w.open()
	open.Nonce, open.WorkDir = "another", disk
	return w, open, filepath.Join(disk, w.run)
}

// TestDiskFillsAndEmpties checks that the outcome of a job that fills its disk is still written,
// and mentions the full disk (promise 3). Other jobs are refused with one message and are not
// charged. Everything continues without intervention when there is space again.
func TestDiskFillsAndEmpties(t *testing.T) {
	w, open, dir := newWorldOnSmallDisk(t, "512k")
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "exit 5"))
	if o := f.exit("1.1"); o.Exit != 5 || o.DiskFull {
		t.Errorf("with space: %+v", o)
	}
	f.launch(job("2.1", "head -c 1000000 /dev/zero; exit 6"))
	if o := f.exit("2.1"); o.Exit != 6 || !o.DiskFull {
		t.Errorf("on the full disk: %+v, want exit 6 with the hint", o)
	}
	w.checkComplete(dir, "2.1", 6)
	ran := filepath.Join(w.runDir, "ran")
	f.launch(job("3.1", "echo x > "+ran))
	if m := f.refused("3.1"); !strings.Contains(m.Why, "no space") || strings.Contains(m.Why, "\n") {
		t.Errorf("refused with %+v", m)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a job ran whose outcome could not be promised")
	}
	// Without space for a tombstone, the attempt cannot be settled.
	if p := f.probe("3.1"); p.Answer != hosts.NeverStarted &&
		(p.Answer != hosts.Unknown || !strings.Contains(p.Why, "no space")) {
		t.Errorf("answer %+v", p)
	}
	other := *open
	other.Run += "x" // it has no attempt there, so there is nothing to report
	w.mustNotStart(&other, "no space")
	must(t, os.Truncate(jobs.AttemptFile(dir, attemptID(t, "2.1"), jobs.FileOut), 0))
	f.launch(job("3.2", "exit 7"))
	if o := f.exit("3.2"); o.Exit != 7 || o.DiskFull {
		t.Errorf("with space again: %+v", o)
	}
	w.checkComplete(dir, "3.2", 7)
}

// TestTombstoneOnAFullDisk checks that an attempt whose tombstone has no space on the disk never
// looks claimed to another goroutine, because its job would be charged with a death.
func TestTombstoneOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	h, c := w.helperWithoutProcess()
	disk := filepath.Dir(w.file("1.1", jobs.FileStatus))
	w.tmpfs(disk, "64k")
	w.fill(disk)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 { // each waits for the retries of a full disk
			if h.tombstone(c.Attempt) == nil {
				return
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
			if f, err := h.readFate(c.Attempt); err != nil || f.State != attempts.Nothing &&
				f.State != attempts.NeverStarts {
				t.Fatalf("got state %v (%v), want nothing or a tombstone", f.State, err)
			}
		}
	}
}

// TestHintAboutAFullDiskCoversTheWorkingDirectory checks that the hint about a full disk also
// covers the job's own directory, and that a successful job has no hint.
func TestHintAboutAFullDiskCoversTheWorkingDirectory(t *testing.T) {
	w := newWorld(t, patientEnv+"=1")
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
}

// TestJobsEndWhileTheSpoolIsFull checks what happens while the disk of the spool is full. Running
// jobs end normally, also when they are killed. New jobs are refused. Everything continues when
// there is space again.
func TestJobsEndWhileTheSpoolIsFull(t *testing.T) {
	w := newWorld(t)
	spoolDisk := filepath.Join(w.base, "runs")
	w.tmpfs(spoolDisk, "256k")
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 6"),
		job("2.1", "echo up > "+ready+"; sleep 1000"))
	w.receiveLines(ready, 2)
	filler := w.fill(spoolDisk)
	long := job("3.1", "exit 1 # "+strings.Repeat("x", 50_000))
	f.launch(long)
	if m := f.refused("3.1"); !strings.Contains(m.Why, spoolDisk) || !strings.Contains(m.Why, "no space") ||
		strings.Contains(m.Why, "\n") {
		t.Errorf("refused with %+v, want a reason that names %s", m, spoolDisk)
	}
	f.kill("2.1")
	if o := f.exit("2.1"); o.Signal == "" {
		t.Errorf("killed: %+v", o)
	}
	w.say(gate)
	f.exits("1.1", 6)
	must(t, os.Remove(filler))
	long.Attempt = attemptID(t, "3.2")
	f.launch(long)
	if o := f.exit("3.2"); o.Exit != 1 || o.Error != "" {
		t.Errorf("with space again: %+v", o)
	}
}

// TestKillWithReadOnlySpool checks that a kill ends a job even if nothing can be written to the
// spool.
func TestKillWithReadOnlySpool(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", escapingProcesses(w, ready)))
	w.receiveLines(ready, 3)
	stop := w.spool().path(dirStop)
	must(t, os.Remove(stop))
	write(t, stop, "in the way")
	f.kill("1.1")
	if o := f.exit("1.1"); o.Signal == "" {
		t.Errorf("%+v, want it ended", o)
	}
	// The supervisor does not know about the kill and reports the end as soon as the shell is dead.
	polltest.Until(t, "all of its processes have ended", func() bool { return len(w.alive()) == 0 })
}

// TestStopOfWhatHasEnded checks that a request to stop a job does not stay in the spool if the job
// ends by itself in the meantime.
func TestStopOfWhatHasEnded(t *testing.T) {
	s, id := spool{t.TempDir()}, attemptID(t, "1.1")
	must(t, os.Mkdir(s.path(dirStop), 0o700))
	h := &helper{spool: s, running: map[jobs.AttemptID]*heldAttempt{id: {ended: make(chan struct{})}}}
	close(h.running[id].ended)
	h.endAttempts([]jobs.AttemptID{id})
	if left, err := s.list(dirStop); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v, want nothing", left, err)
	}
}

// TestWhichErrorsAreNotCharged checks which errors are not charged to the job, because the host
// lacks a resource that it should provide, and which file system errors may go away without a
// person's help.
func TestWhichErrorsAreNotCharged(t *testing.T) {
	for err, want := range map[error]struct{ host, transient bool }{
		unix.ENOSPC: {true, true}, unix.EDQUOT: {true, true}, unix.EROFS: {true, false}, unix.ESTALE: {true, true},
		unix.EIO: {true, true}, unix.EAGAIN: {true, false}, unix.ENOENT: {}, unix.EACCES: {}, unix.ENOTDIR: {},
		unix.EPERM: {}, unix.E2BIG: {}, unix.EINVAL: {},
	} {
		wrapped := fmt.Errorf("no job can be run here: %w", &fs.PathError{Op: "create", Path: "/x", Err: err})
		if host, transient := isHostsFault(wrapped), isTransient(wrapped); host != want.host ||
			transient != want.transient {
			t.Errorf("%v: the host's fault %t, transient %t; want %+v", err, host, transient, want)
		}
	}
}

// TestLargeCommandsAndOutputs checks a command line of 1 MB and an output of 100 MB.
func TestLargeCommandsAndOutputs(t *testing.T) {
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
}

// TestTrialWriteSurvivesLostReplies checks that tryWrite does not fail if the reply to creating or
// removing a file is lost. The repeated call then returns "exists" or "no such file".
func TestTrialWriteSurvivesLostReplies(t *testing.T) {
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
		err := tryWrite(tempNames{dir, "ws1", holder{1, 2, 3}})
		fault = nil
		if err != nil || lost != 1 {
			t.Errorf("%s: %v, %d lost", op, err, lost)
		}
		if names, _ := os.ReadDir(dir); len(names) != 0 {
			t.Errorf("%s: left behind: %v", op, names)
		}
	}
}

// TestReplaceNamesItsFile checks that the error of a file that cannot be replaced names the file, and
// not the temporary one, whose name differs each time.
func TestReplaceNamesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	fault = func(op, _ string, after bool) error {
		if op == "write" && !after {
			return unix.ENOSPC
		}
		return nil
	}
	err := replace(tempNames{filepath.Dir(path), "ws1", holder{1, 2, 3}}.path(), path, []byte("x"))
	fault = nil
	if want := "write " + path + ": no space left on device"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
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
		"a link of another user to a directory of ours": func(o *hosts.Open) {
			o.WorkDir = w.workDir + ".lure"
			must(t, os.Symlink(t.TempDir(), o.WorkDir))
			must(t, os.Lchown(o.WorkDir, 4711, -1))
		},
	} {
		o := w.open()
		set(o)
		f := w.start(o)
		want := fmt.Sprintf("work_dir cannot be used: %s belongs to user 4711, not to us; "+
			"set another work_dir for this host", o.WorkDir)
		if f.hello.Error != want || f.hello.Passing {
			t.Fatalf("%s: %q, passing %v", name, f.hello.Error, f.hello.Passing)
		}
		f.wait()
	}
	if names, err := listNames(w.workDir); err != nil || len(names) > 0 {
		t.Errorf("left there: %v, %v", names, err)
	}
}

// TestFreeSpaceOfEachDisk checks that heartbeats have the free space of the fullest disk, by which
// min_disk_free decides, wherever attempts and work_dir are, but not that of the spool.
func TestFreeSpaceOfEachDisk(t *testing.T) {
	for _, name := range []string{"attempts", "work", "base/runs"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			disk := filepath.Join(w.runDir, name)
			if name != "attempts" {
				disk = filepath.Join(filepath.Dir(w.base), name)
			}
			w.tmpfs(disk, "1m")
			open := w.open()
			if name == "attempts" {
				open.RunDir = disk
				write(t, filepath.Join(disk, "nonce"), open.Nonce+"\n")
			}
			f := w.start(open)
			if name == "base/runs" {
				f.heartbeat(func(b *hosts.Heartbeat) bool { return b.DiskFree > 1<<20 })
				return
			}
			f.heartbeat(func(b *hosts.Heartbeat) bool { return b.DiskFree > 0 && b.DiskFree <= 1<<20 })
			filler := w.fill(disk)
			f.heartbeat(func(b *hosts.Heartbeat) bool { return b.DiskFree == 0 })
			must(t, os.Remove(filler))
		})
	}
}

// TestHelperStartsOnAFullDisk checks that a helper reports what runs although it can write nothing to
// the spool or to work_dir: nothing runs twice while its host answers. It starts nothing and gives the reason, and
// starts jobs again without a person's help when it can write.
func TestHelperStartsOnAFullDisk(t *testing.T) {
	full := func(w *world, dir string) (undo func()) {
		filler := w.fill(dir)
		return func() { must(w.t, os.Remove(filler)) }
	}
	noFiles := func(w *world, dir string) (undo func()) {
		files := filepath.Join(dir, "files")
		must(w.t, os.Mkdir(files, 0o700))
		for i := 0; os.WriteFile(filepath.Join(files, fmt.Sprint(i)), nil, 0o600) == nil; i++ {
		}
		return func() { must(w.t, os.RemoveAll(files)) }
	}
	for name, c := range map[string]struct {
		isSpool bool
		damage  func(*world, string) func()
		why     string
	}{
		"spool full":         {true, full, "no space"},
		"spool no files":     {true, noFiles, "no space"},
		"spool read-only":    {true, readOnly, "read-only"},
		"work_dir full":      {false, full, "no space"},
		"work_dir no files":  {false, noFiles, "no space"},
		"work_dir read-only": {false, readOnly, "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			w, open, _ := newWorldOnSmallDisk(t, "512k,nr_inodes=200")
			disk := open.WorkDir
			if c.isSpool {
				disk = filepath.Join(w.base, "runs")
				w.tmpfs(disk, "512k,nr_inodes=200")
			}
			f := w.start(open)
			f.hold("1.1", "exit 6")
			f.crash()
			undo := c.damage(w, disk)
			open.Epoch = 2
			f = w.start(open)
			if f.hello.Error != "" || f.hello.Machine == "" {
				t.Fatalf("hello %+v, want a helper that reports", f.hello)
			}
			if p := f.probe("1.1"); p.Answer != hosts.IsRunning {
				t.Errorf("answer %+v, want running", p)
			}
			long := job("2.1", "exit 5 # "+strings.Repeat("x", 50_000))
			launch := func(id string) {
				long.Attempt = attemptID(t, id)
				f.send(&hosts.Launch{Epoch: 2, ExpireUptime: uptime() + time.Hour, Jobs: []hosts.LaunchJob{long}})
			}
			launch("2.1")
			if m := f.refused("2.1"); !strings.Contains(m.Why, c.why) || strings.Contains(m.Why, "\n") {
				t.Errorf("refused with %+v, want %q", m, c.why)
			}
			w.release("1.1")
			f.exits("1.1", 6)
			undo()
			if c.isSpool && c.why == "read-only" {
				if err := f.wait(); err == nil || !strings.Contains(f.stderr.String(), errSpoolWritable.Error()) {
					t.Errorf("the helper ended with %v, %q", err, f.stderr.String())
				}
				f = w.start(open)
			}
			launch("2.2")
			f.exits("2.2", 5)
		})
	}
}

// readOnly makes a directory read-only until undo is called.
func readOnly(w *world, dir string) (undo func()) {
	must(w.t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	must(w.t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	w.t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) }) // of the disk itself, if undo was called
	return func() { must(w.t, unix.Unmount(dir, unix.MNT_DETACH)) }
}

// TestReadOnlyWorkDirNeedsAPerson checks that a host that has none of the run's attempts and whose
// work_dir is on a read-only file system is left to a person: waiting does not make it writable.
func TestReadOnlyWorkDirNeedsAPerson(t *testing.T) {
	w, open, _ := newWorldOnSmallDisk(t, "512k")
	readOnly(w, open.WorkDir)
	f := w.start(open)
	if !strings.Contains(f.hello.Error, "work_dir cannot be used: ") || f.hello.Passing {
		t.Errorf("got %q, passing %t; want an error that does not pass", f.hello.Error, f.hello.Passing)
	}
	f.wait()
}
