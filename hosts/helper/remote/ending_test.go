//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

// TestEndRunOutlivesLink checks that the end of a run is completed once it has begun, even if the
// link breaks in the middle and every write to it fails (promise 4).
func TestEndRunOutlivesLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ready := w.fifo("ready")
	open := w.open()
	open.GraceSeconds = 1 // for what the first job left; by then the link is long broken
	f := w.start(open)
	f.launch(job("1.1", "sh -c 'trap \"\" TERM; echo up > "+ready+"; while :; do sleep 1000; done' & exit 0"))
	w.receive(ready)
	f.exit("1.1")
	f.launch(job("2.1", "trap 'exit 0' TERM; echo up > "+ready+"; while :; do sleep 1000 & wait; done"))
	w.receive(ready)
	f.send(&hosts.Bye{End: true})
	f.in.Close()
	f.stdout.Close()
	f.wait()
	if _, err := os.Stat(w.spool().dir); !os.IsNotExist(err) {
		t.Errorf("the spool is still there: %v", err)
	} // nothingLeft checks for remaining processes
}

// TestStoppedHelperIsEnded checks that a helper that is stopped when its successor starts is ended
// (promise 4).
func TestStoppedHelperIsEnded(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	unix.Kill(f.cmd.Process.Pid, unix.SIGSTOP)
	g := w.start(w.open())
	for _, warning := range g.hello.Warnings { // on a slow machine, it dies only after that
		if !strings.Contains(warning, "could not be ended") {
			t.Errorf("warning %q", warning)
		}
	}
	f.wait()
	g.launch(job("1.1", "exit 3"))
	g.exits("1.1", 3)
}

// TestEndRunEndsOlderHelper checks that the end of a run also ends older helpers (promise 4).
func TestEndRunEndsOlderHelper(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	unix.Kill(f.cmd.Process.Pid, unix.SIGSTOP)
	notes, err := w.spool().list(dirHelpers)
	if err != nil || len(notes) != 1 {
		t.Fatalf("notes of helpers: %q, %v", notes, err)
	}
	note := w.spool().path(dirHelpers, notes[0])
	// The older helper must survive its successor's start.
	must(t, os.Remove(note))
	g := w.start(w.open())
	if p, ok := readProc(f.cmd.Process.Pid); !ok || p.state == 'Z' {
		t.Fatal("a helper without a note was ended: the test shows nothing")
	}
	write(t, note, "")
	g.endRun()
	f.wait()
}

// TestNoteOfAnotherProcess checks that a process that is not a helper is not ended, even if a note
// names it.
func TestNoteOfAnotherProcess(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	self, _ := readProc(os.Getpid())
	write(t, w.spool().path(dirHelpers, holder{0, self.pid, self.start}.String()), "")
	w.start(w.open()) // a helper that trusts the note would end the test itself
	f.wait()
}

// TestCommandsOfAnOlderDispatcherAreFenced checks that every command of an older dispatcher is
// answered with the information that it is fenced (E7).
func TestCommandsOfAnOlderDispatcherAreFenced(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	ids := []jobs.AttemptID{attemptID(t, "1.1"), attemptID(t, "2.1")}
	for _, m := range []hosts.Message{
		&hosts.Kill{Attempts: ids}, &hosts.Withdraw{Attempts: ids}, &hosts.Probe{Attempts: ids},
		&hosts.Launch{ExpireUptime: uptime() + polltest.Patience,
			Jobs: []hosts.LaunchJob{job("1.1", "true"), job("2.1", "true")}},
	} {
		f.send(m)
		if r := f.refused("1.1"); r.FencedBy != 1 || len(r.Attempts) != 2 || r.Why == "" {
			t.Errorf("%s: answered with %+v", m.Kind(), r)
		}
	}
	f.send(&hosts.List{})
	if r := await(f, func(*hosts.Refused) bool { return true }); r.FencedBy != 1 {
		t.Errorf("list: answered with %+v", r)
	}
}

// TestHelperExitsIfItFindsANewerEpoch checks that a helper that finds a newer dispatcher's epoch
// while it serves reports that and exits (E7). It ends nothing of the run, even on a request to end
// the run.
func TestHelperExitsIfItFindsANewerEpoch(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"found in work_dir", "told to end the run"} {
		w := newWorld(t)
		if how == "told to end the run" {
			w.env = []string{heartbeatEnv + "=1h"} // the helper does not look for a newer epoch by itself
		}
		open := w.open()
		f := w.start(open)
		f.hold("1.1", "exit 3")
		if how == "found in work_dir" {
			write(t, w.workDir+"/"+w.run+"/epoch.7", "")
		} else {
			w.control().word(ctlEpoch).Store(7)
			f.send(&hosts.Bye{End: true})
		}
		f.wait()
		if strings.Contains(f.stderr.String(), "nothing received") {
			t.Errorf("%s: it left only because it received nothing", how)
		}
		if m := await(f, func(m *hosts.Refused) bool { return true }); m.FencedBy != 7 || len(m.Attempts) > 0 {
			t.Errorf("%s: received %+v, want fenced by 7 and no attempt", how, m)
		}
		open.Epoch = 7
		g := w.start(open)
		g.answers("1.1", hosts.IsRunning)
		w.release("1.1")
		g.exits("1.1", 3)
	}
}

