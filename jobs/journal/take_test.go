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

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
)

// foreign creates a run with a journal of one epoch. As far as this machine can tell, its owner is
// on another machine.
func foreign(t *testing.T) (*rundir.Run, *Journal) {
	t.Helper()
	r := newRun(t)
	j, _, _ := mustTake(t, r, TakeOptions{})
	j.writer.owner.Host, j.writer.owner.Boot = "melon3", "another-boot"
	must(t, j.Heartbeat())
	return r, j
}

// timedTake takes a run, and returns how long that took.
func timedTake(t *testing.T, r *rundir.Run, opt TakeOptions) (waited time.Duration, err error) {
	t.Helper()
	began := time.Now()
	_, _, _, err = Take(t.Context(), r, opt)
	return time.Since(began), err
}

// TestTakeRefusesALiveOwner checks that a live owner on this machine is refused at once. The error
// has its name and what to do (a second `run` on a directory in use).
func TestTakeRefusesALiveOwner(t *testing.T) {
	r := newRun(t)
	j, _, _ := mustTake(t, r, TakeOptions{})
	_, _, _, err := Take(t.Context(), r, TakeOptions{})
	var owned *OwnedError
	if !errors.As(err, &owned) || owned.Owner == nil || owned.Owner.PID != os.Getpid() {
		t.Fatalf("Take of an owned run: got error %v, want an OwnedError with this process", err)
	}
	host, _ := os.Hostname()
	for _, want := range []string{"pid ", host, "since ", "status " + r.Dir, "--force"} {
		t.Run(want, func(t *testing.T) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		})
	}
	if n, err := j.Fenced(); n != 0 || err != nil {
		t.Errorf("the refused one has fenced the owner: %d, %v", n, err)
	}
}

// TestStandbyCountsOn checks that the results for --halt count on after a standby has taken over, and anew
// after a person has.
func TestStandbyCountsOn(t *testing.T) {
	_, r := inMemory(t, jobstest.Specs(2)...)
	j, _, _ := mustTake(t, r, TakeOptions{})
	record(t, j, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2},
		jobs.Record{Kind: jobs.KindJob, Job: 1, Next: jobs.Failed, Seq: 1})
	for _, c := range []struct {
		opt  TakeOptions
		want int
	}{{TakeOptions{Force: true, Standby: true}, 1}, {TakeOptions{Force: true}, 0}} {
		_, table, _ := mustTake(t, r, c.opt)
		if n := table.Results[jobs.Failed]; n != c.want {
			t.Errorf("standby %t: %d results count, want %d", c.opt.Standby, n, c.want)
		}
	}
}

// TestDeadOwnerIsNotWaitedFor checks that a dead pid on this machine, or a pid that now belongs to
// another process, is immediate proof without waiting. So is an owner that left.
func TestDeadOwnerIsNotWaitedFor(t *testing.T) {
	child := exec.Command("true")
	must(t, child.Run())
	for what, change := range map[string]func(*Owner){
		"no such pid":           func(o *Owner) { o.PID = child.Process.Pid },
		"pid used again":        func(o *Owner) { o.Start++ },
		"left of its own will":  func(o *Owner) { o.Left = true },
		"left, another machine": func(o *Owner) { o.Left, o.Boot = true, "another-boot" },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			j, _, _ := mustTake(t, r, TakeOptions{})
			must(t, j.writer.heartbeat(change))
			if waited, err := timedTake(t, r, TakeOptions{}); err != nil || waited != 0 {
				t.Errorf("%s: waited %s, %v", what, waited, err)
			}
		})
	}
}

// TestOwnerElsewhereIsJudgedByItsHeartbeats checks that an owner elsewhere is judged by its
// heartbeats as seen by this machine's clock, whatever its own clock shows. One that is silent for
// StaleAfter is taken over.
func TestOwnerElsewhereIsJudgedByItsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, old := foreign(t)
		old.writer.owner.Since = time.Now().Add(1000 * time.Hour) // its clock is wrong
		must(t, old.Heartbeat())
		var said []string
		waited, err := timedTake(t, r, TakeOptions{Notify: func(s string) { said = append(said, s) }})
		if err != nil || waited != StaleAfter {
			t.Errorf("waited %s, %v", waited, err)
		}
		if len(said) != 1 || !strings.Contains(said[0], "melon3") {
			t.Errorf("told %q", said)
		}
		if n, _ := old.Fenced(); n != 2 {
			t.Errorf("the old one is not fenced off: %d", n)
		}
	})
}

