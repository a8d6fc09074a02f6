package commit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// loopDriver holds a commit loop with one host of two slots.
type loopDriver struct {
	t        *testing.T
	loop     *Loop
	journal  *jobstest.Journal
	at       time.Duration
	messages []string
}

func newLoopDriver(t *testing.T) *loopDriver {
	d := &loopDriver{t: t, journal: new(jobstest.Journal)}
	h := &hosts.Host{Name: "a", Slots: hosts.SlotRule{Fixed: 2}}
	core := sched.New(sched.Config{Seed: 1}, &jobs.Table{}, &hosts.Inventory{Hosts: []*hosts.Host{h}})
	d.loop = New(core, d.journal)
	d.loop.Notify = func(s string) { d.messages = append(d.messages, s) }
	return d
}

func (d *loopDriver) now() sched.Time { return sched.Time{Mono: d.at, Wall: jobs.Stamp(d.at + 1)} }

func (d *loopDriver) step(evs ...sched.Event) {
	for _, ev := range evs {
		d.loop.Step(d.now(), ev)
	}
}

func (d *loopDriver) commit() string { return formatCommands(d.loop.Commit(d.now()).Commands) }

// ready connects the host and submits jobs, without a commit.
func (d *loopDriver) ready(n int) {
	d.step(sched.Tick{}, sched.HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1 << 30}},
		sched.HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
	var specs []*jobs.Spec
	for i := range n {
		specs = append(specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: jobs.NoOptions})
	}
	d.step(sched.Submit{Specs: specs, Last: true})
}

// write starts a batch, which must be due.
func (d *loopDriver) write() []jobs.Record {
	d.t.Helper()
	batch, ok := d.loop.Flush(d.now())
	if !ok || len(batch) == 0 {
		d.t.Fatal("nothing to write")
	}
	return batch
}

// written ends a batch and returns the released commands.
func (d *loopDriver) written() string { return formatCommands(d.loop.Flushed(d.now(), nil).Commands) }

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %#v, want %#v", what, got, want)
	}
}

func wantContains(t *testing.T, what, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%s: %q does not contain %q", what, got, part)
	}
}

func formatCommands(commands []sched.Command) string {
	var all []string
	for _, o := range commands {
		w, _ := strings.CutPrefix(fmt.Sprintf("%T", o), "sched.")
		if l, ok := o.(sched.Launch); ok {
			for _, p := range l.Jobs {
				w += " " + p.Attempt.String()
			}
		}
		all = append(all, w)
	}
	return strings.Join(all, ", ")
}

// hasDurable reports whether a record of the kind is durable.
func (d *loopDriver) hasDurable(k jobs.Kind) bool {
	return d.journal.Has(func(r *jobs.Record) bool { return r.Kind == k })
}

// TestOneSyncATurn checks that all records of a turn share one fsync and that their commands follow
// it.
func TestOneSyncATurn(t *testing.T) {
	d := newLoopDriver(t)
	d.ready(1)
	want(t, "commands", d.commit(), "Connect, SetLimit, Launch 1.1")
	if d.journal.Syncs() != 1 || !d.hasDurable(jobs.KindLaunching) {
		t.Errorf("%d syncs, durable %v", d.journal.Syncs(), d.journal.Durable())
	}
}

// TestLaunchesAreNotKept checks that the launches of a large batch do not stay in memory after the
// next turn.
func TestLaunchesAreNotKept(t *testing.T) {
	d := newLoopDriver(t)
	d.ready(1)
	d.write()
	last := d.loop.Flushed(d.now(), nil).Commands
	wantContains(t, "commands", formatCommands(last), "Launch")
	d.step(sched.Tick{})
	d.loop.Idle(d.now())
	for _, o := range last {
		if o != nil {
			t.Errorf("%T is still there", o)
		}
	}
}

