package control

import (
	"bufio"
	"context"
	"errors"
	"math"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// What a source says arrives as it was said, zero and odd values too: bytes that are
// no UTF-8, numbers that are none, pointers to nothing.
func TestNothingIsLostOnTheWay(t *testing.T) {
	f := newFake()
	f.picture = runview.Picture{
		At: time.Unix(1, 2).UTC(), Run: runview.Run{Name: "r\xff\x1b"}, Rate: math.Inf(1), Over: "x",
		Jobs: nil, Events: &runview.Events{}, Detail: &runview.Detail{}, Question: &live.Question{},
		Groups: []runview.Group{{Which: jobs.One(3), Jobs: []runview.Row{{ID: 7, Progress: -1}}}},
	}
	f.which = jobs.Ranges{{First: 1, Last: 5}, {First: 9, Last: 9}}
	f.read = func(r runview.Read) (*runview.Piece, error) {
		return &runview.Piece{Offset: r.Offset, Size: int64(r.Limit)}, nil
	}
	c := dial(t, serving(t, f))
	ctx := t.Context()
	got, err := c.Look(ctx, runview.Ask{})
	want := f.picture
	want.Version = 1
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.Look(ctx, runview.Ask{Jobs: &runview.JobsWindow{}}); err != nil || got.Jobs == nil {
		t.Errorf("an empty window was not asked for: %+v, %v", got, err)
	}
	if which, weight, err := c.Match(ctx, "x"); err != nil || !reflect.DeepEqual(which, f.which) || weight.Queued != 6 {
		t.Error(which, weight, err)
	}
	if weight, err := c.Weigh(ctx, f.which); err != nil || weight.Running != 6 {
		t.Error(weight, err)
	}
	if p, err := c.Read(ctx, runview.Read{Offset: -9, Limit: 1 << 30}); err != nil || p.Offset != -9 || p.Size != maxPiece {
		t.Errorf("%+v, %v", p, err)
	}
	zero, none, no, tags := 0, time.Duration(0), "", []string{}
	command := "echo \xff"
	action := runview.Action{Do: runview.Edit, Jobs: jobs.One(2), Number: -1,
		Edit: &runview.Change{Name: &no, Timeout: &none, Tries: &zero, Tags: &tags}}
	reflect.ValueOf(&action.Edit.Command).Elem().Set(valueOf(command, reflect.TypeOf(action.Edit.Command)))
	if _, err := c.Do(ctx, action); err != nil {
		t.Fatal(err)
	}
	did := f.did[0]
	if did.Edit == nil || did.Edit.Name == nil || did.Edit.Timeout == nil || did.Edit.Tries == nil || did.Edit.Tags == nil ||
		did.Edit.Slots != nil || did.Edit.MemBytes != nil || !reflect.DeepEqual(did.Edit.Command, action.Edit.Command) ||
		did.Number != -1 {
		t.Errorf("%+v", did.Edit)
	}
}

// valueOf makes a string or a pointer to one.
func valueOf(s string, typ reflect.Type) reflect.Value {
	if typ.Kind() == reflect.Pointer {
		return reflect.ValueOf(&s)
	}
	return reflect.ValueOf(s)
}

// Errors are what they were: a refusal, a dispatcher that has gone, a text.
func TestErrorsTravel(t *testing.T) {
	f := newFake()
	c := dial(t, serving(t, f))
	var refused *runview.Refused
	if _, err := c.Do(t.Context(), runview.Action{Do: runview.UseHost, Host: "ws9"}); !errors.As(err, &refused) || refused.Why != "there is no host ws9" {
		t.Error(err)
	}
	if _, err := c.Read(t.Context(), runview.Read{}); err == nil || err.Error() != "no such file\x1b[31m" {
		t.Error(err)
	}
	if _, err := c.Do(t.Context(), runview.Action{Do: runview.Continue}); !errors.Is(err, ErrLeaving) {
		t.Error(err)
	}
	f.gone.Store(true)
	if _, err := c.Look(t.Context(), runview.Ask{}); !errors.Is(err, runview.ErrGone) {
		t.Error(err)
	}
}

// Issue 4.3: two screens at once agree: what one does the other sees at once, and
// calls that wait do not keep others from being answered.
func TestTwoScreensAgree(t *testing.T) {
	f := newFake()
	s := serving(t, f)
	a, b := dial(t, s), dial(t, s)
	soon(t, "two are attached", func() bool { return s.Attached() == 2 })
	var all sync.WaitGroup
	for _, c := range []*Client{a, b} {
		all.Go(func() {
			p, err := c.Look(t.Context(), runview.Ask{After: 1, Wait: time.Minute})
			if err != nil || p.Total != 1 {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	soon(t, "both wait", func() bool { return f.waiting.Load() == 2 })
	if _, err := a.Do(t.Context(), runview.Cancel.Jobs(3)); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	b.Close()
	soon(t, "one is attached", func() bool { return s.Attached() == 1 })
	if _, err := a.Weigh(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A call that nobody wants any more ends at the dispatcher as well, however many
// there were: a screen that moves its window makes a new one for each key.
func TestTakenBack(t *testing.T) {
	f := newFake()
	c := dial(t, serving(t, f))
	for range 20 * maxCalls {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := c.Look(ctx, runview.Ask{After: 1, Wait: time.Minute}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	soon(t, "none waits at the dispatcher", func() bool { return f.waiting.Load() == 0 })
	if _, err := c.Look(t.Context(), runview.Ask{}); err != nil {
		t.Error(err)
	}
}

// A dispatcher that ends, or dies, is noticed by calls that wait, and by later ones.
func TestGone(t *testing.T) {
	f := newFake()
	s := serving(t, f)
	c := dial(t, s)
	failed := make(chan error)
	go func() {
		_, err := c.Look(t.Context(), runview.Ask{After: 1, Wait: time.Minute})
		failed <- err
	}()
	soon(t, "it waits", func() bool { return f.waiting.Load() == 1 })
	s.Close()
	if err := <-failed; !errors.Is(err, runview.ErrGone) {
		t.Error(err)
	}
	<-c.Done()
	if _, _, err := c.Match(t.Context(), ""); !errors.Is(err, runview.ErrGone) {
		t.Error(err)
	}
	if !f.closed.Load() {
		t.Error("the source was not closed")
	}
	if _, err := Dial(t.Context(), s.Address(), "run1", "v1"); !errors.Is(err, runview.ErrGone) {
		t.Error(err)
	}
}

// The source is made when somebody attaches, once for all, and given up some time
// after the last has left: nothing of a screen costs a run without one.
func TestSourceOnlyWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*fake
		l := lazySource{open: func() (runview.Source, func(), error) {
			f := newFake()
			made = append(made, f)
			return f, f.let, nil
		}}
		for range 2 {
			if _, err := l.acquire(); err != nil {
				t.Fatal(err)
			}
		}
		l.release()
		time.Sleep(2 * lingerFor)
		if len(made) != 1 || made[0].closed.Load() {
			t.Error("not one source while somebody looks")
		}
		l.release()
		time.Sleep(lingerFor / 2)
		l.acquire()
		l.release()
		time.Sleep(lingerFor * 3 / 4)
		if len(made) != 1 || made[0].closed.Load() {
			t.Error("who types two commands in a row pays twice")
		}
		time.Sleep(lingerFor)
		if !made[0].closed.Load() {
			t.Error("the source is kept though nobody looks")
		}
		l.acquire()
		l.close()
		if len(made) != 2 || !made[1].closed.Load() {
			t.Error("not closed at the end")
		}
		l.release()
		if _, err := l.acquire(); !errors.Is(err, runview.ErrGone) {
			t.Error(err)
		}
	})
}

// A source that cannot be made, and one that panics, cost the call and say so; the
// dispatcher lives.
func TestFaultsOfTheSource(t *testing.T) {
	bad := serving(t, nil, func(o *Options) {
		o.Open = func() (runview.Source, func(), error) { return nil, nil, errors.New("no memory") }
	})
	if _, err := dial(t, bad).Look(t.Context(), runview.Ask{}); err == nil || err.Error() != "no memory" {
		t.Error(err)
	}
	f := newFake()
	f.read = func(runview.Read) (*runview.Piece, error) { panic("a slip") }
	said := make(chan string, 1)
	c := dial(t, serving(t, f, func(o *Options) { o.Fault = func(text string) { said <- text } }))
	if _, err := c.Read(t.Context(), runview.Read{}); err == nil || !strings.Contains(err.Error(), "a slip") {
		t.Error(err)
	}
	if text := <-said; !strings.Contains(text, "fake_test.go") {
		t.Errorf("the log does not say where: %s", text)
	}
	if _, err := c.Look(t.Context(), runview.Ask{Focus: jobs.ID(1)}); err != nil {
		t.Error(err)
	}
}

// K9: what was asked of a dispatcher that ends was either done, and said to be, or
// not done, and said so: it can be asked of the next one without being done twice.
func TestNothingIsLeftUndecided(t *testing.T) {
	for range 20 {
		f := newFake()
		s := serving(t, f)
		var all sync.WaitGroup
		var done, left atomic.Int64
		for range 3 {
			c := dial(t, s)
			for range 4 {
				all.Go(func() {
					for {
						_, err := c.Do(t.Context(), runview.Action{Do: runview.DrainRun})
						if err != nil {
							if left.Add(1); !errors.Is(err, ErrLeaving) {
								t.Error(err)
							}
							return
						}
						done.Add(1)
					}
				})
			}
		}
		soon(t, "some was done", func() bool { return done.Load() > 20 })
		s.Close()
		all.Wait()
		if n := len(f.did); int64(n) != done.Load() || left.Load() != 12 {
			t.Errorf("%d done, %d said to be; %d left", n, done.Load(), left.Load())
		}
	}
}

// One that died says nothing: what it had been asked it may have done. What was never
// sent to it was not.
func TestDeathLeavesItOpen(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		r := bufio.NewReader(theirs)
		if _, err := readHello(r); err != nil {
			t.Error(err)
		}
		if err := (&Hello{V: Version, Run: "run1"}).write(theirs); err != nil {
			t.Error(err)
		}
		if err := newMessages(r).next(new(request), maxRequest); err != nil {
			t.Error(err)
		}
	}()
	c, err := NewClient(t.Context(), ours, "run1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do(t.Context(), runview.Action{Do: runview.DrainRun}); !errors.Is(err, runview.ErrGone) || errors.Is(err, ErrLeaving) {
		t.Error(err)
	}
	if _, err := c.Do(t.Context(), runview.Action{Do: runview.DrainRun}); !errors.Is(err, runview.ErrGone) || !errors.Is(err, ErrLeaving) {
		t.Error(err)
	}
}
