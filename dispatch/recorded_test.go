package dispatch

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

// TestHostsThatKeepFilesPackThem checks that each host which does not see the run directory is asked to
// pack its own attempts and no others, and that all hosts pack at the end of a run with enough jobs.
func TestHostsThatKeepFilesPackThem(t *testing.T) {
	for least, want := range map[int]bool{0: false, 40: true, 41: false} {
		synctest.Test(t, func(t *testing.T) {
			r := idleRig(t, time.Second)
			r.packs, r.hosts.apart = least, map[string]bool{"a": true, "b": true}
			r.start(&jobs.Table{}, "a", "b", "c")
			r.submit(40)
			r.drain()
			recorded, err := r.d.Recorded(t.Context(), 0)
			if err != nil || len(recorded.Spent) != 40 {
				t.Fatalf("%d attempts are recorded, %v", len(recorded.Spent), err)
			}
			if err := r.d.PackOnHosts(t.Context(), recorded.Spent); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for host, ids := range r.hosts.packed {
				if !slices.IsSortedFunc(ids, jobs.AttemptID.Compare) {
					t.Errorf("%s packs %v", host, ids)
				}
				for _, id := range ids {
					if at, err := r.d.Attempt(t.Context(), id); err != nil || at.Host != host {
						t.Errorf("%s packs %s of %s, %v", host, id, at.Host, err)
					}
				}
			}
			if n := len(r.hosts.packed["a"]) + len(r.hosts.packed["b"]); n == 0 || n >= 40 || len(r.hosts.packed) != 2 {
				t.Errorf("hosts pack %v", r.hosts.packed)
			}
			r.close(sched.AllDone)
			for _, bye := range r.hosts.goodbyes {
				if bye.Pack != want {
					t.Errorf("with %d jobs or more: %+v", least, bye)
				}
			}
			if len(r.hosts.goodbyes) != 3 {
				t.Errorf("goodbyes: %v", r.hosts.goodbyes)
			}
		})
	}
}

// TestDirectoriesAreDueOnce checks that a directory of attempts is due for packing when enough attempts
// of it are recorded, once for each of them, and also for those that an earlier dispatcher recorded.
func TestDirectoriesAreDueOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := idleRig(t, time.Second)
		r.packs = 1
		r.start(&jobs.Table{}, "a")
		due := func(least int, want ...jobs.ID) {
			t.Helper()
			p, err := r.d.Packing(t.Context(), least)
			if err != nil || !slices.Equal(p.Due, want) {
				t.Errorf("%v is due, %v; want %v", p.Due, err, want)
			}
		}
		r.submit(40)
		r.drain()
		due(41)
		due(40, 0)
		recorded, err := r.d.Recorded(t.Context(), 0)
		if err != nil || len(recorded.Spent) != 40 {
			t.Fatalf("%d attempts are recorded, %v", len(recorded.Spent), err)
		}
		time.Sleep(time.Second) // records that no result waits for are durable, too
		if p, err := r.d.Packing(t.Context(), 1); err != nil || p.Durable < recorded.Records {
			t.Errorf("the results were shown, and %d of %d records are durable, %v", p.Durable, recorded.Records, err)
		}
		due(1)
		r.close(sched.AllDone)
	})
}

// TestLastAttemptsOfADirectoryAreDue checks that the last attempts of a directory are due once all its
// jobs have ended, however few they are, and that few suffice while there are many in all directories.
func TestLastAttemptsOfADirectoryAreDue(t *testing.T) {
	var u unpacked
	exited := func(first, last jobs.ID) {
		for id := first; id <= last; id++ {
			u.onRecord(&jobs.Record{Kind: jobs.KindExited, Job: id, N: 1, Seq: int64(id), Outcome: &jobs.Outcome{}})
		}
	}
	due := func(want ...jobs.ID) {
		t.Helper()
		if got := u.due(250, 0); !slices.Equal(got, want) {
			t.Errorf("%v is due, want %v", got, want)
		}
	}
	exited(1, 800)
	exited(1000, 1249)
	due(0, 1000)
	u.take(0, 0, 0)
	u.take(1000, 0, 0)
	exited(801, 998)
	exited(1250, 1300)
	due()
	exited(999, 999)
	due(0)
	u.take(0, 0, 0)
	u.onRecord(&jobs.Record{Kind: jobs.KindExited, Job: 5, N: 2, Outcome: &jobs.Outcome{}})
	due()
	for shard := range jobs.ID(205) {
		exited(2000+1000*shard, 2048+1000*shard)
	}
	if got := u.due(250, 0); len(got) != 206 {
		t.Errorf("%d directories are due while there are %d attempts", len(got), u.all)
	}
	if got := countUnpacked(&jobs.Table{}); got.all != 0 || got.due(1, 0) != nil {
		t.Errorf("%v is due in an empty run", got.due(1, 0))
	}
}

