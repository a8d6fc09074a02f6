//go:build linux

package remote

import (
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
	w := newWorld(t)
	ready := w.fifo("ready")
	open := w.open()
	open.GraceSeconds = 1 // for what the first job left; by then the link is long broken
	f := w.start(open)
	f.launch(job("1.1", "sh -c 'trap \"\" TERM; echo up > "+ready+"; while :; do sleep 1000; done' & exit 0"))
	w.hear(ready)
	f.exit("1.1")
	f.launch(job("2.1", "trap 'exit 0' TERM; echo up > "+ready+"; while :; do sleep 1000 & wait; done"))
	w.hear(ready)
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
	if len(g.hello.Warnings) > 0 {
		t.Errorf("warnings %q", g.hello.Warnings)
	}
	f.wait()
	g.launch(job("1.1", "exit 3"))
	g.exits("1.1", 3)
	g.bye()
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
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}
	g := w.start(w.open())
	if p, ok := readProc(f.cmd.Process.Pid); !ok || p.state == 'Z' {
		t.Fatal("a helper without a note was ended: the test shows nothing")
	}
	write(t, note, "")
	g.bye()
	f.wait()
}

// TestNoteOfAnotherProcess checks that a process that is not a helper is not ended, even if a note
// names it.
func TestNoteOfAnotherProcess(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	self, _ := readProc(os.Getpid())
	write(t, w.spool().path(dirHelpers, holder{0, self.pid, self.start}.String()), "")
	g := w.start(w.open()) // a helper that trusts the note would end the test itself
	f.wait()
	g.bye()
}

// TestFencedOrders checks that every command of an older dispatcher is answered with the
// information that it is fenced (E7).
func TestFencedOrders(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	ids := []jobs.AttemptID{attemptID(t, "1.1"), attemptID(t, "2.1")}
	for _, m := range []hosts.Message{
		&hosts.Kill{Attempts: ids}, &hosts.Withdraw{Attempts: ids}, &hosts.Probe{Attempts: ids},
		&hosts.Launch{ExpireUptime: uptime() + polltest.Patience, Jobs: []hosts.LaunchJob{job("1.1", "true"), job("2.1", "true")}},
	} {
		f.send(m)
		if r := f.refused("1.1"); r.FencedBy != 1 || len(r.Attempts) != 2 || r.Why == "" {
			t.Errorf("%s: answered with %+v", m.Word(), r)
		}
	}
	f.bye()
}

// TestShutOutWhileRunning checks that a helper that finds a newer dispatcher's epoch while it
// serves reports that and exits (E7). It ends nothing of the run, even on a request to end the run.
func TestShutOutWhileRunning(t *testing.T) {
	for _, how := range []string{"found in work_dir", "told to end the run"} {
		w := newWorld(t)
		gate, ready := w.fifo("gate"), w.fifo("ready")
		open := w.open()
		f := w.start(open)
		f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 3"))
		w.hear(ready)
		if how == "found in work_dir" {
			write(t, w.workDir+"/"+w.run+"/epoch.7", "")
		} else {
			ctl, err := openControl(w.spool().dir)
			if err != nil {
				t.Fatal(err)
			}
			ctl.at(ctlEpoch).Store(7)
			f.send(&hosts.Bye{End: true})
		}
		f.wait()
		if strings.Contains(f.stderr.String(), "nothing heard") {
			t.Errorf("%s: it left only because it heard nothing", how)
		}
		if m := await(f, func(m *hosts.Refused) bool { return true }); m.FencedBy != 7 || len(m.Attempts) > 0 {
			t.Errorf("%s: heard %+v, want fenced by 7 and no attempt", how, m)
		}
		open.Epoch = 7
		g := w.start(open)
		if p := g.probe("1.1"); p.Answer != hosts.IsRunning {
			t.Errorf("%s: the job is %v, want running", how, p.Answer)
		}
		w.say(gate)
		g.exits("1.1", 3)
		g.bye()
	}
}

// TestSilence checks that a helper that receives nothing exits and that running jobs continue.
func TestSilence(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	t.Setenv(silenceEnv, "2s")
	f := w.start(w.open())
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 3"))
	w.hear(ready)
	if err := f.wait(); err == nil || !strings.Contains(f.stderr.String(), "nothing heard from the dispatcher for 2s") {
		t.Errorf("it ended with %v: %q", err, f.stderr.String())
	}
	t.Setenv(silenceEnv, "")
	g := w.start(w.open())
	w.say(gate)
	g.exits("1.1", 3)
	g.bye()
}

// TestUsualLimits checks the limits that the program uses outside of tests.
func TestUsualLimits(t *testing.T) {
	if defaultLimits.silence.Seconds() != 30 || defaultLimits.nowhere.Seconds() != 60 || defaultLimits.beat.Seconds() != 3 {
		t.Errorf("%+v", defaultLimits)
	}
}

