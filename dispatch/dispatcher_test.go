package dispatch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// rig runs a dispatcher with fake hosts and a fake journal, in virtual time.
type rig struct {
	t       *testing.T
	journal *jobstest.Journal
	deleted func() bool
	files   Files
	packs   int // Config.PackFiles
	// Config.MaxUnpacked
	maxUnpacked int
	hosts       *fakeHosts
	// connector reaches the hosts instead of hosts, unless it is nil.
	connector hosts.Connector
	d         *Dispatcher
	notices   []string
}

// newRig starts a dispatcher of a new run with these hosts, on which each job takes the given time.
func newRig(t *testing.T, run time.Duration, names ...string) *rig {
	return idleRig(t, run).start(&jobs.Table{}, names...)
}

// idleRig returns a rig that is not started.
func idleRig(t *testing.T, run time.Duration) *rig {
	r := &rig{t: t, journal: new(jobstest.Journal)}
	r.hosts = newFakeHosts(t, r.journal, run)
	return r
}

func fakeHost(name string) *hosts.Host {
	return &hosts.Host{Name: name, Link: "ssh", Addresses: []string{name}, Slots: hosts.SlotRule{Fixed: 4}, Weight: 1}
}

func (r *rig) start(table *jobs.Table, names ...string) *rig {
	var hs []*hosts.Host
	for _, n := range names {
		hs = append(hs, fakeHost(n))
	}
	d, err := Start(Config{
		RunUID: "u1", RunName: "test", RunDir: "/run", Sched: sched.Config{Seed: 1},
		Inventory: &hosts.Inventory{Hosts: hs},
		Connector: cmp.Or[hosts.Connector](r.connector, r.hosts), Journal: r.journal, Table: table,
		IsDeleted: r.deleted, Files: r.files, PackFiles: r.packs, MaxUnpacked: r.maxUnpacked,
		StoreSpecs: func([]*jobs.Spec) error { return nil },
		Open:       hosts.Open{Run: "u1", Epoch: 1},
		Notify:     func(n Notice) { r.notices = append(r.notices, n.Text) },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.d = d
	return r
}

func (r *rig) submit(n int) {
	if err := r.d.Submit(jobstest.Specs(n), true); err != nil {
		r.t.Fatal(err)
	}
}

// drain reads and acknowledges every result until the run is over.
func (r *rig) drain() []*Result {
	var out []*Result
	for {
		res, err := r.d.Next(context.Background())
		if err == io.EOF {
			return out
		}
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, res)
		r.d.Ack(res.Seq)
	}
}

// finish drains the run, which must give n results, and closes it.
func (r *rig) finish(n int) []*Result {
	r.t.Helper()
	res := r.drain()
	if len(res) != n {
		r.t.Errorf("%d results, want %d", len(res), n)
	}
	r.close(sched.AllDone)
	return res
}

func (r *rig) close(how sched.Finished) {
	r.t.Helper()
	f, err := r.d.Close()
	if err != nil || f.How != how {
		r.t.Errorf("the run ended %v (%s), %v; want %v", f.How, f.Why, err, how)
	}
	r.hosts.wg.Wait()
}

// stop stops the dispatcher and leaves the jobs running.
func (r *rig) stop() {
	r.t.Helper()
	r.d.Do(sched.Stop{Why: "test"})
	<-r.d.Finished()
	if f, _ := r.d.Close(); f.How != sched.Stopped {
		r.t.Fatalf("ended %v", f.How)
	}
}

// replayed returns the table that a new dispatcher would read from the journal.
func (r *rig) replayed() *jobs.Table {
	r.t.Helper()
	table := &jobs.Table{Specs: r.d.cfg.Table.Specs}
	r.fold(table, r.journal.Durable()...)
	return table
}

// fold applies records to a table.
func (r *rig) fold(table *jobs.Table, records ...jobs.Record) {
	r.t.Helper()
	for i := range records {
		if err := jobs.Fold(table, &records[i]); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestEveryJobComesBackOnce checks that every submitted job yields one result, that results are
// numbered without gaps, and that the acknowledgments are recorded (D1, promise 1).
func TestEveryJobComesBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a", "b")
		r.submit(50)
		res := r.drain()
		if len(res) != 50 {
			t.Fatalf("%d results of 50 jobs", len(res))
		}
		seen := map[jobs.ID]bool{}
		for i, x := range res {
			if x.Seq != int64(i+1) || x.State != jobs.Succeeded || seen[x.Job] {
				t.Errorf("result %d: job %d seq %d %s", i, x.Job, x.Seq, x.State)
			}
			seen[x.Job] = true
		}
		r.close(sched.AllDone)
		if got := r.d.cfg.Table.Acked; got != 50 {
			t.Errorf("acknowledged up to %d", got)
		}
		for _, b := range r.hosts.goodbyes {
			if !b.End {
				t.Error("a host was not told that the run is over (promise 4)")
			}
		}
		if len(r.hosts.goodbyes) != 2 {
			t.Errorf("%d hosts were taken leave of", len(r.hosts.goodbyes))
		}
	})
}