// TestHelperWithoutMessagesExits checks that a helper that receives nothing exits and that running
// jobs continue.
func TestHelperWithoutMessagesExits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.start(w.open())
	f.hold("1.1", "exit 3")
	f.crash()
	// This helper needs no message of the test in time.
	f = w.startWithInput([]hosts.Message{w.open()}, silenceEnv+"=2s")
	if err := f.wait(); err == nil || !strings.Contains(f.stderr.String(),
		"nothing received from the dispatcher for 2s") {
		t.Errorf("it ended with %v: %q", err, f.stderr.String())
	}
	g := w.start(w.open())
	w.release("1.1")
	g.exits("1.1", 3)
}

// TestLimitsOutsideOfTests checks the limits that the program uses outside of tests.
func TestLimitsOutsideOfTests(t *testing.T) {
	if defaultLimits.silence.Seconds() != 30 || defaultLimits.storeTimeout.Seconds() != 60 ||
		defaultLimits.heartbeat.Seconds() != 3 {
		t.Errorf("got %+v, want 30 s of silence, 60 s to store, and a heartbeat every 3 s", defaultLimits)
	}
}

// TestSupervisorOfADeletedRunExits checks that a supervisor exits if its spool and run directory
// are deleted while its job runs, because there is nobody to report to (promise 4).
func TestSupervisorOfADeletedRunExits(t *testing.T) {
	w := newWorld(t, nowhereEnv+"=200ms")
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	hold, err := os.OpenFile(gate, os.O_RDWR, 0)
	must(t, err)
	defer hold.Close()
	f.launch(job("1.1", "exec 3< "+gate+"; echo $PPID > "+ready+"; read x <&3"))
	p, ok := readProc(atoi(t, w.receive(ready)))
	f.crash()
	for _, dir := range []string{w.spool().dir, w.runDir} {
		must(t, os.RemoveAll(dir))
	}
	hold.WriteString("go\n")
	polltest.Until(t, "the supervisor has left", func() bool { return !ok || !(holder{0, p.pid, p.start}).isAlive() })
}

// TestProgramInUseIsRefreshed checks that the modification time of the program in use is refreshed,
// because a version that looks unused for a month is removed.
func TestProgramInUseIsRefreshed(t *testing.T) {
	w := newWorld(t)
	exe, old := filepath.Join(w.base, "bin", "dcs-tui-test"), time.Unix(0, 0)
	must(t, os.Chtimes(exe, old, old))
	w.start(w.open()).endRun()
	if info, err := os.Stat(exe); err != nil || info.ModTime().Equal(old) {
		t.Errorf("the version in use looks unused: %v", err)
	}
}

// stopIdleSupervisor runs the job 1.1 and stops its supervisor, which then has no job.
func (f *helperProcess) stopIdleSupervisor() proc {
	f.w.t.Helper()
	f.launch(job("1.1", "echo $PPID"))
	f.exit("1.1")
	p, ok := readProc(atoi(f.w.t, f.w.content("1.1", jobs.FileOut)))
	if !ok {
		f.w.t.Fatal("the supervisor is gone")
	}
	signalAll([]proc{p}, unix.SIGSTOP)
	return p
}

// TestEndRunEndsStoppedSupervisorOfEarlierHelper checks that the end of a run also ends a
// supervisor of an earlier helper that has no job and cannot exit by itself (promise 4).
func TestEndRunEndsStoppedSupervisorOfEarlierHelper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.startWith(1)
	p := f.stopIdleSupervisor()
	f.crash()
	w.startWith(1).endRun()
	if (holder{0, p.pid, p.start}).isAlive() {
		t.Error("the supervisor is still there")
	}
}

// jobWithoutHelper simulates a host whose helper dies while one job runs and another waits in the
// spool. It calls prepare, which changes the run directory, before the first job ends. ran reports
// whether the second job has started, and idle reports whether no supervisor is left.
func jobWithoutHelper(t *testing.T, w *world, prepare func()) (ran, idle func() bool) {
	gate, ready := w.fifo("gate"), w.fifo("ready")
	mark := filepath.Join(w.base, "ran")
	f := w.startWith(1)
	f.launch(job("1.1", fmt.Sprintf("echo up > %s; read x < %s", ready, gate)), job("2.1", "touch "+mark))
	w.receive(ready)
	f.answers("2.1", hosts.Buffered)
	f.crash()
	prepare()
	w.say(gate)
	h := &helper{spool: w.spool()}
	return func() bool {
			_, err := os.Stat(mark)
			return err == nil
		}, func() bool {
			for _, p := range scan(nil) {
				if h.spool.isSupervisor(p) && p.state != 'Z' {
					return false
				}
			}
			return true
		}
}

