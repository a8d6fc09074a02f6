package publish

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// fakeDispatcher simulates a dispatcher, a journal, and a socket.
type fakeDispatcher struct {
	changed, reported, durable chan struct{}

	position atomic.Int64
	fenced   atomic.Int64
	numLives atomic.Int64 // number of calls of Live
	problem  atomic.Pointer[string]

	mu     sync.Mutex
	pushes []push
}

type push struct {
	at      time.Time
	durable *live.Durable
	state   *live.State
}

func (s *fakeDispatcher) Signals() dispatch.Signals {
	return dispatch.Signals{Changes: s.changed, Reports: s.reported, Durable: s.durable}
}

func (s *fakeDispatcher) Live(ctx context.Context) (*live.State, error) {
	st := &live.State{V: jobs.FormatLive.Version, Run: "r", Epoch: 3, At: time.Now(), More: true,
		Tries: int(s.numLives.Add(1))}
	if p := s.problem.Load(); p != nil {
		st.Problem = *p
	}
	return st, nil
}

func (s *fakeDispatcher) Durable() live.Durable {
	return live.Durable{Epoch: 3, Bytes: s.position.Load()}
}

func (s *fakeDispatcher) Fenced() (int, error) { return int(s.fenced.Load()), nil }

func (s *fakeDispatcher) Publish(d *live.Durable, st *live.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushes = append(s.pushes, push{time.Now(), d, st})
}

// takePushed returns the numbers of states and durable positions that were pushed since the last
// call.
func (s *fakeDispatcher) takePushed() (states, positions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pushes {
		if p.state != nil {
			states++
		} else {
			positions++
		}
	}
	s.pushes = nil
	return states, positions
}

// disk is a disk whose OpenFile can hang or fail. It counts renames.
type disk struct {
	rundir.Disk
	hang    atomic.Pointer[chan struct{}]
	fail    atomic.Bool
	renames atomic.Int64
}

func (d *disk) OpenFile(path string, flag int, perm os.FileMode) (rundir.File, error) {
	if c := d.hang.Load(); c != nil {
		<-*c
	}
	if d.fail.Load() {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}
	}
	return d.Disk.OpenFile(path, flag, perm)
}

func (d *disk) Rename(from, to string) error {
	d.renames.Add(1)
	return d.Disk.Rename(from, to)
}

type fixture struct {
	*fakeDispatcher
	*Publisher
	run    *rundir.Run
	disk   *disk
	warned atomic.Int64
}

func start(t *testing.T) *fixture {
	t.Helper()
	r := disktest.NewRun(t)
	f := &fixture{fakeDispatcher: &fakeDispatcher{changed: make(chan struct{}, 1), reported: make(chan struct{}, 1),
		durable: make(chan struct{}, 1)},
		run: r, disk: &disk{Disk: rundir.OS}}
	r.Disk = f.disk
	f.Publisher = Start(Options{Run: r, Token: "t", Dispatcher: f.fakeDispatcher, Journal: f.fakeDispatcher,
		Socket: f.fakeDispatcher,
		Warn:   func(error) { f.warned.Add(1) }})
	synctest.Wait()
	return f
}

// read returns live.json as an observer reads it.
func (f *fixture) read(t *testing.T) *live.State {
	t.Helper()
	other := &rundir.Run{Dir: f.run.Dir, Settings: f.run.Settings, Disk: rundir.OS}
	s, err := live.Read(other)
	if err != nil || s == nil {
		t.Fatalf("live.Read = %v, %v", s, err)
	}
	return s
}

func (f *fixture) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f.Publisher.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// wait advances the time in small steps and signals each of tells in every step.
func wait(d time.Duration, tells ...chan struct{}) {
	const step = 5 * time.Millisecond
	for ; d > 0; d -= step {
		for _, c := range tells {
			dispatch.Signal(c)
		}
		time.Sleep(step)
	}
	synctest.Wait()
}

