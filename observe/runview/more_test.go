package runview

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results"
)

// TestRowsAreSmall checks that a job costs a screen at most 64 bytes, because a run may have a
// million of them.
func TestRowsAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(row{}); n > 48 {
		t.Errorf("a row has %d bytes; with one order and the line it is 56", n)
	}
}

// TestStragglersAreFlagged checks that stragglers are flagged, counted, and found (D4).
func TestStragglersAreFlagged(t *testing.T) {
	withLab(t, "a b", func(t *testing.T, l *lab) {
		l.runs = func(id jobs.AttemptID) (time.Duration, jobs.Outcome) {
			if id.Job == 12 {
				return time.Hour, jobs.Outcome{}
			}
			return time.Duration(50+id.Job) * time.Second, jobs.Outcome{}
		}
		l.submit(sleepJobs(12)...)
		time.Sleep(10 * time.Minute)
		p := l.look(Query{Jobs: &JobsWindow{Filter: "straggler=yes", Rows: 5}, Focus: 12})
		if p.Stragglers != 1 || p.Jobs.Matched != 1 || p.Jobs.Rows[0].ID != 12 || !p.Jobs.Rows[0].Straggler ||
			p.Detail.Estimate == 0 {
			t.Errorf("%d stragglers, %+v, %+v", p.Stragglers, p.Jobs, p.Detail)
		}
		l.do(action.Request{Do: action.Cancel, Jobs: jobs.One(12)})
		time.Sleep(time.Second)
		if p := l.look(Query{}); p.Stragglers != 0 {
			t.Errorf("%d stragglers when nothing runs", p.Stragglers)
		}
	})
}

// TestALongListIsSortedSeldom checks that a long list is sorted rarely enough to cost little. Its
// page shows the age of the order, and a waiting Snapshot is woken when the order has been rebuilt.
func TestALongListIsSortedSeldom(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(5)...)
		time.Sleep(3100 * time.Millisecond)
		w := &JobsWindow{Rows: 9}
		p := l.look(Query{Jobs: w})
		if p.Jobs.Settled != 0 {
			t.Errorf("settled %v", p.Jobs.Settled)
		}
		x := l.v.keptOrder(w)
		x.took, x.madeAt = 100*time.Millisecond, time.Now() // as with a million jobs
		l.do(action.Request{Do: action.Cancel, Jobs: jobs.One(3)})
		p = l.look(Query{Jobs: w})
		if got := phasesOf(p); got != "run run cancel queue queue" || p.Phases[Canceled] != 1 {
			t.Errorf("%s: the row is as it is, its place as it was", got)
		}
		time.Sleep(2 * time.Second)
		if p = l.look(Query{Jobs: w}); p.Jobs.Settled < 2*time.Second || phasesOf(p) != "run run cancel queue queue" {
			t.Errorf("settled %v, %s", p.Jobs.Settled, phasesOf(p))
		}
		for start := time.Now(); p.Jobs.Settled > 0; {
			p = l.look(Query{Jobs: w, After: p.Version, Wait: 10 * time.Second})
			if time.Since(start) > 4*time.Second {
				t.Fatalf("not settled after %v", time.Since(start))
			}
		}
		if got := phasesOf(p); got != "run run queue queue cancel" {
			t.Errorf("got phases %q", got)
		}
	})
}

// TestSelectionIsCanceledByOneAction checks that a selection of many jobs is canceled by one action
// and undone by one.
func TestSelectionIsCanceledByOneAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 30_000
		l := newLab(t, "a")
		l.submit(sleepJobs(n)...)
		time.Sleep(5 * time.Second)
		which, err := l.v.Match(t.Context(), "state=queue")
		must(t, err)
		w, err := l.v.Cost(t.Context(), which)
		if err != nil || which.Count() != n-w.Running-2 || w.Queued != which.Count() {
			t.Errorf("%d of %+v, %v", which.Count(), w, err)
		}
		ans := l.do(action.Request{Do: action.Cancel, Jobs: which})
		if ans.Done != w.Queued || len(ans.Changed) != 1 || ans.Changed.Count() != ans.Done {
			t.Errorf("%d done, %d changed in %d ranges", ans.Done, ans.Changed.Count(), len(ans.Changed))
		}
		for p := l.look(Query{}); p.Phases[Canceled] != ans.Done; {
			q := l.look(Query{After: p.Version, Wait: time.Second})
			if q.Version == p.Version {
				t.Fatalf("%d of %d are canceled, and nothing more comes", q.Phases[Canceled], ans.Done)
			}
			p = q
		}
		if undone := l.do(action.Request{Do: action.Requeue, Jobs: ans.Changed}); undone.Done != ans.Done ||
			undone.Left != 0 {
			t.Errorf("Requeue: got %+v, want as many jobs as were canceled", undone)
		}
		l.do(action.Request{Do: action.Cancel, Jobs: jobs.Ranges{{First: 1, Last: n}}})
		l.end()
	})
}

// TestProgressOfOthersIsNotHeard checks promise 5: a host can report progress of its own jobs only,
// and the size of a report is bounded.
func TestProgressOfOthersIsNotHeard(t *testing.T) {
	withLab(t, "a b", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(4)...)
		time.Sleep(time.Second)
		host := map[jobs.ID]string{}
		for _, r := range l.look(Query{Jobs: windowOf(9)}).Jobs.Rows {
			host[r.ID] = r.Host
		}
		other := map[string]string{"a": "b", "b": "a"}
		l.mu.Lock()
		l.say = map[string]string{other[host[1]] + " 1.1": "0.9", host[2] + " 2.1": "0.3",
			host[3] + " 3.1": strings.Repeat("9", 10_000), host[4] + " 4.7": "0.5"}
		l.mu.Unlock()
		time.Sleep(4 * time.Second)
		for _, r := range l.look(Query{Jobs: &JobsWindow{Rows: 9, Sort: SortProgress}}).Jobs.Rows {
			if r.ID == 2 && r.Progress != 0.3 || r.ID != 2 && r.Progress != -1 || len(r.Said) > 64 {
				t.Errorf("got row %+v, want progress only of job 2, and a short text", r)
			}
		}
	})
}

