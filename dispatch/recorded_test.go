package dispatch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
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
		if got := u.due(250); !slices.Equal(got, want) {
			t.Errorf("%v is due, want %v", got, want)
		}
	}
	exited(1, 800)
	exited(1000, 1249)
	due(0, 1000)
	u.take(0)
	u.take(1000)
	exited(801, 998)
	exited(1250, 1300)
	due()
	exited(999, 999)
	due(0)
	u.take(0)
	u.onRecord(&jobs.Record{Kind: jobs.KindExited, Job: 5, N: 2, Outcome: &jobs.Outcome{}})
	due()
	for shard := range jobs.ID(205) {
		exited(2000+1000*shard, 2048+1000*shard)
	}
	if got := u.due(250); len(got) != 206 {
		t.Errorf("%d directories are due while there are %d attempts", len(got), u.all)
	}
	if got := countUnpacked(&jobs.Table{}); got.all != 0 || got.due(1) != nil {
		t.Errorf("%v is due in an empty run", got.due(1))
	}
}