// TestHowOftenStatesArePublished checks how often states and durable positions are published for
// each kind of signal.
func TestHowOftenStatesArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		defer f.close(t)
		wait(10 * time.Millisecond)
		if n := f.disk.renames.Load(); n != 1 {
			t.Errorf("%d writes at the start, want 1", n)
		}
		f.takePushed()
		for _, c := range []struct {
			name              string
			tells             []chan struct{}
			least, most       int // limits of states per minute
			leastPos, mostPos int
		}{
			{"nothing", nil, 5, 7, 0, 0},
			{"host reports", []chan struct{}{f.reported}, 18, 21, 0, 0},
			{"changes", []chan struct{}{f.changed}, 58, 61, 0, 0},
			{"changes and reports", []chan struct{}{f.changed, f.reported}, 58, 61, 0, 0},
			{"nothing again", nil, 5, 8, 0, 0},
			{"records", []chan struct{}{f.durable}, 58, 61, 1000, 1201},
		} {
			stop := make(chan struct{})
			go func() { // keep advancing the durable position
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
						f.position.Add(1)
					}
				}
			}()
			writes := f.disk.renames.Load()
			wait(time.Minute, c.tells...)
			close(stop)
			states, positions := f.takePushed()
			if states < c.least || states > c.most || positions < c.leastPos || positions > c.mostPos {
				t.Errorf("%s: %d states and %d positions in a minute, want %d to %d and %d to %d", c.name, states,
					positions, c.least, c.most, c.leastPos, c.mostPos)
			}
			if n := f.disk.renames.Load() - writes; int(n) != states {
				t.Errorf("%s: %d writes for %d states", c.name, n, states)
			}
		}
	})
}

// TestFirstChangeIsImmediate checks that a change after a quiet period is published at once, as are
// records.
func TestFirstChangeIsImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		defer f.close(t)
		wait(4 * time.Second)
		f.takePushed()
		f.position.Store(77)
		dispatch.Signal(f.durable)
		synctest.Wait()
		if states, positions := f.takePushed(); states != 1 || positions != 1 {
			t.Errorf("%d states and %d positions, want 1 and 1", states, positions)
		}
		if s := f.read(t); s.Durable != (live.Durable{Epoch: 3, Bytes: 77}) || s.Token != "t" || s.Epoch != 3 {
			t.Errorf("live.json has %+v", s)
		}
	})
}

// TestQuestionIsPublishedUntilAnswered checks that a question is published, and that it disappears
// after its answer.
func TestQuestionIsPublishedUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		defer f.close(t)
		f.SetQuestion(&live.Question{ID: 1, Text: "Passphrase", Secret: true})
		wait(time.Second)
		if q := f.read(t).Question; q == nil || q.ID != 1 || !q.Secret {
			t.Errorf("question %+v", q)
		}
		f.SetQuestion(nil)
		wait(time.Second)
		if q := f.read(t).Question; q != nil {
			t.Errorf("question %+v after its answer", q)
		}
	})
}

// TestMetricsAreAwaitedWithoutOpenInput checks that while a run waits for metrics at its end, its input
// does not count as open.
func TestMetricsAreAwaitedWithoutOpenInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		defer f.close(t)
		wait(time.Second)
		before := f.read(t)
		f.SetMetricsOf([]string{"ws01"})
		wait(time.Second)
		if s := f.read(t); !before.More || s.More || !slices.Equal(s.MetricsOf, []string{"ws01"}) {
			t.Errorf("more before: %v, meanwhile: %v, metrics of %q; want true, false, ws01", before.More, s.More,
				s.MetricsOf)
		}
		f.SetMetricsOf(nil)
		wait(time.Second)
		if s := f.read(t); !s.More || len(s.MetricsOf) > 0 {
			t.Errorf("afterwards: more %v, metrics of %q", s.More, s.MetricsOf)
		}
	})
}

// TestSocketGetsAllStatesWhileTheDiskHangs checks that the socket gets all states while the disk
// hangs. The newest state is written when the disk answers again.
func TestSocketGetsAllStatesWhileTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		defer f.close(t)
		wait(2 * time.Second)
		release := make(chan struct{})
		f.disk.hang.Store(&release)
		f.takePushed()
		writes := f.disk.renames.Load()
		wait(time.Minute, f.changed, f.durable)
		if states, _ := f.takePushed(); states < 58 {
			t.Errorf("%d states were pushed in a minute", states)
		}
		if n := f.disk.renames.Load() - writes; n != 0 {
			t.Errorf("%d writes on a hung disk", n)
		}
		f.disk.hang.Store(nil)
		close(release)
		synctest.Wait()
		if got, want := int64(f.read(t).Tries), f.numLives.Load(); got != want {
			t.Errorf("state %d is written, want the newest, %d", got, want)
		}
		if n := f.disk.renames.Load() - writes; n != 2 { // the write that hung, and the newest
			t.Errorf("%d writes after the hang, want 2", n)
		}
	})
}

