package runview

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
)

// windowOf returns a query for the first n rows.
func windowOf(n int) *JobsWindow { return &JobsWindow{Rows: n} }

func phasesOf(p *Snapshot) (s string) {
	var words []string
	for _, r := range p.Jobs.Rows {
		words = append(words, r.Phase.String())
	}
	return strings.Join(words, " ")
}

// TestASnapshotOfARun checks the default order, and that counts, rows, and hosts of one snapshot
// agree.
func TestASnapshotOfARun(t *testing.T) {
	withLab(t, "a b", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(7)...)
		time.Sleep(10 * time.Second)
		p := l.look(Query{Jobs: windowOf(10), Focus: 6})
		if got, want := phasesOf(p), "run run run run queue queue queue"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if p.Phases[Running] != 4 || p.Phases[Queued] != 3 || p.Total != 7 || p.More || p.Status != StatusRunning {
			t.Errorf("got %+v, want a running run with 4 running and 3 queued jobs", p)
		}
		if p.SlotsBusy != 4 || p.Slots != 4 || len(p.Hosts) != 2 {
			t.Errorf("%d of %d slots on %d hosts", p.SlotsBusy, p.Slots, len(p.Hosts))
		}
		for i, r := range p.Jobs.Rows[4:] {
			if r.Place != i || r.ID != jobs.ID(5+i) {
				t.Errorf("job %d starts behind %d others, want %d", r.ID, r.Place, i)
			}
		}
		if r := p.Jobs.Rows[0]; r.Tries != 2 || r.Attempt != 1 || r.Host == "" || p.At.Sub(r.Started) < 9*time.Second ||
			r.Progress != -1 {
			t.Errorf("got row %+v, want a running first attempt with its host and start", r)
		}
		if d := p.Detail; d == nil || d.Row.ID != 6 || !strings.HasPrefix(d.Why, "Job 6 waits: ") ||
			d.Command != "sleep 60" {
			t.Errorf("details: got %+v, want job 6 with its command and why it waits", p.Detail)
		}
		if p.Run.Name != "test" || p.Run.UID != l.run.UID() || p.Run.Lab != "lab" || p.Run.Epoch != 1 {
			t.Errorf("got run %+v, want the name test, its uid, lab, and epoch 1", p.Run)
		}
		h := p.Hosts[0]
		if h.State != "up" || h.Delay < 20*time.Millisecond || h.Delay > 30*time.Millisecond || h.Down != 0 ||
			h.Heartbeat == 0 || len(h.History) == 0 {
			t.Errorf("got host %+v, want it up, with a delay from 20 to 30 ms", h)
		}
		time.Sleep(2 * time.Minute)
		p = l.look(Query{Jobs: windowOf(10)})
		if p.Phases[Succeeded] != 7 || p.Status != StatusFinished || p.Over == "" {
			t.Errorf("phases %v, status %v, over %q; want 7 succeeded jobs of a finished run", p.Phases,
				p.Status, p.Over)
		}
		if first := p.Jobs.Rows[0]; first.ID < 5 {
			t.Errorf("job %d comes first of those that are over, and is not the newest", first.ID)
		}
		if len(p.Rates) == 0 {
			t.Error("no rates for the sparkline")
		}
	})
}

// TestReaderOfAClosedView checks that a View gives its reader away only when it has ended, and with
// all that was read.
func TestReaderOfAClosedView(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(3)...)
		l.look(Query{})
		if r, _ := l.v.Reader(); r != nil {
			t.Error("a View that is open gives its reader away")
		}
		l.v.Close()
		r, _ := l.v.Reader()
		if r == nil {
			t.Fatal("a closed View has no reader")
		}
		if got := r.Table().NumJobs(); got != 3 {
			t.Errorf("%d jobs, want 3", got)
		}
	})
}

// TestSnapshotWaitsForChanges checks that a Snapshot waits for changes and is woken at most every
// 100 ms. An idle run wakes it only for values that age.
func TestSnapshotWaitsForChanges(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(2)...)
		time.Sleep(5 * time.Second)
		p := l.look(Query{})
		was, woken := time.Now(), 0
		for time.Since(was) < 30*time.Second {
			p = l.look(Query{After: p.Version, Wait: 30*time.Second - time.Since(was)})
			woken++
		}
		if woken > 13 { // ten heartbeats of the only host, and the wait
			t.Errorf("a run that stands still woke %d times in 30 s", woken)
		}
		p = l.look(Query{}) // everything seen
		start := time.Now()
		go func() {
			time.Sleep(300 * time.Millisecond)
			l.v.Do(context.Background(), action.Request{Do: action.Cancel, Jobs: jobs.One(1)})
		}()
		q := l.look(Query{After: p.Version, Wait: time.Minute})
		if d := time.Since(start); d < 300*time.Millisecond && q.Version == p.Version || d > 3*time.Second {
			t.Errorf("woken after %v", d)
		}
		time.Sleep(time.Second)
	})
}

