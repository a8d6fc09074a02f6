package run

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/publish"
	"dcs-tui/hosts"
	"dcs-tui/hosts/mirror"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// watched returns a run that a dispatcher on another machine owns, and that dispatcher's journal.
func watched(t *testing.T) (*rundir.Run, *journal.Journal) {
	t.Helper()
	run := disktest.NewRun(t)
	j, _, _, err := journal.Take(t.Context(), run,
		journal.TakeOptions{Who: &journal.Owner{Host: "melon3", User: "ada"}})
	must(t, err)
	return run, j
}

// numStandbys returns the number of files by which standbys show that they are watching.
func numStandbys(t *testing.T, run *rundir.Run) (n int) {
	t.Helper()
	names, err := run.Disk.Names(run.Dir)
	must(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, standbyPrefix) {
			n++
		}
	}
	return n
}

// silentStandby returns options of a standby that prints nothing. The owner file may be read while it is written,
// which is a warning.
func silentStandby(onWatching func()) StandbyOptions {
	ignore := func(string) {}
	return StandbyOptions{Notify: ignore, Warn: ignore, OnWatching: onWatching}
}

// TestStandbyTakesOverFromHungDispatcher checks that a standby shows that it is watching, and does
// not replace a dispatcher that sends heartbeats. It takes the run over within the stale time plus
// 15 s of the last heartbeat (E7).
func TestStandbyTakesOverFromHungDispatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, old := watched(t)
		var last time.Time
		go func() {
			for range 12 {
				time.Sleep(journal.HeartbeatInterval)
				last = time.Now()
				if err := old.Heartbeat(); err != nil {
					t.Error(err)
				}
				if n := numStandbys(t, run); n != 1 {
					t.Errorf("%d files of standbys while one watches", n)
				}
			}
		}()
		o, err := StandBy(t.Context(), run, silentStandby(func() {}))
		must(t, err)
		if silent := time.Since(last); silent < journal.StaleAfter || silent > journal.StaleAfter+15*time.Second ||
			last.IsZero() {
			t.Errorf("taken over %s after the last sign of life", silent)
		}
		if n := numStandbys(t, run); n != 0 {
			t.Errorf("%d files of standbys after the takeover", n)
		}
		if by, err := old.Fenced(); by != 2 || err != nil {
			t.Errorf("the old dispatcher is fenced off by %d, %v", by, err)
		}
		counts := map[int]int{}
		_, err = journal.Follow(run).Poll(journal.Limit{End: true}, func(epoch int, r *jobs.Record) {
			if r.Kind == jobs.KindEpoch {
				counts[epoch] = r.Count
			}
		})
		if must(t, err); !maps.Equal(counts, map[int]int{1: 0, 2: 1}) {
			t.Errorf("dispatchers that no person started: %v, want the second", counts)
		}
		if err := errors.Join(o.Release(), old.Sync()); !errors.Is(err, journal.ErrFenced) && err != nil {
			t.Error(err)
		}
		old.Close()
	})
}

// TestStandbyEndsWithTheRun checks that a dispatcher that has ended the run, or was asked to stop,
// is not replaced. One that left without a record is.
func TestStandbyEndsWithTheRun(t *testing.T) {
	for how, over := range map[string]bool{jobs.ClosedDone: true, jobs.ClosedStopped: true, jobs.ClosedDrained: true,
		"": false} {
		synctest.Test(t, func(t *testing.T) {
			run, old := watched(t)
			go func() {
				time.Sleep(3 * time.Second)
				if how != "" {
					if err := errors.Join(old.Append([]jobs.Record{{Kind: jobs.KindClosed, At: 1, How: how}}),
						old.Sync()); err != nil {
						t.Error(err)
					}
				}
				old.Close()
			}()
			o, err := StandBy(t.Context(), run, silentStandby(func() {}))
			if over != errors.Is(err, ErrOver) || over == (o != nil) {
				t.Errorf("closed %q: %v, %v", how, o, err)
			}
			if o != nil {
				o.Release()
			}
			if n := numStandbys(t, run); n != 0 {
				t.Errorf("%d files of standbys are left", n)
			}
		})
	}
}

// TestStandbyIsEnded checks that a user can end a standby, and that a run without a dispatcher is
// refused.
func TestStandbyIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, old := watched(t)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := StandBy(ctx, run, silentStandby(cancel)); !errors.Is(err,
			context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		old.Close()
		_, err := StandBy(t.Context(), run,
			silentStandby(func() { t.Error("it watches a run that nobody dispatches") }))
		if err == nil || !strings.Contains(err.Error(), "nobody dispatches") {
			t.Errorf("a run that was left: %v", err)
		}
	})
}

