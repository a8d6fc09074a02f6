package ask

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

var must = polltest.Must

// newRun returns a run of three jobs.
func newRun(t *testing.T) *rundir.Run {
	t.Helper()
	run := disktest.NewRun(t)
	must(t, errors.Join(run.AppendSpecs(jobstest.Specs(3)), run.MakeRequestsDir()))
	return run
}

// takeOver takes a run over from its dispatcher.
func takeOver(t *testing.T, run *rundir.Run) *journal.Journal {
	t.Helper()
	j, _, _, err := journal.Take(context.Background(), run, journal.TakeOptions{})
	must(t, err)
	return j
}

func cancelTwo() *action.Request {
	return &action.Request{Do: action.Cancel, Jobs: jobs.RangesOf([]jobs.ID{1, 2}), At: time.Unix(1e9, 0)}
}

// conn is a connection to a dispatcher whose behavior a test defines.
type conn struct {
	request func(ctx context.Context, name string) error
}

func (c *conn) Wake(context.Context, string) error { return errors.New("not expected") }
func (c *conn) Close()                             {}
func (c *conn) Request(ctx context.Context, name string, _ json.RawMessage) error {
	return c.request(ctx, name)
}

type refusal struct{}

func (refusal) Error() string { return "it makes no sense" }
func (refusal) Refused() bool { return true }

// TestRequestGoesThroughTheSocketOrAFile checks that a request is sent through the socket, and
// becomes a file of the same name if that fails or takes long.
func TestRequestGoesThroughTheSocketOrAFile(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error // error of the dispatcher; nil: it carries out the request
		hangs  bool
		dial   error
		filed  bool
		answer bool
		after  time.Duration
	}{
		{name: "carried out", answer: true},
		{name: "refused", err: refusal{}},
		{name: "the connection ends", err: errors.New("gone"), filed: true, after: AnswerTimeout},
		{name: "no connection", dial: errors.New("nobody listens"), filed: true, after: AnswerTimeout},
		{name: "it hangs", hangs: true, filed: true, after: AnswerTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newRun(t)
			j := takeOver(t, run)
			defer j.Close()
			synctest.Test(t, func(t *testing.T) {
				owner, err := journal.ReadOwner(run)
				must(t, err)
				owner.Socket = "a socket"
				r, err := Prepare(run, cancelTwo())
				must(t, err)
				began := time.Now()
				gone := r.Wait(t.Context(), owner, func(context.Context, *rundir.Run, *journal.Owner) (Conn, error) {
					return &conn{func(ctx context.Context, name string) error {
						switch {
						case c.hangs:
							<-ctx.Done()
							return ctx.Err()
						case c.err != nil:
							return c.err
						}
						recs := []jobs.Record{{Kind: jobs.KindAccepted, Job: 1, Count: 3},
							{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1, Request: name},
							{Kind: jobs.KindJob, Job: 3, Next: jobs.Skipped, Seq: 2, Request: name},
							{Kind: jobs.KindRequest, Count: 1, N: 1, Request: name}}
						return errors.Join(j.Append(recs), j.Sync())
					}}, c.dial
				})
				took := time.Since(began)
				names, _, err := run.RequestNames()
				if filed := slices.Equal(names, []string{r.Name}); gone || err != nil || filed != c.filed ||
					r.Answered != c.answer {
					t.Errorf("gone %v, filed %v, answered %v, %v", gone, filed, r.Answered, err)
				}
				if took < c.after || took > c.after+time.Second {
					t.Errorf("it took %s, want %s", took, c.after)
				}
				if refused := strings.Contains(r.Refused, "no sense"); refused != errors.Is(c.err, refusal{}) {
					t.Errorf("refused: %q", r.Refused)
				}
				if c.answer && (r.Done != 1 || r.Left != 1 || !slices.Equal(r.Affected, []jobs.ID{1, 3})) {
					t.Errorf("the answer: got %+v, want one job done, one left, and jobs 1 and 3 affected", r)
				}
			})
		})
	}
}