// TestGuardedAttemptsAreDueWhenTheirClaimsAreSpent checks that attempts whose claims are still needed are due
// when they are needed no longer, and not before, however many there are, and that a directory in which
// others end is due because of these alone.
func TestGuardedAttemptsAreDueWhenTheirClaimsAreSpent(t *testing.T) {
	var u unpacked
	exited := func(n int32) { u.add(1, unpackedDir{attempts: n, withFiles: n}) }
	due := func(now time.Duration, want ...jobs.ID) {
		t.Helper()
		if got := u.due(250, now); !slices.Equal(got, want) {
			t.Errorf("at %s %v is due, want %v", now, got, want)
		}
	}
	exited(400)
	if n := u.take(1, 300, time.Minute); n != 100 {
		t.Errorf("%d attempts can be packed, want 100", n)
	}
	exited(249)
	due(time.Minute - 1)
	exited(1)
	due(time.Minute-1, 0)
	if n := u.take(1, 300, time.Minute); n != 250 {
		t.Errorf("%d attempts can be packed, want 250", n)
	}
	due(time.Minute, 0)
	if n := u.take(1, 0, 0); n != 0 || u.all != 0 || u.withFiles != 0 || u.beingPacked != 350 {
		t.Errorf("%d attempts that were guarded keep launches waiting: %+v", n, u)
	}
	due(time.Hour)

	u = unpacked{}
	u.add(1, unpackedDir{attempts: 900}) // by an earlier dispatcher
	exited(50)
	if n := u.take(1, 900, time.Minute); n != 50 || u.withFiles != 0 {
		t.Errorf("%d attempts beside those of an earlier dispatcher can be packed, want 50: %+v", n, u)
	}
}

// TestLaunchesWaitForPacks checks that a run with enough jobs launches nothing while the files of too many
// attempts that have ended wait for a pack, that `why` shows it, that directories with few of them are due
// then, and that launches continue when packs were tried, when no pack can be written, or when the run has
// fewer jobs, for which nothing is packed.
func TestLaunchesWaitForPacks(t *testing.T) {
	const numJobs, limit = 100, 20
	for name, c := range map[string]struct {
		packFrom int
		isFull   bool
		min, max int // number of jobs that run before anything is packed
	}{
		"packed":       {1, false, limit, 2 * limit},
		"full disk":    {1, true, numJobs, numJobs},
		"few jobs":     {numJobs + 1, false, numJobs, numJobs},
		"never packed": {0, false, numJobs, numJobs},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := idleRig(t, time.Second)
				r.packs, r.maxUnpacked = c.packFrom, limit
				r.start(&jobs.Table{}, "a")
				defer r.close(sched.AllDone)
				if c.isFull {
					polltest.Must(t, r.d.Packed(t.Context(), 0, true))
				}
				r.submit(numJobs)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if n := r.numSucceeded(); n < c.min || n > c.max {
					t.Fatalf("%d jobs have run", n)
				}
				for r.numSucceeded() < numJobs {
					why, err := r.d.Why(t.Context(), numJobs)
					if err != nil || !strings.Contains(why, "are packed first") {
						t.Errorf("why: %q, %v", why, err)
					}
					s, err := r.d.Live(t.Context())
					if err != nil || s.Held || !strings.Contains(s.Stuck, "are packed first") {
						t.Errorf("held: %t, stuck: %q, %v", s.Held, s.Stuck, err)
					}
					<-r.d.Signals().Holding
					p, err := r.d.Packing(t.Context(), 250)
					if err != nil || !slices.Equal(p.Due, []jobs.ID{0}) {
						t.Fatalf("due: %v, %v", p.Due, err)
					}
					recorded, err := r.d.Recorded(t.Context(), 0)
					polltest.Must(t, err)
					was := r.numSucceeded()
					time.Sleep(time.Minute)
					if n := r.numSucceeded(); n != was || recorded.WithFiles < limit {
						t.Fatalf("before a pack of %d attempts was tried %d jobs ran", recorded.WithFiles, n-was)
					}
					polltest.Must(t, r.d.Packed(t.Context(), recorded.WithFiles, false))
					time.Sleep(5 * time.Minute)
					synctest.Wait()
					if r.numSucceeded() == was {
						t.Fatal("no job runs after files were packed")
					}
				}
				r.drain()
			})
		})
	}
}

// TestNeededClaimsKeepNoLaunchWaiting checks that a resumed run in which a host does not answer, so that no file
// may be packed for a lease, continues meanwhile.
func TestNeededClaimsKeepNoLaunchWaiting(t *testing.T) {
	const numJobs, limit = 400, 20
	synctest.Test(t, func(t *testing.T) {
		r := idleRig(t, time.Second)
		r.packs, r.maxUnpacked = 1, limit
		r.hosts.refuse["b"] = syscall.EHOSTUNREACH
		r.start(&jobs.Table{Epoch: 2}, "a", "b")
		r.submit(numJobs)
		for range 65 {
			time.Sleep(time.Second)
			p, err := r.d.Packing(t.Context(), 1)
			polltest.Must(t, err)
			for _, first := range p.Due {
				recorded, err := r.d.Recorded(t.Context(), first)
				polltest.Must(t, err)
				polltest.Must(t, r.d.Packed(t.Context(), recorded.WithFiles, false))
			}
		}
		if n := r.numSucceeded(); n < 4*limit {
			t.Errorf("%d jobs ran in a minute", n)
		}
		r.stop()
		r.hosts.wg.Wait()
	})
}

// numSucceeded returns the number of jobs that have succeeded.
func (r *rig) numSucceeded() (n int) {
	r.t.Helper()
	if err := r.d.call(r.t.Context(), func(e *engine) { n = e.core.Table().Counts[jobs.Succeeded] }); err != nil {
		r.t.Fatal(err)
	}
	return n
}