// oneHost is a connector that reaches only one host.
type oneHost struct {
	name  string
	opens []*hosts.Open
}

func (c *oneHost) Connect(_ context.Context, h *hosts.Host, open *hosts.Open) (hosts.Worker, error) {
	if h.Name != c.name {
		return nil, errors.New("out of reach")
	}
	c.opens = append(c.opens, open)
	return noWorker{}, nil
}

type noWorker struct{ hosts.Worker }

func (noWorker) Close() error { return nil }

// TestStandbysAreKept checks that a dispatcher starts a standby on the first host that can have
// one, with the variables that the run directory lacks. It knows where a standby is watching, and
// notices when it has died (E7).
func TestStandbysAreKept(t *testing.T) {
	run := disktest.NewRun(t)
	run.Settings.EnvNames = []rundir.EnvRef{{Name: "KEPT", Value: "1", Stored: true}, {Name: "SECRET"}}
	reach := &oneHost{name: "b"}
	r := &Run{dir: run, ctx: t.Context(), messages: newMessages(), connector: reach, publisher: new(publish.Publisher),
		opts: Options{
			Standby: []*hosts.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}},
			Env:     []jobs.EnvVar{{Name: "KEPT", Value: "1"}, {Name: "SECRET", Value: "2"}},
		}}
	s := &standbys{run: r, heartbeats: map[string]lastHeartbeat{}, warned: map[string]bool{}}
	said := func() (lines []string) {
		for _, m := range r.messages.takeAll() {
			line := m.text()
			if m.isWarning {
				line = "warning: " + line
			}
			lines = append(lines, line)
		}
		return lines
	}
	s.start()
	s.start()
	if o := reach.opens; len(o) != 2 || !o[0].Standby || o[0].Nonce != run.Nonce ||
		!slices.Equal(o[0].Env, []jobs.EnvVar{{Name: "SECRET", Value: "2"}}) {
		t.Errorf("hosts were asked for %+v", o)
	}
	if lines := said(); len(lines) != 1 ||
		!strings.Contains(lines[0], "warning: no standby dispatcher on a: out of reach") {
		t.Errorf("it said %q", lines)
	}

	watching := &standby{run: run, name: standbyPrefix + "b.1", file: standbyFile{V: 1, Host: "b"}}
	now := time.Now()
	look := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		if s.check(now); s.machines != want {
			t.Errorf("a standby watches on %q, want %q", s.machines, want)
		}
	}
	heartbeat := func() {
		t.Helper()
		must(t, watching.heartbeat())
	}
	jobstest.Newer(&jobs.FormatStandby, func() { watching.file.V = jobs.FormatStandby.Version })
	heartbeat()
	look(0, "") // a newer format is ignored
	watching.file.V = jobs.FormatStandby.Version
	heartbeat()
	look(standbysInterval, "b")
	look(journal.StaleAfter-time.Second, "b")
	heartbeat()
	look(time.Second, "b")
	look(journal.StaleAfter-time.Second, "b")
	look(time.Second, "")
	if n := numStandbys(t, run); n != 0 {
		t.Errorf("%d files of dead standbys", n)
	}
	heartbeat() // it was only slow
	look(0, "b")
	if lines := said(); len(lines) != 3 || !strings.Contains(lines[1], "no standby dispatcher watches any more") {
		t.Errorf("it said %q", lines)
	}
}

// TestRunWithFilesHasNoMirror checks that a run has no mirror any more when a job is added that
// gets or returns files of the dispatcher's machine.
func TestRunWithFilesHasNoMirror(t *testing.T) {
	run := disktest.NewRun(t)
	j, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{})
	must(t, err)
	r := &Run{dir: run, journal: j, mirror: mirror.New(mirror.Options{Run: run, Journal: j})}
	defer r.mirror.Close(true)
	s := &standbys{run: r}
	stored := 0
	store := r.checkFiles(func(specs []*jobs.Spec) error { stored += len(specs); return nil })
	if err := store([]*jobs.Spec{{ID: 1}, {ID: 2, Options: jobs.NoOptions}}); err != nil || s.openMirror() == nil {
		t.Errorf("jobs without files: %v", err)
	}
	own := *jobs.NoOptions
	own.Return = []string{"out"}
	if err := store([]*jobs.Spec{{ID: 3, Options: &own}}); err != nil || s.openMirror() != nil || stored != 3 {
		t.Errorf("a job that returns a file: %v, %d jobs stored, mirror %v", err, stored, s.openMirror())
	}
}
