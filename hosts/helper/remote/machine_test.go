//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts"
)

// TestMachine: a machine has one id in a run, under each name, also when its directory of
// the run is removed while it runs attempts, which it can still tell of; two machines that
// share work_dir have two, and a check has none.
func TestMachine(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	id := f.hello.Machine
	if random, system, ok := strings.Cut(id, "-"); !ok || len(random) != 16 || len(system) != 8 {
		t.Fatalf("id %q", id)
	}
	ready, gate := w.fifo("ready"), w.fifo("gate")
	f.launch(job("1.1", "echo >"+ready+"; read x <"+gate))
	w.hear(ready)
	f.kill9()
	if err := os.RemoveAll(filepath.Join(w.workDir, w.run)); err != nil {
		t.Fatal(err)
	}
	g := w.start(w.open())
	if g.hello.Machine != id {
		t.Errorf("id %q after its directory of the run was removed, want %q", g.hello.Machine, id)
	}
	if p := g.probe("1.1"); p.Answer != hosts.IsRunning {
		t.Errorf("%+v, want running", p)
	}
	w.say(gate)
	g.exit("1.1")
	g.kill9()

	// Another run, and another name.
	open := w.open()
	open.Host = "melon2"
	h := w.start(open)
	if h.hello.Machine == id || h.hello.Machine == "" {
		t.Errorf("id %q of another host that shares work_dir, want another one than %q", h.hello.Machine, id)
	}
	h.kill9()
	open = w.open()
	open.Check = true
	h = w.start(open)
	if h.hello.Machine != "" {
		t.Errorf("a check has the id %q", h.hello.Machine)
	}
	h.kill9()

	// Another machine under the same name has neither the note nor the spool.
	other := newWorld(t)
	other.run = w.run
	write(t, filepath.Join(other.runDir, "nonce"), "nonce-"+w.run+"\n")
	h = other.start(other.open())
	if h.hello.Machine == id {
		t.Errorf("another machine has the same id %q", id)
	}
	h.bye()
	w.start(w.open()).bye()
}
