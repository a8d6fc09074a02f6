//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

// alone simulates a host whose helper dies while one job runs and another waits in the
// spool. It calls prepare, which changes the run directory, before the first job ends.
// ran reports whether the second job has started, and idle whether no supervisor is
// left.
func alone(t *testing.T, w *world, prepare func()) (ran, idle func() bool) {
	gate, ready := w.fifo("gate"), w.fifo("ready")
	mark := filepath.Join(w.base, "ran")
	o := w.open()
	o.Slots = 1
	f := w.start(o)
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

// With no dispatcher alive, STOP and STOP.now keep a host that sees the run directory
// from starting waiting jobs. The next helper finds these jobs.
func TestStopWithoutADispatcher(t *testing.T) {
	for _, name := range []string{"STOP", "STOP.now"} {
		w := newWorld(t)
		stop := filepath.Join(w.runDir, name)
		ran, idle := alone(t, w, func() { write(t, stop, "") })
		polltest.Until(t, bound, "the supervisor has left", idle)
		if ran() {
			t.Errorf("a job was started in spite of %s", name)
		}
		f := w.start(w.open())
		f.exit("2.1")
		f.bye()
	}
}

// A symbolic link and a file of another user do not stop the host.
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
		ran, idle := alone(t, w, func() { must(t, prepare(filepath.Join(w.runDir, "STOP"))) })
		polltest.Until(t, bound, "the second job has started with "+name, ran)
		polltest.Until(t, bound, "the supervisor has left", idle)
		w.start(w.open()).bye()
	}
}

// A run directory that hangs when it is listed delays a supervisor by no more than
// stopLookTime.
func TestStopOnAHungDirectory(t *testing.T) {
	w := newWorld(t)
	release := hang(t, w, "slot0", "open", "/run")
	began := time.Now()
	ran, idle := alone(t, w, func() {})
	polltest.Until(t, bound, "the second job has started", ran)
	if took := time.Since(began); took < stopLookTime {
		t.Errorf("the directory was not looked at, or not waited for: %v", took)
	}
	release()
	polltest.Until(t, bound, "the supervisor has left", idle)
	w.start(w.open()).bye()
}

// While there is a helper, supervisors do not look for stop files.
func TestStopIsTheDispatchersBusiness(t *testing.T) {
	w := newWorld(t)
	write(t, filepath.Join(w.runDir, "STOP"), "")
	f := w.start(w.open())
	f.launch(job("1.1", "exit 3"))
	if o := f.exit("1.1"); o.Exit != 3 {
		t.Errorf("%+v", o)
	}
	f.bye()
}
