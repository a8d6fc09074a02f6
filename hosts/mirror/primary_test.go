package mirror

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// openRun opens the run directory on machine A.
func (w *world) openRun() *rundir.Run {
	run, err := rundir.OpenOn(w.machines["A"].now.Load().disk, w.dirs[0].dir)
	w.must(err)
	return run
}

// only returns the dispatcher that runs.
func (w *world) only() *dispatcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	for d := range w.running {
		return d
	}
	w.t.Fatal("no dispatcher runs")
	return nil
}

// takeRun opens the next epoch of a run.
func takeRun(t *testing.T, run *rundir.Run) *journal.Journal {
	j, _, _, err := journal.Take(context.Background(), run,
		journal.TakeOptions{Force: true, Who: &journal.Owner{Host: "a", User: "ada"}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestFencedDispatcherRecordsNothing checks that a dispatcher that was replaced while it hung does
// not overwrite the description of its successor's mirror. Otherwise a third dispatcher would not
// ask whether that mirror was taken over.
func TestFencedDispatcherRecordsNothing(t *testing.T) {
	run := newWorld(t, 1).openRun()
	first := takeRun(t, run)
	p := New(Options{Run: run, Journal: first, Say: func(string) {}, Warn: func(string) {}, Show: func(string) {}})
	defer p.end()
	g := &generation{Primary: p, description: Description{V: 1, Generation: NewGeneration(), Host: "b",
		Voters: []string{NewGeneration()}}}
	takeRun(t, run)
	second := Description{V: 1, Generation: NewGeneration(), Host: "b", Voters: []string{NewGeneration()}}
	if err := second.write(run.Disk, run.Dir, On); err != nil {
		t.Fatal(err)
	}
	if err := g.goAlone(""); err != nil {
		t.Fatal(err)
	}
	if d, err := Read(run); err != nil || d.Generation != second.Generation || d.State != On {
		t.Errorf("got %+v, %v", d, err)
	}
	if err := p.Confirm(); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("Confirm: %v", err)
	}
}

// TestMirrorHasOnlyFilesOfTheDispatcher checks that what a job has put into the run directory is not copied, and
// cannot keep the run from having a mirror.
func TestMirrorHasOnlyFilesOfTheDispatcher(t *testing.T) {
	run := newWorld(t, 1).openRun()
	j := takeRun(t, run)
	must(t, run.WriteHostDir("B", "/work"))
	for _, name := range []string{"jobs-x.jsonl", "jobs-1.jsonl", "journal/x.jsonl", "journal/x.marks",
		"journal/000009.marks", "hosts/x.dir"} {
		must(t, run.Disk.Mkdir(run.Path(name), 0o700))
	}
	copied := map[string]bool{}
	must(t, newCopier(run, j).copy(true, func(pieces []hosts.StorePiece) error {
		for _, p := range pieces {
			copied[p.Name] = true
		}
		return nil
	}))
	want := []string{"hosts/B.dir", "jobs.jsonl", "journal/000001.jsonl", "nonce", "owner", "run.toml"}
	for _, name := range want {
		if !copied[name] {
			t.Errorf("%s is not copied", name)
		}
		delete(copied, name)
	}
	delete(copied, "format")
	if len(copied) > 0 {
		t.Errorf("copied: %v", copied)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLaunchesContinueWithoutAStandby checks that launches continue when no standby can be started
// on the mirror, and that the person is told why.
func TestLaunchesContinueWithoutAStandby(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		w.broken = errors.New("the inventory cannot be read")
		w.begin()
		time.Sleep(3 * time.Minute)
		if !w.launches() {
			t.Error("nothing is launched")
		}
		events := w.allNotes()
		if strings.Count(events, "warning: ") != 1 ||
			!strings.Contains(events, "no standby dispatcher on B, which has a mirror of the run directory: "+
				"the inventory") {
			t.Errorf("the messages:\n%s", events)
		}
	})
}

// TestRunContinuesWithoutARefusedMirror checks that a run that can have no mirror any more
// continues without it, also if the mirror is out of reach.
func TestRunContinuesWithoutARefusedMirror(t *testing.T) {
	for _, cut := range []bool{false, true} {
		inWorld(t, 1, func(t *testing.T, w *world) {
			w.begin()
			time.Sleep(time.Minute)
			w.cutOff(w.machines["B"], cut)
			w.only().p.Refuse(errors.New("jobs send files"))
			time.Sleep(time.Minute)
			if !w.launches() {
				t.Error("nothing is launched")
			}
			events := w.allNotes()
			if !cut && !strings.Contains(events,
				"on B is removed, and the run is not protected any more: jobs send files") ||
				strings.Count(events, "launches and results wait") != 1 {
				t.Errorf("the messages:\n%s", events)
			}
			if d, err := Read(w.openRun()); err != nil || d.State != Alone {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

// TestEndDoesNotDependOnTheMirror checks that the end of a dispatcher does not depend on its
// mirror. A mirror that may stay is reported.
func TestEndDoesNotDependOnTheMirror(t *testing.T) {
	for _, c := range []struct {
		after time.Duration // the dispatcher ends
		cut   bool          // the mirror is out of reach
		said  int           // warnings
	}{{5015 * time.Millisecond, false, 0}, {time.Minute, false, 0}, {time.Minute, true, 1}} {
		inWorld(t, 1, func(t *testing.T, w *world) {
			w.begin()
			time.Sleep(c.after)
			w.cutOff(w.machines["B"], c.cut)
			p := w.only().p
			if !p.IsActive() {
				t.Error("there is no mirror")
			}
			began := time.Now()
			p.Close(true)
			if took := time.Since(began); took > 15*time.Second || p.IsActive() {
				t.Errorf("it took %s", took)
			}
			events := w.allNotes()
			if n := strings.Count(events, "its standby may continue the run"); n != c.said ||
				strings.Contains(events, "no mirror on B") {
				t.Errorf("after %s:\n%s", c.after, events)
			}
		})
	}
}

// TestOutdatedStandbyEnds checks that a standby ends when its hosts decide about a later mirror.
// Otherwise it would ask them for ever.
func TestOutdatedStandbyEnds(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		w.begin()
		time.Sleep(time.Minute)
		w.cutOff(w.machines["B"], true)
		time.Sleep(2 * time.Minute) // the next mirror is on C
		w.heal()
		time.Sleep(time.Minute)
		w.mu.Lock()
		n := len(w.machines["B"].now.Load().watched)
		w.mu.Unlock()
		if events := w.allNotes(); n != 0 || !strings.Contains(events, "B: the standby ends: "+ErrOutdated.Error()) {
			t.Errorf("%d standbys watch on B:\n%s", n, events)
		}
	})
}
