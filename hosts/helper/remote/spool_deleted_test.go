//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

// deletions are what somebody may delete on a host of what the program keeps there.
var deletions = map[string]func(w *world) []string{
	"spool":               func(w *world) []string { return []string{w.spool().dir} },
	"what is in the base": func(w *world) []string { return within(w.base) },
	"what is in the runs": func(w *world) []string { return within(filepath.Join(w.base, "runs")) },
	"in the spool":        func(w *world) []string { return within(w.spool().dir) },
	"files of the spool":  func(w *world) []string { return filesBelow(w.spool().dir) },
	"attempts":            func(w *world) []string { return []string{filepath.Join(w.runDir, "attempts")} },
	"spool and attempts": func(w *world) []string {
		return []string{w.spool().dir, filepath.Join(w.runDir, "attempts")}
	},
	"the program": func(w *world) []string { return within(filepath.Join(w.base, "bin")) },
	"share_dir":   func(w *world) []string { return []string{filepath.Join(filepath.Dir(w.base), "share")} },
	"work_dir":    func(w *world) []string { return []string{w.workDir} },
}

// within returns the paths of what is in a directory.
func within(dir string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}

// filesBelow returns the paths of everything below a directory that is no directory.
func filesBelow(dir string) (paths []string) {
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// deletePath deletes a file or a directory in which processes may create files meanwhile.
func deletePath(t testing.TB, path string) {
	t.Helper()
	polltest.Until(t, path+" is deleted", func() bool { return os.RemoveAll(path) == nil })
}

// after deletes paths and returns a helper that serves the world then: f, or a new one if f has left
// because something of its spool is gone.
func (f *helperProcess) after(paths []string) *helperProcess {
	f.w.t.Helper()
	spool, inSpool := f.w.spool().dir, false
	for _, path := range paths {
		inSpool = inSpool || path == spool || strings.HasPrefix(path, spool+"/") || strings.HasPrefix(spool, path+"/")
		deletePath(f.w.t, path)
	}
	// A few looks at the spool are enough to make again what only the helper needs. Heartbeats that were
	// made before the deletion may still wait to be read.
	deleted := uptime()
	for seen := 0; inSpool || seen < 5; {
		m, open := <-f.msgs
		if !open {
			break
		}
		if b, ok := m.(*hosts.Heartbeat); ok && b.Uptime >= deleted {
			seen++
		}
		f.pending = append(f.pending, m)
	}
	if !inSpool {
		return f
	}
	f.cmd.Wait()
	f.ended = true
	if text := f.stderr.String(); !strings.Contains(text, "was deleted on the host") {
		f.w.t.Errorf("the helper left and said %q", text)
	}
	exe, err := os.Executable()
	must(f.w.t, err)
	must(f.w.t, os.MkdirAll(filepath.Join(f.w.base, "bin"), 0o700))
	os.Link(exe, filepath.Join(f.w.base, "bin", "dcs-tui-test")) // as the bootstrap would
	return f.w.start(f.w.open())
}

// TestDeletedWhileIdle checks that a host makes again what was deleted while nothing ran, and then
// runs jobs (promise 5).
func TestDeletedWhileIdle(t *testing.T) {
	for name, list := range deletions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			f := w.start(w.open())
			f.launch(job("1.1", "exit 3"))
			f.exits("1.1", 3)
			f = f.after(list(w))
			f.launch(job("2.1", "exit 4"), job("3.1", "exit 5"), job("4.1", "exit 6"))
			for id, exit := range map[string]int{"2.1": 4, "3.1": 5, "4.1": 6} {
				if p := f.settled(id); p.Answer != hosts.HasExited || p.Outcome.Exit != exit {
					t.Errorf("%s: %+v, want exit %d", id, p, exit)
				}
			}
		})
	}
}

// TestDeletedWhileJobsRun checks that a job that runs during a deletion runs to its end once, and
// that its outcome is known. A job that waited runs at most once (promises 1 and 2).
func TestDeletedWhileJobsRun(t *testing.T) {
	for name, list := range deletions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.open()
			o.Slots = 1
			f := w.start(o)
			starts := filepath.Join(w.runDir, "starts")
			f.hold("1.1", "echo 1 >> "+starts+"; exit 3", job("2.1", "echo 2 >> "+starts+"; exit 4"))
			f = f.after(list(w))
			f.answers("1.1", hosts.IsRunning)
			w.release("1.1")
			if p := f.settled("1.1"); p.Answer != hosts.HasExited || p.Outcome.Exit != 3 {
				t.Errorf("1.1: %+v, want exit 3", p)
			}
			if p := f.settled("2.1"); p.Answer != hosts.NeverStarted &&
				(p.Answer != hosts.HasExited || p.Outcome.Exit != 4) {
				t.Errorf("2.1: %+v", p)
			}
			f.launch(job("1.1", "echo again >> "+starts), job("3.1", "exit 5"))
			if p := f.settled("3.1"); p.Answer != hosts.HasExited || p.Outcome.Exit != 5 {
				t.Errorf("3.1: %+v, want exit 5", p)
			}
			b, _ := os.ReadFile(starts)
			if got := string(b); got != "1\n" && got != "1\n2\n" {
				t.Errorf("started: %q", got)
			}
		})
	}
}

// TestDeletedWhileNobodyLooked checks the same if no helper is connected at the time of the
// deletion.
func TestDeletedWhileNobodyLooked(t *testing.T) {
	for name, list := range deletions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			f := w.start(w.open())
			f.hold("1.1", "exit 3")
			f.crash()
			for _, path := range list(w) {
				deletePath(t, path)
			}
			exe, err := os.Executable()
			must(t, err)
			must(t, os.MkdirAll(filepath.Join(w.base, "bin"), 0o700))
			os.Link(exe, filepath.Join(w.base, "bin", "dcs-tui-test"))
			f = w.start(w.open())
			f.answers("1.1", hosts.IsRunning)
			w.release("1.1")
			if p := f.settled("1.1"); p.Answer != hosts.HasExited || p.Outcome.Exit != 3 {
				t.Errorf("%+v, want exit 3", p)
			}
		})
	}
}