// TestRequestsWaitForTheJournal checks that the records of a request for very many jobs do not gather in
// memory while the journal is written, that the request continues after that, and that it does not wait
// for a journal that hangs.
func TestRequestsWaitForTheJournal(t *testing.T) {
	const n = 4 * maxPending
	for _, hangs := range []bool{false, true} {
		d := newLoopDriver(t)
		d.ready(n)
		d.commit()
		ids := make([]jobs.ID, n)
		for i := range ids {
			ids[i] = jobs.ID(i + 1)
		}
		d.step(sched.Cancel{Jobs: ids})
		for turn := 0; d.loop.core.PendingRequests() > 0; turn++ {
			if turn > n/maxPending {
				t.Fatal("the request does not end")
			}
			d.write()
			if hangs {
				d.at += HungAfter
				d.loop.Idle(d.now())
			}
			for range n / maxPending {
				d.at++
				d.step(sched.Tick{})
			}
			if hangs {
				break
			}
			if gathered := d.loop.NumRecords() - d.loop.numWriting; gathered > 2*maxPending {
				t.Fatalf("%d records have gathered", gathered)
			}
			d.written()
			d.at += GatherTime
			if at, _ := d.loop.Next(); d.loop.core.PendingRequests() > 0 && at > d.at {
				t.Fatalf("the request continues only after %v", at-d.at)
			}
			d.step(sched.Tick{})
		}
		want(t, "queued jobs", d.loop.core.Table().Counts[jobs.Queued], 0)
	}
}

// TestNoLaunchWithoutItsRecord checks that nothing is launched while the journal cannot be written,
// and that other commands are released. The pending launch is withdrawn. When the journal can be
// written again, the job is launched with the next attempt number.
func TestNoLaunchWithoutItsRecord(t *testing.T) {
	d := newLoopDriver(t)
	d.journal.Fail(errors.New("no space left on device"))
	d.ready(1)
	if got := d.commit(); strings.Contains(got, "Launch") || !strings.Contains(got, "Connect") {
		t.Errorf("commands: %s", got)
	}
	d.at += RetryInterval / 2
	d.step(sched.Tick{})
	if got := d.commit(); got != "" || len(d.messages) != 1 {
		t.Errorf("too early: commands %q, told %q", got, d.messages)
	}
	at, _ := d.loop.Next()
	want(t, "next", at, RetryInterval)
	d.journal.Fail(nil)
	d.at = RetryInterval
	wantContains(t, "healed", d.commit(), "Launch 1.2")
	want(t, "messages", len(d.messages), 2)
	want(t, "problem", d.loop.Problem(d.now()), nil)
}

// TestDurableRecordsAreCounted checks that records count as durable only when the batch that has them was
// written, and not those that were made while it was written.
func TestDurableRecordsAreCounted(t *testing.T) {
	d := newLoopDriver(t)
	d.ready(1)
	d.journal.Fail(errors.New("input/output error"))
	d.commit()
	want(t, "durable after a failure", d.loop.NumDurable(), int64(0))
	d.journal.Fail(nil)
	d.at += RetryInterval
	d.write()
	written := d.loop.NumRecords()
	d.loop.RecordEvent(jobs.Record{Kind: jobs.KindEvent})
	d.loop.Flushed(d.now(), nil)
	want(t, "durable after a batch", d.loop.NumDurable(), written)
	d.commit()
	want(t, "durable in the end", d.loop.NumDurable(), d.loop.NumRecords())
}

// TestCommandsFollowTheirRecords checks that a batch under way holds back the commands that were
// decided after it, in order.
func TestCommandsFollowTheirRecords(t *testing.T) {
	d := newLoopDriver(t)
	d.step(sched.Tick{})
	d.loop.Idle(d.now())
	d.ready(1)
	d.write()
	d.step(sched.Cancel{Jobs: []jobs.ID{1}})
	if out := d.loop.Idle(d.now()); len(out.Commands) > 0 || out.Durable {
		t.Errorf("released during the write: %s", formatCommands(out.Commands))
	}
	if _, again := d.loop.Flush(d.now()); again {
		t.Error("two batches at once")
	}
	want(t, "the first batch", d.written(), "SetLimit, Launch 1.1")
	d.write() // the cancel
	want(t, "the second batch", d.written(), "Kill")
}