// TestOwnerThatSendsHeartbeatsIsRefused checks that an owner that sends heartbeats is refused as
// soon as one arrives. --force takes the run at once.
func TestOwnerThatSendsHeartbeatsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, old := foreign(t)
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(HeartbeatInterval):
					if err := old.Heartbeat(); err != nil {
						t.Error(err)
					}
				}
			}
		})
		waited, err := timedTake(t, r, TakeOptions{})
		var owned *OwnedError
		if !errors.As(err, &owned) || owned.Owner == nil || owned.Owner.Host != "melon3" || waited > HeartbeatInterval+
			watchInterval {
			t.Errorf("%v after %s", err, waited)
		}
		stop()
		wg.Wait()
		if waited, err := timedTake(t, r, force); err != nil || waited != 0 {
			t.Errorf("--force: %v after %s", err, waited)
		}
	})
}

// TestWatchingEndsWhenTheOwnerLeaves checks that watching ends when the caller gives up, and when
// the owner leaves.
func TestWatchingEndsWhenTheOwnerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, old := foreign(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, _, _, err := Take(ctx, r, TakeOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Take: got error %v, want context.DeadlineExceeded", err)
		}
		closed := make(chan error, 1)
		time.AfterFunc(3*time.Second, func() { closed <- old.Close() })
		if waited, err := timedTake(t, r, TakeOptions{}); err != nil || waited > 5*time.Second {
			t.Errorf("%v after %s", err, waited)
		}
		must(t, <-closed)
	})
}

// TestTakeWithADamagedOwnerFile checks that a damaged owner file is neither a heartbeat nor proof
// of death.
func TestTakeWithADamagedOwnerFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := foreign(t)
		putFile(t, r, r.Path(rundir.OwnerFile), []byte("half"))
		if o, err := ReadOwner(r); err == nil {
			t.Errorf("read as %v", o)
		}
		if waited, err := timedTake(t, r, TakeOptions{}); err != nil || waited != StaleAfter {
			t.Errorf("%v after %s", err, waited)
		}
	})
}

// TestInterruptedTakeIsNotWaitedFor checks a Take that was cut off before it installed its owner
// file. If its process is known to be dead on this machine, nobody waits. If it lives, it is
// respected.
func TestInterruptedTakeIsNotWaitedFor(t *testing.T) {
	for what, alive := range map[string]bool{"alive": true, "dead": false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			j, _, _ := mustTake(t, r, TakeOptions{})
			must(t, j.Close())
			other := &ownerWriter{run: r}
			o, err := (&TakeOptions{Token: "token"}).owner(2)
			must(t, err)
			if !alive {
				o.Start++
			}
			other.owner = *o
			_, err = other.prepare()
			must(t, err)
			putJournal(t, r, 2, nil)
			wait := time.Duration(0)
			if alive {
				wait = takerTimeout // the wait for its name: only one of several takers has it
			}
			if waited, err := timedTake(t, r, TakeOptions{}); waited != wait || alive != (err != nil) {
				t.Errorf("%s: %v after %s, want %s", what, err, waited, wait)
			}
		})
	}
}

// TestHeartbeatsDuringAReplay checks that the new owner still sends heartbeats while a large
// journal is replayed, and that the caller can give up.
func TestHeartbeatsDuringAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		j, _, _ := mustTake(t, r, TakeOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		pulse := j.heartbeats(ctx)
		heartbeats := func() int64 {
			o, err := ReadOwner(r)
			must(t, err)
			return o.Heartbeat
		}
		for range 3 {
			before := heartbeats()
			if err := pulse(); err != nil || heartbeats() != before {
				t.Errorf("%d after %d, %v", heartbeats(), before, err)
			}
			time.Sleep(HeartbeatInterval) // virtual time
			if err := pulse(); err != nil || heartbeats() != before+1 {
				t.Errorf("%d after %d, %v", heartbeats(), before, err)
			}
		}
		cancel()
		if err := pulse(); !errors.Is(err, context.Canceled) {
			t.Errorf("after the cancel: got error %v, want context.Canceled", err)
		}
	})
}