// TestFullDiskIsWarnedAboutOnce checks that a full disk is warned about once per failure, and that
// the newest state is written afterward. There is no warning if the state already reports a
// problem.
func TestFullDiskIsWarnedAboutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		defer f.close(t)
		for range 2 {
			f.disk.fail.Store(true)
			wait(5*time.Second, f.changed)
			f.disk.fail.Store(false)
			wait(2*time.Second, f.changed)
			if got, want := int64(f.read(t).Tries), f.numLives.Load(); got != want {
				t.Errorf("state %d is written, want %d", got, want)
			}
		}
		if n := f.warned.Load(); n != 2 {
			t.Errorf("%d warnings, want one for each failure", n)
		}
		problem := "the journal cannot be written"
		f.problem.Store(&problem)
		f.disk.fail.Store(true)
		wait(5*time.Second, f.changed)
		if n := f.warned.Load(); n != 2 {
			t.Error("warned of what the state reports")
		}
		f.disk.fail.Store(false)
	})
}

// TestFencedDispatcherWritesNothing checks that a fenced dispatcher writes nothing more, even after
// a hang.
func TestFencedDispatcherWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		release := make(chan struct{})
		f.disk.hang.Store(&release)
		wait(5*time.Second, f.changed)
		f.fenced.Store(4)
		theirs := &live.State{V: jobs.FormatLive.Version, Epoch: 4, Token: "u"}
		if err := live.Write(&rundir.Run{Dir: f.run.Dir, Settings: f.run.Settings, Disk: rundir.OS},
			theirs, nil); err != nil {
			t.Fatal(err)
		}
		f.disk.hang.Store(nil)
		close(release)
		wait(5*time.Second, f.changed)
		f.fenced.Store(0) // one report is enough
		wait(5*time.Second, f.changed)
		f.close(t)
		if s := f.read(t); s.Epoch != 4 {
			t.Errorf("live.json is of epoch %d, want 4", s.Epoch)
		}
		names, err := rundir.OS.Names(f.run.Dir)
		if err != nil || strings.Contains(strings.Join(names, " "), "."+rundir.LiveFile) {
			t.Errorf("temporary files are left: %v, %v", names, err)
		}
		if f.warned.Load() != 0 {
			t.Error("warned of a takeover")
		}
	})
}

// TestCloseWritesTheLastState checks that Close writes the last state, and that it returns when its
// context ends if the disk hangs.
func TestCloseWritesTheLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		wait(100 * time.Millisecond)
		f.close(t)
		if n := f.read(t).Tries; n != 2 {
			t.Errorf("state %d is written, want the last, 2", n)
		}

		f = start(t)
		release := make(chan struct{})
		f.disk.hang.Store(&release)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Publisher.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close on a hung disk = %v", err)
		}
		close(release)
		synctest.Wait()
	})
}

// TestShownStatesAreReadable checks that live.json has what was durable before Show when Show
// returns, at once, also if several calls wait for the same state, and that a hung disk delays Show
// only until its context ends.
func TestShownStatesAreReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		wait(100 * time.Millisecond)
		begin := time.Now()
		for bytes := range int64(3) {
			f.position.Store(100 + bytes)
			f.Show(t.Context())
			if got := f.read(t).Durable.Bytes; got != 100+bytes {
				t.Errorf("position %d is shown, want %d", got, 100+bytes)
			}
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("it took %v", d)
		}

		release := make(chan struct{})
		f.disk.hang.Store(&release)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.Show(ctx)
		if d := time.Since(begin); d != time.Second {
			t.Errorf("a hung disk delays Show for %v", d)
		}
		f.position.Store(200)
		var shows sync.WaitGroup
		for range 3 {
			shows.Go(func() { f.Show(t.Context()) })
		}
		synctest.Wait()
		f.disk.hang.Store(nil)
		close(release)
		shows.Wait()
		if got := f.read(t).Durable.Bytes; got != 200 {
			t.Errorf("position %d is shown after the disk has hung", got)
		}
		f.close(t)
		f.Show(t.Context()) // returns, although nothing is published any more
	})
}
