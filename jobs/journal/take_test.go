package journal

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs/rundir"
)

// foreign creates a run with a journal of one epoch. As far as this machine can tell, its owner is
// on another machine.
func foreign(t *testing.T) (*rundir.Run, *Journal) {
	t.Helper()
	r := newRun(t)
	j, _, _ := take1(t, r, TakeOptions{})
	j.beats.owner.Host, j.beats.owner.Boot = "melon3", "another-boot"
	if err := j.Beat(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { crash(t, j) })
	return r, j
}

// TestTakeRefusesALiveOwner checks that a live owner on this machine is refused at once. The error
// has its name and what to do (a second `run` on a directory in use).
func TestTakeRefusesALiveOwner(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, TakeOptions{})
	defer crash(t, j)
	_, _, _, err := Take(t.Context(), r, TakeOptions{})
	var owned *OwnedError
	if !errors.As(err, &owned) || owned.Owner == nil || owned.Owner.PID != os.Getpid() {
		t.Fatalf("%v", err)
	}
	host, _ := os.Hostname()
	for _, want := range []string{"pid ", host, "since ", "status " + r.Dir, "--force"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if n, err := j.Fenced(); n != 0 || err != nil {
		t.Errorf("the refused one has fenced the owner: %d, %v", n, err)
	}
}

// TestTakeFromTheDead checks that a dead pid on this machine, or a pid that now belongs to another
// process, is immediate proof without waiting. So is an owner that left.
func TestTakeFromTheDead(t *testing.T) {
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Owner){
		"no such pid":           func(o *Owner) { o.PID = child.Process.Pid },
		"pid used again":        func(o *Owner) { o.Start++ },
		"left of its own will":  func(o *Owner) { o.Left = true },
		"left, another machine": func(o *Owner) { o.Left, o.Boot = true, "another-boot" },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			j, _, _ := take1(t, r, TakeOptions{})
			if err := j.beats.beat(change); err != nil {
				t.Fatal(err)
			}
			crash(t, j)
			began := time.Now()
			j, _, _, err := Take(t.Context(), r, TakeOptions{})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			crash(t, j)
			if waited := time.Since(began); waited != 0 {
				t.Errorf("%s: waited %s", what, waited)
			}
		})
	}
}

// TestTakeFromTheSilent checks that an owner elsewhere is judged by its heartbeats as seen by this
// machine's clock, whatever its own clock shows. One that is silent for StaleAfter is taken over.
func TestTakeFromTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, old := foreign(t)
		old.beats.owner.Since = time.Now().Add(1000 * time.Hour) // its clock is wrong
		if err := old.Beat(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var said []string
		j, _, _, err := Take(t.Context(), r, TakeOptions{Notify: func(s string) { said = append(said, s) }})
		if err != nil {
			t.Fatal(err)
		}
		defer crash(t, j)
		if waited := time.Since(began); waited != StaleAfter {
			t.Errorf("waited %s", waited)
		}
		if len(said) != 1 || !strings.Contains(said[0], "melon3") {
			t.Errorf("told %q", said)
		}
		if n, _ := old.Fenced(); n != 2 {
			t.Errorf("the old one is not fenced off: %d", n)
		}
	})
}

// TestTakeFromTheBeating checks that an owner that sends heartbeats is refused as soon as one
// arrives. --force takes the run at once.
func TestTakeFromTheBeating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, old := foreign(t)
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(BeatEvery):
					if err := old.Beat(); err != nil {
						t.Error(err)
					}
				}
			}
		})
		began := time.Now()
		_, _, _, err := Take(t.Context(), r, TakeOptions{})
		var owned *OwnedError
		if !errors.As(err, &owned) || owned.Owner == nil || owned.Owner.Host != "melon3" {
			t.Errorf("%v", err)
		}
		if waited := time.Since(began); waited > BeatEvery+watchInterval {
			t.Errorf("refused after %s", waited)
		}
		stop()
		wg.Wait()
		began = time.Now()
		j, _, _, err := Take(t.Context(), r, force)
		if err != nil || time.Since(began) != 0 {
			t.Errorf("--force: %v after %s", err, time.Since(began))
		} else {
			crash(t, j)
		}
	})
}

// TestWatchingEnds checks that watching ends when the caller gives up, and when the owner leaves.
func TestWatchingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, old := foreign(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, _, _, err := Take(ctx, r, TakeOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		closed := make(chan error, 1)
		time.AfterFunc(3*time.Second, func() { closed <- old.Close() })
		began := time.Now()
		j, _, _, err := Take(t.Context(), r, TakeOptions{})
		if err != nil || time.Since(began) > 5*time.Second {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		crash(t, j)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// TestTakeWithADamagedOwnerFile checks that a damaged owner file is neither a heartbeat nor proof
// of death.
func TestTakeWithADamagedOwnerFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, old := foreign(t)
		crash(t, old)
		if err := os.WriteFile(r.Path(rundir.OwnerFile), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if o, err := ReadOwner(r); err == nil {
			t.Errorf("read as %v", o)
		}
		began := time.Now()
		j, _, _, err := Take(t.Context(), r, TakeOptions{})
		if err != nil || time.Since(began) != StaleAfter {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		crash(t, j)
	})
}

// TestTakeInTransit checks a Take that was cut off before it installed its owner file. If its
// process is known to be dead on this machine, nobody waits. If it lives, it is respected.
func TestTakeInTransit(t *testing.T) {
	for what, alive := range map[string]bool{"alive": true, "dead": false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			j, _, _ := take1(t, r, TakeOptions{})
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			other := &beats{run: r}
			o, err := (&TakeOptions{Token: "token"}).owner(2)
			if err != nil {
				t.Fatal(err)
			}
			if !alive {
				o.Start++
			}
			other.owner = *o
			if _, err := other.prepare(); err != nil {
				t.Fatal(err)
			}
			put(t, r, 2, nil)
			began := time.Now()
			j, _, _, err = Take(t.Context(), r, TakeOptions{})
			waits := time.Duration(0)
			if alive {
				waits = takerTimeout // the wait for its name: only one of several takers has it
			}
			if time.Since(began) != waits || alive != (err != nil) {
				t.Errorf("%s: %v after %s", what, err, time.Since(began))
			}
			if err == nil {
				crash(t, j)
			}
			if err := other.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPulse checks that the new owner still sends heartbeats while a large journal is replayed, and
// that the caller can give up.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		j, _, _ := take1(t, r, TakeOptions{})
		defer crash(t, j)
		ctx, cancel := context.WithCancel(t.Context())
		pulse := j.pulse(ctx)
		beats := func() int64 {
			o, err := ReadOwner(r)
			if err != nil {
				t.Fatal(err)
			}
			return o.Beat
		}
		for range 3 {
			before := beats()
			if err := pulse(); err != nil || beats() != before {
				t.Errorf("%d after %d, %v", beats(), before, err)
			}
			time.Sleep(BeatEvery) // virtual time
			if err := pulse(); err != nil || beats() != before+1 {
				t.Errorf("%d after %d, %v", beats(), before, err)
			}
		}
		cancel()
		if err := pulse(); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