// TestRequeueUndoesCancel checks that a requeue of the result of JobsToRequeue restores everything
// that a cancel has ended, is ending, or will have skipped.
func TestRequeueUndoesCancel(t *testing.T) {
	specs := jobstest.Specs(6)
	for id, after := range map[jobs.ID][]jobs.ID{3: {1}, 4: {3, 2}, 6: {5}} {
		specs[id-1].SetAfter(jobstest.After(after...))
	}
	table := &jobs.Table{Specs: specs}
	must(t, jobs.Fold(table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 6}))
	if got := JobsToRequeue(table, []jobs.ID{1}); !slices.Equal(got, []jobs.ID{1, 3, 4}) {
		t.Errorf("JobsToRequeue: got %v, want [1 3 4]", got)
	}
}

// TestAnswerIsAwaitedWhileHeartbeatsCome checks that a command waits for the response of a
// dispatcher on another machine as long as that sends heartbeats, up to a limit. It detects that
// the dispatcher is dead.
func TestAnswerIsAwaitedWhileHeartbeatsCome(t *testing.T) {
	canceling := []jobs.Record{{Kind: jobs.KindCanceling, Job: 1, Reason: "x"},
		{Kind: jobs.KindCanceling, Job: 2, Reason: "x"}}
	over := func(id jobs.ID, seq int64, next jobs.JobState) jobs.Record {
		return jobs.Record{Kind: jobs.KindJob, Job: id, Next: next, Seq: seq}
	}
	type moment struct {
		at   time.Duration
		recs []jobs.Record
		left bool
	}
	for _, c := range []struct {
		name       string
		heartbeats time.Duration // how long it sends heartbeats
		does       []moment
		gone       bool
		taken      bool
		still      int
		others     int
		after      time.Duration // minimum time since the request; polling adds up to a second
	}{
		{name: "answered", heartbeats: time.Hour, taken: true, others: 1, after: 8 * time.Second, does: []moment{
			{at: 3 * time.Second, recs: append(canceling, jobs.Record{Kind: jobs.KindRequest, Count: 2})},
			{at: 5 * time.Second, recs: []jobs.Record{over(1, 1, jobs.Canceled)}},
			{at: 8 * time.Second, recs: []jobs.Record{over(2, 2, jobs.Skipped)}}}},
		{name: "one does not end", heartbeats: time.Hour, taken: true, still: 1, after: 3*time.Second + EndTimeout,
			does: []moment{
				{at: 3 * time.Second, recs: append(canceling, jobs.Record{Kind: jobs.KindRequest, Count: 2},
					over(1, 1, jobs.Canceled))}}},
		{name: "no answer", heartbeats: time.Hour, after: AnswerTimeoutFar},
		{name: "dead", gone: true, after: journal.StaleAfter},
		{name: "it leaves without an answer", heartbeats: time.Hour, gone: true, after: 4 * time.Second,
			does: []moment{{at: 4 * time.Second, left: true}}},
		{name: "it leaves with its last words", heartbeats: time.Hour, taken: true, after: 4 * time.Second,
			does: []moment{
				{at: 4 * time.Second, recs: []jobs.Record{{Kind: jobs.KindRequest, Count: 2}}, left: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newRun(t)
			j := takeOver(t, run)
			defer j.Close()
			disktest.Elsewhere(t, run, nil)
			synctest.Test(t, func(t *testing.T) {
				owner, err := journal.ReadOwner(run)
				must(t, err)
				e, err := Prepare(run, cancelTwo())
				must(t, err)
				over := make(chan struct{})
				go func() { // the other dispatcher
					left := false
					for at := time.Duration(0); ; at += time.Second {
						for _, m := range c.does {
							if m.at != at {
								continue
							}
							for _, r := range m.recs {
								if r.Kind != jobs.KindJob {
									r.Request = e.Name
								}
								j.Append([]jobs.Record{r})
							}
							j.Sync()
							left = left || m.left
						}
						if at <= c.heartbeats {
							durable := j.Durable()
							disktest.Elsewhere(t, run, func(o map[string]any) {
								disktest.Heartbeats(o)
								o["left"], o["file"], o["bytes"] = left, durable.Epoch, durable.Bytes
							})
						}
						select {
						case <-over:
							return
						case <-time.After(time.Second):
						}
					}
				}()
				began := time.Now()
				gone := e.Wait(t.Context(), owner, nil)
				took := time.Since(began)
				close(over)
				if gone != c.gone || e.Answered != c.taken || len(e.Ending) != c.still || e.EndedItself != c.others {
					t.Errorf("gone %v, %+v", gone, e)
				}
				if took < c.after || took > c.after+time.Second {
					t.Errorf("it took %s, want %s", took, c.after)
				}
			})
		})
	}
}