// TestProgressOfAwayJobsStands checks that the progress of a job is kept while its host is away,
// and until the first heartbeat after the host has returned.
func TestProgressOfAwayJobsStands(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.say = map[string]string{"1.1": "0.95"}
		l.runs = func(jobs.AttemptID) (time.Duration, jobs.Outcome) { return time.Hour, jobs.Outcome{} }
		l.submit(sleepJobs(1)...)
		time.Sleep(10 * time.Second)
		wants := func(what string, phase Phase) {
			t.Helper()
			if r := l.look(Query{Jobs: windowOf(1)}).Jobs.Rows[0]; r.Phase != phase || r.Progress != 0.95 {
				t.Errorf("%s: %s, progress %v", what, r.Phase, r.Progress)
			}
		}
		wants("up", Running)
		l.cut("a")
		time.Sleep(time.Second)
		wants("away", Away)
		l.mu.Lock()
		l.refuse = nil
		l.mu.Unlock()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if p := l.look(Query{Jobs: windowOf(1)}); p.Hosts[0].State == "up" {
				break
			}
		}
		wants("back, and not a heartbeat yet", Running)
	})
}

// TestSentJobsOfAnAwayHostAreSent checks that a job that was sent to a host before the host became
// unreachable counts as sent, and not as running. That is what `status` shows.
func TestSentJobsOfAnAwayHostAreSent(t *testing.T) {
	table := newTab()
	table.add(jobs.Spec{Command: "train"}, jobs.Running, withRunning("ws01", time.Hour))
	table.add(jobs.Spec{Command: "train"}, jobs.Running, withLaunching("ws01"))
	b := boardOf(t, table)
	for _, linked := range []bool{true, false, true} {
		b.mu.Lock()
		b.setState(&live.State{At: time.Now(), Hosts: []live.Host{{Name: "ws01", Linked: linked}}})
		b.changed()
		b.mu.Unlock()
		p := lookAt(t, b, Query{})
		if got := results.RunningText(p.NumRunning(), p.Idle, true); got != "1 running, 1 sent" ||
			!linked && p.Phases[Away] != 2 {
			t.Errorf("linked %v: %q, phases %v", linked, got, p.Phases)
		}
	}
}

// TestJobsOfAHeldHostAreSuspended checks that a job that has started on a host is suspended while the
// host's owner is back, unless a copy runs elsewhere or the job is being ended, and that `status` and
// the screen count the same.
func TestJobsOfAHeldHostAreSuspended(t *testing.T) {
	table := newTab()
	for range 2 {
		table.add(jobs.Spec{Command: "train"}, jobs.Running, withRunning("ws01", time.Hour))
	}
	table.add(jobs.Spec{Command: "train"}, jobs.Running, withLaunching("ws01"))
	table.add(jobs.Spec{Command: "train"}, jobs.Running, withRunning("ws01", time.Hour), withRunning("ws02", time.Hour))
	table.Cancels = map[jobs.ID]jobs.Cancel{2: {}}
	for held, want := range [][]Phase{{Running, Ending, Sent, Running}, {Suspended, Ending, Sent, Running}} {
		state := &live.State{At: time.Now(), Hosts: []live.Host{{Name: "ws02", Linked: true}, {Name: "ws01",
			Linked: true, HostStatus: jobs.HostStatus{Suspended: 3 * held}}}}
		b := boardOf(t, table)
		b.mu.Lock()
		b.setState(state)
		b.changed()
		b.mu.Unlock()
		p := lookAt(t, b, Query{Jobs: &JobsWindow{Rows: 9, Sort: SortID}, Host: "ws01"})
		for i, r := range p.Jobs.Rows {
			if r.Phase != want[i] {
				t.Errorf("held %d: job %d: %s, want %s", held, r.ID, r.Phase, want[i])
			}
		}
		if n := CountIdle(b.table, state); n != p.Idle || n.Suspended != held || n.Sent != 1 {
			t.Errorf("held %d: status counts %+v, and the screen %+v", held, n, p.Idle)
		}
		if r := p.Host.Runs; len(r) != 3 || r[0].Phase != want[0] {
			t.Errorf("held %d: in the slots: %+v", held, r)
		}
	}
}

// TestProgressIsKeptWithoutADispatcher checks that the last reported progress of a job stays when
// nobody dispatches the run any more.
func TestProgressIsKeptWithoutADispatcher(t *testing.T) {
	table := newTab()
	table.add(jobs.Spec{Command: "train"}, jobs.Running, withRunning("ws01", time.Hour))
	b := boardOf(t, table)
	for _, state := range []*live.State{nil, {At: time.Now(), Progress: map[string]string{"1.1": "0.95"},
		Hosts: []live.Host{{Name: "ws01", Linked: true}}}, nil} {
		b.mu.Lock()
		b.setState(state)
		b.changed()
		b.mu.Unlock()
		lookAt(t, b, Query{Jobs: windowOf(1)})
	}
	if r := lookAt(t, b, Query{Jobs: windowOf(1)}).Jobs.Rows[0]; r.Phase != Away || r.Progress != 0.95 {
		t.Errorf("%s, progress %v", r.Phase, r.Progress)
	}
}