// TestHungJournalCountsAsFailed checks that a journal that does not answer for 5 s is treated like
// one that fails.
func TestHungJournalCountsAsFailed(t *testing.T) {
	d := newLoopDriver(t)
	d.step(sched.Tick{})
	d.loop.Idle(d.now())
	d.ready(1)
	d.write()
	if at, ok := d.loop.Next(); !ok || at > HungAfter {
		t.Errorf("next at %v", at)
	}
	d.at = HungAfter
	d.step(sched.Tick{})
	if got := formatCommands(d.loop.Idle(d.now()).Commands); strings.Contains(got, "Launch") ||
		!strings.Contains(got, "SetLimit") {
		t.Errorf("while it hangs: %s", got)
	}
	if d.loop.Problem(d.now()) == nil || len(d.messages) != 1 {
		t.Errorf("told: %q", d.messages)
	}
	want(t, "after the launch was withdrawn", d.written(), "")
	d.at += time.Second
	wantContains(t, "afterwards", d.commit(), "Launch 1.2")
	want(t, "messages", len(d.messages), 2)
}

// TestFencedDispatcherWritesNothing checks that a fenced dispatcher writes and sends nothing more
// (X1).
func TestFencedDispatcherWritesNothing(t *testing.T) {
	d := newLoopDriver(t)
	d.ready(1)
	d.loop.Fence()
	d.step(sched.Tick{})
	d.loop.RecordEvent(jobs.Record{Kind: jobs.KindEvent})
	if out := d.loop.Commit(d.now()); len(out.Commands) > 0 || out.Durable || len(d.journal.Durable()) > 0 {
		t.Errorf("after the fence: %v, %v", out, d.journal.Durable())
	}
	if _, err := d.loop.End(d.now(), true, sched.Finish{}); err != nil || len(d.journal.Durable()) > 0 {
		t.Errorf("the end: %v, %v", err, d.journal.Durable())
	}
}

type fencedError struct{}

func (fencedError) Error() string { return "another dispatcher has taken the run over" }
func (fencedError) FencedBy() int { return 3 }

// TestNoCommandIsReleasedIfTheJournalFences checks that no command of a batch is released if the
// journal finds another dispatcher after the write, because that dispatcher may not have read the
// batch (X1, promise 1).
func TestNoCommandIsReleasedIfTheJournalFences(t *testing.T) {
	d := newLoopDriver(t)
	d.ready(1)
	d.journal.Fail(fencedError{})
	out := d.loop.Commit(d.now())
	if out.FencedBy != 3 || len(out.Commands) > 0 || out.Durable || len(d.messages) > 0 {
		t.Errorf("%+v, told %q", out, d.messages)
	}
	d.journal.Fail(nil)
	d.step(sched.Tick{})
	want(t, "afterwards", d.commit(), "")
}

// TestEndIsTakenBack checks that the end of a run is written only if nothing follows it. A requeue
// revokes it (promise 1).
func TestEndIsTakenBack(t *testing.T) {
	d := newLoopDriver(t)
	d.ready(1)
	d.commit()
	id := jobs.AttemptID{Job: 1, N: 1}
	d.step(sched.AttemptsEnded{Host: "a", Msg: &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id}}}})
	if got := d.commit(); !strings.Contains(got, "Finish") || !d.loop.Ended() {
		t.Errorf("commands: %s", got)
	}
	d.step(sched.Requeue{Jobs: []jobs.ID{1}})
	d.commit()
	if d.loop.Ended() {
		t.Error("the run has ended, with a job queued")
	}
	if _, err := d.loop.End(d.now(), true, sched.Finish{How: sched.Stopped, Why: "asked"}); err != nil ||
		d.hasDurable(jobs.KindEnded) || !d.hasDurable(jobs.KindClosed) {
		t.Errorf("the end was written (%v)", err)
	}
}