// TestSnapshotEndsWithItsContext checks that Snapshot, Match, and Do return when ctx ends. When the
// dispatcher ends, they report that.
func TestSnapshotEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "a")
		l.submit(sleepJobs(1)...)
		time.Sleep(3100 * time.Millisecond)
		p := l.look(Query{})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := l.v.Snapshot(ctx, Query{After: p.Version + 100, Wait: time.Hour}); !errors.Is(err,
			context.DeadlineExceeded) || time.Since(start) != 500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		gone := make(chan error, 1)
		go func() {
			_, err := l.v.Snapshot(context.Background(), Query{After: 1 << 60, Wait: time.Hour})
			gone <- err
		}()
		synctest.Wait()
		l.end()
		if err := <-gone; !errors.Is(err, ErrGone) {
			t.Error(err)
		}
		if _, err := l.v.Snapshot(context.Background(), Query{}); !errors.Is(err, ErrGone) {
			t.Error(err)
		}
	})
}

// TestTwoScreensSeeTheSame checks that two screens that look at the same time see the same, and
// that the counts of one snapshot agree, also in the first snapshot with new jobs.
func TestTwoScreensSeeTheSame(t *testing.T) {
	withLab(t, "a b", func(t *testing.T, l *lab) {
		got := make(chan *Snapshot, 2)
		version := uint64(0)
		for i := range 30 {
			if i%3 == 0 {
				must(t, l.d.Submit(sleepJobs(4), i == 27))
			}
			for range 2 {
				go func() {
					p, err := l.v.Snapshot(t.Context(), Query{After: version, Wait: time.Second, Jobs: windowOf(50)})
					if err != nil {
						t.Error(err)
					}
					got <- p
				}()
			}
			a, b := <-got, <-got
			if a.Version == b.Version && (phasesOf(a) != phasesOf(b) || a.Phases != b.Phases) {
				t.Errorf("two snapshots:\n%d %s\n%d %s", a.Version, phasesOf(a), b.Version, phasesOf(b))
			}
			sum := [Phases]int{}
			for _, r := range a.Jobs.Rows {
				sum[r.Phase]++
			}
			if sum != a.Phases || len(a.Jobs.Rows) != a.Total {
				t.Errorf("%d jobs: the rows have %v and the counts say %v", a.Total, sum, a.Phases)
			}
			if i%2 > 0 { // otherwise the next looks do not wait
				version = max(a.Version, b.Version)
			}
		}
		time.Sleep(time.Second)
		if p := l.look(Query{}); p.Total != 40 {
			t.Errorf("got %d jobs, want 40", p.Total)
		}
	})
}

// TestPhasesWithoutARecord checks phases that no record contains: a lost link, a delay that has
// passed, and a job that another one waits for.
func TestPhasesWithoutARecord(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.runs = func(id jobs.AttemptID) (time.Duration, jobs.Outcome) {
			if id.Job == 1 && id.N == 1 {
				return time.Second, jobs.Outcome{Exit: 3, LastLine: "no luck"}
			}
			return 30 * time.Second, jobs.Outcome{}
		}
		specs := sleepJobs(3)
		specs[1].SetAfter(jobstest.After(1))
		specs[2].Options = &jobs.Options{Deadline: time.Now().Add(time.Hour)}
		l.submit(specs...)
		time.Sleep(100 * time.Millisecond)
		if got := phasesOf(l.look(Query{Jobs: windowOf(9)})); got != "run run waits" {
			t.Errorf("got phases %q, want \"run run waits\"", got)
		}
		time.Sleep(1100 * time.Millisecond)
		p := l.look(Query{Jobs: windowOf(9), Groups: true})
		if got := phasesOf(p); got != "run retry waits" {
			t.Errorf("got phases %q, want \"run retry waits\"", got)
		}
		if r := p.Jobs.Rows[1]; r.Cause != "exit 3" || r.Last != "no luck" || r.Failures != 1 || r.Retry.IsZero() ||
			r.Host != "a" {
			t.Errorf("got row %+v, want a failure with its cause, last line, host, and retry", r)
		}
		if len(p.Groups) != 1 || p.Groups[0].Count != 0 || p.Groups[0].Tries != 1 {
			t.Errorf("groups: got %+v, want one with one failed try and no failed job", p.Groups)
		}
		for phasesOf(p) != "run run waits" {
			q := l.look(Query{Jobs: windowOf(9), After: p.Version, Wait: 5 * time.Second})
			if q.Version == p.Version {
				t.Fatalf("nobody was woken when the wait was over: %s", phasesOf(q))
			}
			p = q
		}
		time.Sleep(35 * time.Second)
		if got := phasesOf(l.look(Query{Jobs: windowOf(9)})); got != "run ok ok" {
			t.Errorf("got phases %q, want \"run ok ok\"", got)
		}
		l.cut("a")
		time.Sleep(time.Second)
		p = l.look(Query{Jobs: windowOf(9)})
		if got := phasesOf(p); got != "away ok ok" || p.Hosts[0].Down == 0 || p.Hosts[0].Note == "" {
			t.Error(got, p.Hosts[0])
		}
	})
}
