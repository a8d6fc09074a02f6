package runview

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// tab is a table that a test builds.
type tab struct{ *jobs.Table }

func newTab() tab { return tab{&jobs.Table{Cancels: map[jobs.ID]jobs.Cancel{}}} }

// add adds a job. change may modify its row.
func (t tab) add(s jobs.Spec, state jobs.JobState, change ...func(*jobs.Job)) {
	s.ID = jobs.ID(len(t.Jobs) + 1)
	if s.Options == nil {
		s.Options = jobs.NoOptions
	}
	t.Specs = append(t.Specs, &s)
	j := jobs.Job{Spec: &s, Round: 1, State: state, Priority: int32(s.Priority)}
	if state.Terminal() {
		t.Seq++
		j.Seq = t.Seq
	}
	t.Jobs = append(t.Jobs, j)
	for _, f := range change {
		f(&t.Jobs[len(t.Jobs)-1])
	}
	t.Counts[state]++
}

// attempt adds an attempt that was launched some time ago.
func attempt(j *jobs.Job, host string, ago time.Duration, state jobs.AttemptState) *jobs.Attempt {
	a := &jobs.Attempt{ID: jobs.AttemptID{Job: j.Spec.ID, N: len(j.Attempts) + 1}, Host: host,
		Launched: jobs.StampOf(time.Now().Add(-ago)),
		State:    state, Round: j.Round}
	if state != jobs.AttemptLaunching {
		a.Started = a.Launched
	}
	j.Attempts = append(j.Attempts, a)
	return a
}

// withEnded adds an attempt that has ended.
func withEnded(host string, o jobs.Outcome, took time.Duration) func(*jobs.Job) {
	return func(j *jobs.Job) {
		a := attempt(j, host, time.Hour, jobs.AttemptExited)
		j.Counted = int32(a.ID.N)
		o.Started, o.Ended = a.Started, a.Started+jobs.Stamp(took)
		a.Outcome, a.Charged = &o, !o.OK()
		if a.Charged {
			j.Failures++
		}
	}
}

// withRunning adds an attempt that is running.
func withRunning(host string, since time.Duration) func(*jobs.Job) {
	return func(j *jobs.Job) { attempt(j, host, since, jobs.AttemptRunning) }
}

// withLaunching adds an attempt that is being launched.
func withLaunching(host string) func(*jobs.Job) {
	return func(j *jobs.Job) { attempt(j, host, 0, jobs.AttemptLaunching) }
}

func param(name, value string) []jobs.Param { return []jobs.Param{{Name: name, Value: value}} }

// sampleRun returns a run with a job of each kind, by id.
func sampleRun() tab {
	t := newTab()
	gpu := &jobs.Options{Queue: "night", Tags: []string{"gpu"}, Priority: 5}
	t.add(jobs.Spec{Command: "train --lr 0.1", Name: "Alpha", Labels: jobs.NewLabels("", param("C", "0.1"))},
		jobs.Succeeded, withEnded("ws01", jobs.Outcome{MaxRSSBytes: 9 << 20}, time.Minute))
	t.add(jobs.Spec{Command: "train --lr 0.5", Labels: jobs.NewLabels("", param("C", "1e-1")), Options: gpu},
		jobs.Failed, withEnded("ws02", jobs.Outcome{Exit: 1}, time.Second), withEnded("ws01",
			jobs.Outcome{Exit: 137, LastLine: "Killed"}, 3*time.Second))
	t.add(jobs.Spec{Command: "echo Straße", Labels: jobs.NewLabels("", param("C", "10"))}, jobs.Running,
		withRunning("ws01", time.Hour))
	t.add(jobs.Spec{Command: "sleep 9", Labels: jobs.NewLabels("", param("kernel", "rbf")), Options: gpu}, jobs.Queued)
	t.add(jobs.Spec{Command: "sleep 8"}, jobs.Queued, withEnded("ws03", jobs.Outcome{Signal: "SIGKILL"}, time.Second),
		func(j *jobs.Job) { j.Retry = jobs.StampOf(time.Now().Add(time.Hour)) })
	t.add(jobs.Spec{Command: "sleep 7", Labels: jobs.NewLabels("", nil, jobstest.After(3)...)}, jobs.Queued)
	t.add(jobs.Spec{Command: "sleep 6"}, jobs.Canceled)
	t.add(jobs.Spec{Command: "a \"quoted\" word"}, jobs.TimedOut,
		withEnded("ws02", jobs.Outcome{Signal: "SIGTERM", TimedOut: true, CPU: 2 * time.Second}, time.Minute))
	t.add(jobs.Spec{Command: "sleep 5", Options: &jobs.Options{Priority: -1}}, jobs.Queued)
	t.add(jobs.Spec{Command: "sleep 4"}, jobs.Running, withLaunching("ws02"))
	t.add(jobs.Spec{Command: "sleep 3"}, jobs.Skipped)
	t.add(jobs.Spec{Command: "ends"}, jobs.Running, withRunning("ws02", time.Minute))
	t.Cancels[12] = jobs.Cancel{Reason: "by a person"}
	return t
}