// TestResultBeforeTheNextRound checks that OnRecord can read the result of a record even if the same
// step starts the next round of the job.
func TestResultBeforeTheNextRound(t *testing.T) {
	d := newLoopDriver(t)
	d.ready(1)
	var seen []jobs.JobState
	d.loop.OnRecord = func(r *jobs.Record) {
		if r.Seq > 0 {
			seen = append(seen, d.loop.core.Table().RowOf(r).State)
		}
	}
	d.step(sched.AttemptsWithdrawn{Host: "a", Msg: &hosts.Withdrawn{Attempts: []jobs.AttemptID{{Job: 1, N: 1}}}},
		sched.Pause{On: true})
	ids := []jobs.ID{1}
	d.step(sched.HostDown{Host: "a"}, sched.AttemptsWithdrawn{Host: "a",
		Msg: &hosts.Withdrawn{Attempts: []jobs.AttemptID{{Job: 1, N: 2}}}},
		sched.Request{Name: "r", Do: []sched.Event{sched.Cancel{Jobs: ids}, sched.Requeue{Jobs: ids}}})
	if len(seen) != 1 || seen[0] != jobs.Canceled || d.loop.core.Table().Job(1).Round != 2 {
		t.Errorf("seen %v; the job is in round %d", seen, d.loop.core.Table().Job(1).Round)
	}
}

// TestProblemIsReportedOnce checks that a missing run directory is reported once, and its return
// once, even if the journal fails as well.
func TestProblemIsReportedOnce(t *testing.T) {
	d := newLoopDriver(t)
	d.ready(1)
	d.loop.SetObstacle(d.now(), errors.New("it is gone"))
	d.journal.Fail(errors.New("no such file or directory"))
	d.commit()
	d.at += RetryInterval
	d.loop.SetObstacle(d.now(), nil)
	d.commit()
	want(t, "messages", len(d.messages), 1)
	d.journal.Fail(nil)
	d.at += RetryInterval
	wantContains(t, "healed", d.commit(), "Launch")
	want(t, "messages", len(d.messages), 2)
}

// TestAStopNeedsNoJournal checks that a journal that cannot be written does not delay a stop by a
// user. It does delay an end that asserts something about jobs.
func TestAStopNeedsNoJournal(t *testing.T) {
	for _, c := range []struct {
		ev         sched.Event
		over, goes bool
	}{{sched.Stop{Why: "SIGTERM"}, false, true}, {sched.Drain{Why: "Ctrl-C"}, false, false}, {sched.Submit{Last: true},
		true, true}} {
		d := newLoopDriver(t)
		d.step(sched.HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1 << 30}})
		d.commit()
		d.journal.Fail(errors.New("no such file or directory"))
		d.step(c.ev)
		if c.over { // the core has decided on the end before the stop
			d.step(sched.Stop{Why: "SIGTERM"})
		}
		if got := d.commit(); strings.Contains(got, "Finish") != c.goes {
			t.Errorf("%T: commands %q", c.ev, got)
		}
	}
}

// TestRecordsShareAnFsync checks that records wait for GatherTime after the previous batch, so that
// they share an fsync, unless an idle slot needs them. A launch for an idle slot flushes all
// records at once.
func TestRecordsShareAnFsync(t *testing.T) {
	d := newLoopDriver(t)
	d.at = time.Second
	d.ready(3)
	flush := func(want int, when string) {
		t.Helper()
		batch, ok := d.loop.Flush(d.now())
		if len(batch) != want || ok != (want > 0) {
			t.Fatalf("%s: got %d records, %v; want %d", when, len(batch), ok, want)
		}
		if ok {
			d.loop.Flushed(d.now(), nil)
		}
	}
	note := func() { d.loop.RecordEvent(jobs.Record{Kind: jobs.KindEvent, Reason: "hello"}) }
	d.write()
	d.written()

	began := d.at
	d.at += GatherTime / 2
	note()
	flush(0, "soon after a batch")
	if at, ok := d.loop.Next(); !ok || at != began+GatherTime {
		t.Errorf("Next: got %v, %v; want %v", at, ok, began+GatherTime)
	}
	note()
	d.at = began + GatherTime
	flush(2, "when the time is over")

	d.at += time.Millisecond
	note()
	d.step(sched.AttemptsEnded{Host: "a",
		Msg: &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}, Slot: 1,
			Outcome: jobs.Outcome{Started: 1, Ended: 2}}}}})
	flush(3, "with a launch for the slot that became free")

	d.at += time.Hour
	note()
	flush(1, "after a pause")
}