// TestDeletedRun checks that a supervisor exits if its spool and run directory are deleted while
// its job runs, because there is nobody to report to (promise 4).
func TestDeletedRun(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	t.Setenv(nowhereEnv, "200ms")
	f := w.start(w.open())
	hold, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	f.launch(job("1.1", "exec 3< "+gate+"; echo $PPID > "+ready+"; read x <&3"))
	p, ok := readProc(atoi(t, w.hear(ready)))
	f.kill9()
	for _, dir := range []string{w.spool().dir, w.runDir} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	hold.WriteString("go\n")
	for end := uptime() + polltest.Patience; ok && (holder{0, p.pid, p.start}).alive(); waitAny([]proc{p}, polltest.Patience) {
		if uptime() > end {
			t.Fatal("the supervisor is still there")
		}
	}
}

// TestProgramInUse checks that the modification time of the program in use is refreshed, because a
// version that looks unused for a month is removed.
func TestProgramInUse(t *testing.T) {
	w := newWorld(t)
	exe, old := filepath.Join(w.base, "bin", "dcs-tui-test"), time.Unix(0, 0)
	if err := os.Chtimes(exe, old, old); err != nil {
		t.Fatal(err)
	}
	w.start(w.open()).bye()
	if info, err := os.Stat(exe); err != nil || info.ModTime().Equal(old) {
		t.Errorf("the version in use looks unused: %v", err)
	}
}

// TestEndRunEndsStoppedSupervisorOfEarlierHelper checks that the end of a run also ends a
// supervisor of an earlier helper that has no job and cannot exit by itself (promise 4).
func TestEndRunEndsStoppedSupervisorOfEarlierHelper(t *testing.T) {
	w := newWorld(t)
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "echo $PPID"))
	f.exit("1.1")
	p, ok := readProc(atoi(t, w.content("1.1", jobs.FileOut)))
	if !ok {
		t.Fatal("its supervisor is gone")
	}
	signalAll([]proc{p}, unix.SIGSTOP)
	f.kill9()
	w.start(open).bye()
	if (holder{0, p.pid, p.start}).alive() {
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
	w.hear(ready)
	if p := f.probe("2.1"); p.Answer != hosts.Buffered {
		t.Fatalf("the second job: %+v", p)
	}
	f.kill9()
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
// that sees the run directory from starting waiting jobs. The next helper finds these jobs.
func TestStopWithoutADispatcher(t *testing.T) {
	for _, name := range []string{"STOP", "STOP.now"} {
		w := newWorld(t)
		stop := filepath.Join(w.runDir, name)
		ran, idle := jobWithoutHelper(t, w, func() { write(t, stop, "") })
		polltest.Until(t, "the supervisor has left", idle)
		if ran() {
			t.Errorf("a job was started in spite of %s", name)
		}
		f := w.start(w.open())
		f.exit("2.1")
		f.bye()
	}
}

// TestStopFilesThatDoNotCount checks that a symbolic link and a file of another user do not stop
// the host.
func TestStopFilesThatDoNotCount(t *testing.T) {
	for name, prepare := range map[string]func(stop string) error{
		"none":   func(stop string) error { return nil },
		"a link": func(stop string) error { return os.Symlink("nonce", stop) },
		"another user's": func(stop string) error {
			if err := os.WriteFile(stop, nil, 0o644); err != nil {
				return err
			}
			if os.Getuid() != 0 {
				return os.Remove(stop)
			}
			return os.Chown(stop, 4711, -1)
		},
	} {
		w := newWorld(t)
		ran, idle := jobWithoutHelper(t, w, func() { must(t, prepare(filepath.Join(w.runDir, "STOP"))) })
		polltest.Until(t, "the second job has started with "+name, ran)
		polltest.Until(t, "the supervisor has left", idle)
		w.start(w.open()).bye()
	}
}

// TestStopOnAHungDirectory checks that a run directory that hangs when it is listed delays a
// supervisor by no more than stopTimeout.
func TestStopOnAHungDirectory(t *testing.T) {
	w := newWorld(t)
	release := hang(t, w, "slot0", "open", "/run")
	began := time.Now()
	ran, idle := jobWithoutHelper(t, w, func() {})
	polltest.Until(t, "the second job has started", ran)
	if took := time.Since(began); took < stopTimeout {
		t.Errorf("the directory was not looked at, or not waited for: %v", took)
	}
	release()
	polltest.Until(t, "the supervisor has left", idle)
	w.start(w.open()).bye()
}

// TestStopIsTheDispatchersBusiness checks that supervisors do not look for stop files while there
// is a helper.
func TestStopIsTheDispatchersBusiness(t *testing.T) {
	w := newWorld(t)
	write(t, filepath.Join(w.runDir, "STOP"), "")
	f := w.start(w.open())
	f.launch(job("1.1", "exit 3"))
	f.exits("1.1", 3)
	f.bye()
}