// TestNothingIsLaunchedWithoutJournal checks that nothing is launched while the journal cannot be
// written, that the problem is shown, and that the run continues when there is space again.
func TestNothingIsLaunchedWithoutJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a")
		r.journal.Fail(syscall.ENOSPC)
		r.submit(3)
		time.Sleep(30 * time.Second)
		if r.hosts.launches != 0 {
			t.Errorf("%d jobs launched without a durable record", r.hosts.launches)
		}
		if s := r.d.Snapshot(); s.Problem == "" {
			t.Error("the snapshot does not say that the journal cannot be written")
		}
		r.journal.Fail(nil)
		r.finish(3)
	})
}

// TestAFencedDispatcherStops checks that a dispatcher that finds a higher epoch stops and kills
// nothing (X1).
func TestAFencedDispatcherStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		r.submit(2)
		time.Sleep(10 * time.Second)
		r.journal.FencedBy(2)
		<-r.d.Finished()
		r.close(sched.Fenced)
		if len(r.hosts.killed) != 0 {
			t.Errorf("a fenced dispatcher killed %v", r.hosts.killed)
		}
	})
}

// TestALinkThatBreaksLosesNothing checks that a broken link costs no job. Jobs that ended in the
// meantime are counted, and nothing is launched twice; the fake host fails the test if it is (B1,
// D6, P2).
func TestALinkThatBreaksLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20*time.Second, "a", "b")
		r.submit(16)
		time.Sleep(5 * time.Second)
		r.hosts.cut("a", "connection refused")
		time.Sleep(25 * time.Second)
		r.hosts.heal()
		for _, x := range r.finish(16) {
			if x.State != jobs.Succeeded || x.Failures != 0 || x.Attempts != 1 {
				t.Errorf("job %d: %s after %d attempts", x.Job, x.State, x.Attempts)
			}
		}
	})
}

// TestStopAndResumeAdopts checks that a stop leaves jobs running and that the next dispatcher
// adopts them. There is no second launch, and each result arrives once.
func TestStopAndResumeAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20*time.Second, "a")
		r.submit(6)
		time.Sleep(5 * time.Second)
		r.stop()
		if len(r.hosts.killed) > 0 || len(r.hosts.goodbyes) != 1 || r.hosts.goodbyes[0].End {
			t.Errorf("stopping touched running jobs: killed %v, byes %v", r.hosts.killed, r.hosts.goodbyes)
		}
		r.start(r.replayed(), "a")
		r.submit(0)
		r.finish(6)
	})
}

// TestUnacknowledgedResultsComeAgain checks that results that were not acknowledged are returned
// again (promise 1).
func TestUnacknowledgedResultsComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a")
		r.submit(3)
		first, err := r.d.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		r.d.Ack(first.Seq)
		<-r.d.Finished()
		r.close(sched.AllDone)
		r.start(r.d.cfg.Table, "a")
		r.submit(0)
		if res := r.finish(2); len(res) == 2 && (res[0].Seq != 2 || res[1].Seq != 3) {
			t.Errorf("handed out again: %+v", res)
		}
	})
}

// TestCancelEndsQueuedAndRunningJobs checks that a cancel kills running jobs through their host and
// ends queued jobs at once (K9).
func TestCancelEndsQueuedAndRunningJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		r.submit(10)
		time.Sleep(4 * time.Second)
		r.d.Do(sched.Cancel{All: true, Why: "test"})
		for _, x := range r.finish(10) {
			if x.State != jobs.Canceled {
				t.Errorf("job %d is %s", x.Job, x.State)
			}
		}
		if len(r.hosts.killed) != 4 {
			t.Errorf("%d attempts killed", len(r.hosts.killed))
		}
	})
}

// TestNextHonorsItsContext checks that Next returns when its context ends, and that no result is
// lost.
func TestNextHonorsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, "a")
		r.submit(1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := r.d.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next: %v", err)
		}
		r.finish(1)
	})
}