// TestStopWithoutADispatcher checks that, with no dispatcher alive, STOP and STOP.now keep a host
// that sees the run directory from starting waiting jobs. The next helper finds these jobs. A
// symbolic link and a file of another user do not stop the host.
func TestStopWithoutADispatcher(t *testing.T) {
	empty := func(path string) error { return os.WriteFile(path, nil, 0o644) }
	for _, c := range []struct {
		name    string
		prepare func(dir string) error
		runs    bool
	}{
		{"STOP", func(dir string) error { return empty(dir + "/STOP") }, false},
		{"STOP.now", func(dir string) error { return empty(dir + "/STOP.now") }, false},
		{"nothing", func(dir string) error { return nil }, true},
		{"a link", func(dir string) error { return os.Symlink("nonce", dir+"/STOP") }, true},
		{"a file of another user", func(dir string) error {
			if os.Getuid() != 0 {
				return nil
			}
			return errors.Join(empty(dir+"/STOP"), os.Chown(dir+"/STOP", 4711, -1))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, patientEnv+"=1")
			ran, idle := jobWithoutHelper(t, w, func() { must(t, c.prepare(w.runDir)) })
			polltest.Until(t, "the supervisor has left", idle)
			if ran() != c.runs {
				t.Errorf("the second job was started: %t, want %t", ran(), c.runs)
			}
			w.start(w.open()).settled("2.1")
		})
	}
}

// TestStopOnAHungDirectory checks that a run directory that hangs when it is listed delays a
// supervisor by no more than stopTimeout.
func TestStopOnAHungDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, os.MkdirAll(filepath.Join(w.runDir, "attempts", "000"), 0o700))
	_, release := hangNth(t, w, 2, "slot0", "open", "/run") // the first is for the claim of the first job
	began := time.Now()
	ran, idle := jobWithoutHelper(t, w, func() {})
	polltest.Until(t, "the second job has started", ran)
	if took := time.Since(began); took < stopTimeout {
		t.Errorf("the directory was not looked at, or not waited for: %v", took)
	}
	release()
	polltest.Until(t, "the supervisor has left", idle)
	w.start(w.open()).endRun()
}

// TestStopIsTheDispatchersBusiness checks that supervisors do not look for stop files while there
// is a helper.
func TestStopIsTheDispatchersBusiness(t *testing.T) {
	w := newWorld(t)
	write(t, filepath.Join(w.runDir, "STOP"), "")
	f := w.start(w.open())
	f.launch(job("1.1", "exit 3"))
	f.exits("1.1", 3)
}

// TestUnusedSpoolIsRemoved checks that a helper that was never given anything leaves nothing behind if
// its link ends without a goodbye, as when a run ends while it connects. One that was given a limit,
// or that found a spool, keeps it: its dispatcher comes back.
func TestUnusedSpoolIsRemoved(t *testing.T) {
	exists := func(w *world) bool {
		_, err := os.Stat(w.spool().dir)
		return err == nil
	}
	leave := func(f *helperProcess) {
		f.in.Close()
		f.wait()
	}
	t.Run("unused", func(t *testing.T) {
		w := newWorld(t, patientEnv+"=1")
		leave(w.start(w.open()))
		if _, err := os.Stat(filepath.Dir(w.spool().dir)); !os.IsNotExist(err) {
			t.Errorf("the spool is left: %v", err)
		}
		f := w.start(w.open()) // a later connection works
		f.launch(job("1.1", "exit 0"))
		f.succeeds("1.1")
		f.endRun()
	})
	t.Run("an outcome is kept in it", func(t *testing.T) {
		w := newWorld(t, patientEnv+"=1")
		f := w.start(w.open())
		kept := w.spool().path(dirDone, "1.1")
		write(t, kept, "the outcome of a job of a deleted spool")
		leave(f)
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("the outcome is gone: %v", err)
		}
	})
	t.Run("used", func(t *testing.T) {
		w := newWorld(t, patientEnv+"=1")
		f := w.start(w.open())
		f.send(&hosts.Limit{Slots: 1})
		leave(f)
		if !exists(w) {
			t.Error("the spool is gone")
		}
		leave(w.start(w.open()))
		if !exists(w) {
			t.Error("the spool that a helper has found is gone")
		}
		w.start(w.open()).endRun()
	})
}
