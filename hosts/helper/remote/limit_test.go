//go:build linux

package remote

import (
	"path/filepath"
	"testing"

	"dcs-tui/hosts"
)

// D7: a host can be given more slots than it was opened with, at once, and fewer; what
// runs beyond them finishes, and its supervisors leave and take nothing more.
func TestLimitBeyondSlots(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	gate := func(id string) string { return filepath.Join(w.runDir, "gate"+id) }
	gated := func(id string) hosts.LaunchJob {
		return job(id, "echo up > "+ready+"; read x < "+w.fifo("gate"+id))
	}
	f := w.start(w.open()) // two slots
	f.launch(gated("1.1"), gated("2.1"), gated("3.1"), gated("4.1"))
	w.hearTimes(ready, 2)
	f.send(&hosts.Limit{Slots: 4})
	w.hearTimes(ready, 2)
	f.send(&hosts.Limit{Slots: 1})
	f.launch(gated("5.1"), gated("6.1"))
	first := ""
	for _, id := range []string{"1.1", "2.1", "3.1", "4.1"} {
		if f.probe(id).Slot == 1 {
			first = id
			continue
		}
		w.say(gate(id))
		f.exit(id)
	}
	for _, id := range []string{"5.1", "6.1"} {
		if p := f.probe(id); p.Answer != hosts.Buffered {
			t.Errorf("%s is %v in slot %d while slot 1 of 1 is busy", id, p.Answer, p.Slot)
		}
	}
	w.say(gate(first))
	f.exit(first)
	for range 2 { // one after the other
		w.hearTimes(ready, 1)
		one, other := "5.1", "6.1"
		if f.probe(one).Answer != hosts.IsRunning {
			one, other = other, one
		}
		if p := f.probe(other); p.Answer == hosts.IsRunning {
			t.Errorf("%s and %s run at once under a limit of 1", one, other)
		}
		w.say(gate(one))
		f.exit(one)
	}
	f.bye()
}

// A helper that follows another begins with the limit that the dispatcher gave last:
// what waits in the spool must not start in slots that were taken away.
func TestLimitOutlivesHelper(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.send(&hosts.Limit{Slots: 0})
	f.launch(job("1.1", "exit 3"))
	if p := f.probe("1.1"); p.Answer != hosts.Buffered {
		t.Fatalf("%v, want buffered", p.Answer)
	}
	f.kill9()
	g := w.start(w.open())
	if p := g.probe("1.1"); p.Answer != hosts.Buffered {
		t.Errorf("%v behind a helper that was killed under a limit of 0, want buffered", p.Answer)
	}
	g.send(&hosts.Limit{Slots: 3})
	if o := g.exit("1.1"); o.Exit != 3 {
		t.Errorf("%+v", o)
	}
	g.bye()
}