// runAt returns a run in a directory.
func runAt(dir string) *rundir.Run {
	return &rundir.Run{Dir: dir, Disk: rundir.OS, Settings: &rundir.Settings{UID: "u1", Name: "r"}}
}

// shareNothing makes ws01 a host that does not share the run directory. here holds the attempts
// whose files were fetched.
func shareNothing(v *View, here map[jobs.AttemptID]bool) {
	v.place = &results.RunInfo{Dir: v.run.Dir, HostDirs: map[string]string{"ws01": "ws01:/far"},
		Here: func(id jobs.AttemptID) bool { return here[id] }}
}

func boardOf(t testing.TB, x tab) *View {
	b := FromTable(runAt(t.TempDir()), x.Table, Options{})
	t.Cleanup(b.Close)
	return b
}

func lookAt(t testing.TB, b *View, a Query) *Snapshot {
	t.Helper()
	p, err := b.Snapshot(t.Context(), a)
	must(t, err)
	return p
}

func idsOf(p *Snapshot) string {
	var ids []string
	for _, r := range p.Jobs.Rows {
		ids = append(ids, fmt.Sprint(r.ID))
	}
	return strings.Join(ids, " ")
}

// TestOrdersOfRows checks the orders. Equal rows are ordered by id in both directions. The table
// has no dispatcher, so running jobs are shown as away.
func TestOrdersOfRows(t *testing.T) {
	b := boardOf(t, sampleRun())
	for _, c := range []struct {
		by      Sort
		reverse bool
		want    string
	}{
		{SortAge, false, "12 3 10 5 8 2 9 4 6 11 7 1"},
		{SortID, false, "1 2 3 4 5 6 7 8 9 10 11 12"},
		{SortID, true, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{SortState, false, "12 3 10 5 2 8 4 9 6 1 7 11"},
		{SortState, true, "11 7 1 6 4 9 8 2 5 10 3 12"},
		{SortHost, false, "1 2 3 8 10 12 5 4 6 7 9 11"},
		{SortHost, true, "5 8 10 12 1 2 3 4 6 7 9 11"},
		{SortTry, false, "2 5 1 3 8 10 12 4 6 7 9 11"},
		{SortTime, false, "3 1 8 12 2 4 5 6 7 9 10 11"},
		{SortName, false, "1 8 3 12 11 10 9 7 6 5 4 2"},
		{SortName, true, "2 4 5 6 7 9 10 11 12 3 8 1"},
		{SortPriority, false, "9 1 3 5 6 7 8 10 11 12 2 4"},
		{SortQueue, true, "2 4 1 3 5 6 7 8 9 10 11 12"},
		{SortMemory, false, "1 2 3 4 5 6 7 8 9 10 11 12"},
		{SortProgress, true, "1 2 3 4 5 6 7 8 9 10 11 12"},
		{Sorts, false, "12 3 10 5 8 2 9 4 6 11 7 1"},
	} {
		t.Run(c.want, func(t *testing.T) {
			p := lookAt(t, b, Query{Jobs: &JobsWindow{Sort: c.by, Reverse: c.reverse, Rows: 50}})
			// 12 and the others of a minute differ by the time that the test takes.
			if c.by == SortTime {
				if got := idsOf(p); !strings.HasPrefix(got, "3 ") || !strings.HasSuffix(got, " 2 4 5 6 7 9 10 11") {
					t.Errorf("%s: %s", c.by, got)
				}
				return
			}
			if got := idsOf(p); got != c.want {
				t.Errorf("%s, reverse %v:\n %s, want\n %s", c.by, c.reverse, got, c.want)
			}
		})
	}
	p := lookAt(t, b, Query{Jobs: &JobsWindow{Rows: 50}})
	if got, want := phasesOf(p), "ending away sent retry timeout fail queue queue waits skip cancel ok"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if p.Jobs.Rows[6].Place != -1 || p.Jobs.Rows[7].Place != -1 || p.Jobs.Rows[0].Place != -1 {
		t.Errorf("places %+v", p.Jobs.Rows[6:8])
	}
	if p.Status != StatusStopped || p.Over == "" || p.Total != 12 || len(p.Hosts) != 3 {
		t.Errorf("got %+v, want a stopped run with 12 jobs and 3 hosts", p)
	}
}

// TestWindowFollowsTheCursor checks that the window follows the job under the cursor.
func TestWindowFollowsTheCursor(t *testing.T) {
	x := newTab()
	for range 100 {
		x.add(jobs.Spec{Command: "c"}, jobs.Queued)
	}
	b := boardOf(t, x)
	for _, c := range []struct {
		w           JobsWindow
		first, rows int
		row         int // of the cursor among the rows; -1: it is not there
	}{
		{JobsWindow{Rows: 10}, 0, 10, -1},
		{JobsWindow{Rows: 10, Cursor: 50, Above: 4}, 45, 10, 4},
		{JobsWindow{Rows: 10, Cursor: 51, Above: 4}, 46, 10, 4},
		{JobsWindow{Rows: 10, Cursor: 2, Above: 4}, 0, 10, 1},
		{JobsWindow{Rows: 10, Cursor: 100, Above: 4}, 90, 10, 9},
		{JobsWindow{Rows: 10, Cursor: 50, Above: 99}, 40, 10, 9},
		{JobsWindow{Rows: 10, Cursor: 999, At: 30, Above: 5}, 25, 10, -1},
		{JobsWindow{Rows: 10, At: 1e9, Above: 5}, 90, 10, -1},
		{JobsWindow{Rows: 10, At: -5, Above: -5, Cursor: -1}, 0, 10, -1},
		{JobsWindow{Rows: 1e6}, 0, 100, -1},
		{JobsWindow{Rows: -1, Cursor: 7}, 6, 0, -1},
		{JobsWindow{Rows: 10, Cursor: 1, Reverse: true, Sort: SortID}, 90, 10, 9},
		{JobsWindow{Rows: 10, Cursor: 3, Filter: "50<=id<=54"}, 0, 5, -1},
		{JobsWindow{Rows: 10, Cursor: 52, Filter: "50<=id<=54"}, 0, 5, 2},
		{JobsWindow{Rows: 10, Cursor: 52, Filter: "nothing"}, 0, 0, -1},
	} {
		p := lookAt(t, b, Query{Jobs: &c.w}).Jobs
		row := slices.IndexFunc(p.Rows, func(r Row) bool { return r.ID == c.w.Cursor })
		if p.First != c.first || len(p.Rows) != c.rows || row != c.row || p.Cursor != c.w.Cursor {
			t.Errorf("%+v: first %d, %d rows, cursor in row %d; want %d, %d, %d", c.w, p.First, len(p.Rows), row,
				c.first, c.rows, c.row)
		}
	}
}

// TestATableIsReadOnly checks that a run without a dispatcher can be viewed, and that actions are
// possible only through its owner.
func TestATableIsReadOnly(t *testing.T) {
	x := sampleRun()
	b := boardOf(t, x)
	shareNothing(b, nil)
	if _, err := b.Do(t.Context(), action.Request{Do: action.Requeue, Jobs: jobs.One(2)}); err == nil ||
		!strings.Contains(err.Error(), "looked at") {
		t.Error(err)
	}
	for id, want := range map[jobs.ID]string{3: "was started on ws01", 4: "nobody dispatches",
		2: "Job 2 has failed: exit 137 (SIGKILL in its shell) on ws01.",
		7: "Job 7 was canceled."} {
		d := lookAt(t, b, Query{Focus: id}).Detail
		if d == nil || !strings.Contains(d.Why, want) {
			t.Errorf("%d: %+v", id, d)
		}
	}
	j := *b.job(2)
	j.Reason = "it used 3 GiB of memory and asked for 2 GiB (mem=)"
	if why, want := b.why(2, &j), "Job 2 has failed: exit 137: "+j.Reason+"."; why != want {
		t.Errorf("got %q, want %q", why, want)
	}
	j.Reason, j.State = "", jobs.TimedOut
	outcome := j.CountedAttempt().Outcome
	outcome.TimedOut = true
	if why, want := b.why(2, &j), "Job 2 has timed out on ws01."; why != want {
		t.Errorf("got %q, want %q", why, want)
	}
	outcome.TimedOut = false
	outcome.Suspended = time.Second
	if row, attempt := b.row(2), b.attempt(j.Attempts[len(j.Attempts)-1]); attempt.Suspended != time.Second ||
		row.Suspended != time.Second {
		t.Errorf("suspended for %v in the details, and for %v in the row; want 1s", attempt.Suspended, row.Suspended)
	}
	outcome.Suspended = 0
	// The view does not claim that there is no dispatcher if it has not checked (X7).
	unasked := boardOf(t, sampleRun())
	unasked.facts.dispatched, unasked.facts.owner = true, &journal.Owner{Host: "melon4"}
	for id, want := range map[jobs.ID]string{3: "was started on ws01; the run's dispatcher on melon4 knows more",
		4: "waits; the run's dispatcher on melon4 knows more"} {
		if d := lookAt(t, unasked, Query{Focus: id}).Detail; !strings.Contains(d.Why, want) ||
			strings.Contains(d.Why, "nobody") {
			t.Errorf("%d: %s", id, d.Why)
		}
	}
	if d := lookAt(t, b, Query{Focus: 99}).Detail; d != nil {
		t.Error("a job that does not exist has details")
	}
	d := lookAt(t, b, Query{Focus: 2}).Detail
	if len(d.Attempts) != 2 || d.Attempts[1].Result != "exit 137" ||
		!strings.HasPrefix(d.Attempts[1].Far, "ws01:/far/attempts") || !d.Attempts[0].Charged {
		t.Errorf("attempts of job 2: got %+v, want 2, the last one with exit 137 and its place", d.Attempts)
	}
	if _, err := b.Read(t.Context(), Read{Attempt: d.Attempts[1].ID, File: jobs.FileErr}); err == nil ||
		!strings.Contains(err.Error(), "ws01:/far/attempts/000/2.2.err") {
		t.Errorf("Read: got error %v, want one with the path on its host", err)
	}
	mine := jobs.AttemptID{Job: 8, N: 1} // on ws02, which shares the run directory
	path := jobs.AttemptFile(b.run.Dir, mine, jobs.FileOut)
	os.MkdirAll(filepath.Dir(path), 0o700)
	must(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	x8, err := b.Read(t.Context(), Read{Attempt: mine, File: jobs.FileOut, Offset: 3, Limit: 4})
	if err != nil || string(x8.Data) != "3456" || x8.Size != 10 || x8.Offset != 3 || !x8.Over {
		t.Errorf("Read: got %+v, %v; want \"3456\" of 10 bytes", x8, err)
	}
	if _, err := b.Read(t.Context(), Read{Attempt: mine, File: jobs.FileErr}); err == nil ||
		!strings.Contains(err.Error(), "ws02") {
		t.Errorf("a file that is gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Snapshot(ctx, Query{}); err == nil {
		t.Error("a Snapshot outlives its context")
	}
	b.Close()
	b.Close()
	if _, err := b.Snapshot(t.Context(), Query{}); err != ErrGone {
		t.Error(err)
	}
}
