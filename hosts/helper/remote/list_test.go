//go:build linux

package remote

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// list asks for all that the host has and returns it with the sizes of the pieces.
func (f *far) list() (all map[string]hosts.ProbedJob, pieces []int) {
	f.w.t.Helper()
	all = map[string]hosts.ProbedJob{}
	f.send(&hosts.List{Epoch: 1})
	for last := false; !last; {
		m := await(f, func(*hosts.Listed) bool { return true })
		if m.Why != "" {
			f.w.t.Errorf("the list may not be whole: %s", m.Why)
		}
		for _, p := range m.Jobs {
			if _, twice := all[p.Attempt.String()]; twice {
				f.w.t.Errorf("%s is listed twice", p.Attempt)
			}
			all[p.Attempt.String()] = p
		}
		last = m.Last
		pieces = append(pieces, len(m.Jobs))
	}
	return all, pieces
}

// DESIGN 6: after damage to the journal a host tells all that it has of the run,
// wherever it stands, and neither settles nor makes up anything by that.
func TestList(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	w.claimed("11.1", "melon2", false)
	w.sentinel("12.1", "melon2", jobs.Outcome{})
	w.claimed("13.1", "melon1", false)
	w.claimed("14.1", "melon1", false)
	w.sentinel("14.1", "melon1", jobs.Outcome{Exit: 4})
	w.sentinel("15.1", "melon1", jobs.Outcome{Exit: 5}) // its claim was removed
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "exit 3"))
	f.exit("1.1")
	f.launch(job("2.1", "echo up > "+ready+"; read x < "+gate), job("3.1", "exit 4"))
	w.hear(ready)
	for end := time.Now().Add(bound); f.probe("2.1").Answer != hosts.IsRunning; { // the helper may hear of it later than we
		if time.Now().After(end) {
			t.Fatal("2.1 runs, and its helper does not say so")
		}
	}
	if p := f.probe("3.1"); p.Answer != hosts.Buffered {
		t.Fatalf("3.1 is %v", p.Answer)
	}
	f.probe("16.1") // makes a tombstone
	// Kept on the host, though its directory has something else in its place.
	if err := os.Mkdir(w.file("17.1", jobs.FileStatus), 0o700); err != nil {
		t.Fatal(err)
	}
	ended := w.claim("17.1", "melon1")
	write(t, w.spool().path(dirDone, "17.1"), string(ended.EncodeFinished(1, jobs.Outcome{Exit: 7})))
	// Half written by a helper that died; nobody was rung.
	write(t, w.spool().path(dirIn, specName(1, attemptID(t, "18.1"))), "DCS1 torn")

	all, _ := f.list()
	want := map[string]hosts.Answer{
		"1.1": hosts.HasExited, "2.1": hosts.IsRunning, "3.1": hosts.Buffered, "13.1": hosts.Dead,
		"14.1": hosts.HasExited, "15.1": hosts.HasExited, "16.1": hosts.NeverStarted, "17.1": hosts.HasExited, "18.1": hosts.Unknown,
	}
	got := map[string]hosts.Answer{}
	for id, p := range all {
		got[id] = p.Answer
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for id, exit := range map[string]int{"1.1": 3, "14.1": 4, "15.1": 5, "17.1": 7} {
		if o := all[id].Outcome; o == nil || o.Exit != exit {
			t.Errorf("%s: %+v, want exit %d", id, all[id], exit)
		}
	}
	if _, err := os.Stat(w.file("18.1", jobs.FileStatus)); err == nil {
		t.Error("listing made a claim")
	}
	os.Remove(w.file("17.1", jobs.FileStatus))
	w.say(gate)
	f.exit("3.1")
	f.bye()
}

// A list comes in pieces; one asked for while another is made is made too.
func TestListInPieces(t *testing.T) {
	w := newWorld(t)
	const n = 2*listPiece + 7
	for i := 1; i <= n; i++ {
		w.claimed(fmt.Sprintf("%d.1", i), "melon1", true)
	}
	f := w.start(w.open())
	all, pieces := f.list()
	if len(all) != n || fmt.Sprint(pieces) != fmt.Sprint([]int{listPiece, listPiece, 7}) {
		t.Errorf("%d attempts in pieces of %v", len(all), pieces)
	}
	f.send(&hosts.List{Epoch: 1}, &hosts.List{Epoch: 1}, &hosts.List{Epoch: 1})
	for lists := 0; lists < 1; {
		if m := await(f, func(*hosts.Listed) bool { return true }); m.Last {
			lists++
		}
	}
	f.bye()
}

// E7: a fenced dispatcher is told so, and gets no list.
func TestListFenced(t *testing.T) {
	w := newWorld(t)
	open := w.open()
	open.Epoch = 2
	f := w.start(open)
	f.send(&hosts.List{Epoch: 1})
	if m := await(f, func(*hosts.Refused) bool { return true }); m.FencedBy != 2 {
		t.Errorf("%+v, want fenced by 2", m)
	}
	f.bye()
}

// What cannot be read is said beside what was found.
func TestListOfNothingReadable(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	attempts := filepath.Join(w.runDir, "attempts")
	if err := os.RemoveAll(attempts); err != nil {
		t.Fatal(err)
	}
	write(t, attempts, "in the way")
	f.send(&hosts.List{Epoch: 1})
	if m := await(f, func(*hosts.Listed) bool { return true }); !m.Last || m.Why == "" || len(m.Jobs) > 0 {
		t.Errorf("%+v", m)
	}
	if err := os.Remove(attempts); err != nil {
		t.Fatal(err)
	}
	f.bye()
}
