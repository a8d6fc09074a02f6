package runview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/ask"
)

// ResolveRequest completes a request for a run: it drops jobs that the run does not have, and names the
// dispatcher's epoch. s is the published state of the dispatcher; it may be nil. The caller sets At
// and By. The error is a *Refused.
func ResolveRequest(q action.Request, t *jobs.Table, s *live.State) (*action.Request, error) {
	if q.IsOnJobs() {
		q.Jobs = jobs.RangesOf(q.Jobs.IDs(jobs.ID(t.NumJobs())))
		if len(q.Jobs) == 0 {
			return nil, refuse("the run has no such job")
		}
	}
	if q.NeedsEpoch() {
		q.Epoch = t.Epoch
	}
	if why := q.Problem(); why != "" {
		return nil, refuse("%s", why)
	}
	// Without s, the dispatcher reports an unknown host.
	if q.IsOnHost() && q.Do != action.AddHost && s != nil && hostIn(s, q.Host) == nil {
		names := text.Each(s.Hosts, func(h live.Host) string { return h.Name })
		return nil, &Refused{Why: hosts.UnknownText(q.Host, names)}
	}
	return &q, nil
}

// hostIn returns a host of a published state, or nil.
func hostIn(s *live.State, name string) *live.Host {
	if s == nil {
		return nil
	}
	if i := slices.IndexFunc(s.Hosts, func(h live.Host) bool { return h.Name == name }); i >= 0 {
		return &s.Hosts[i]
	}
	return nil
}

// AnswerTo returns the answer to a request. s is the state of the dispatcher when it was sent, or
// nil. The error is a *Refused if the request was not carried out.
func AnswerTo(q *action.Request, trace *ask.Trace, t *jobs.Table, s *live.State) (*Answer, error) {
	ans := &Answer{Done: trace.Done, Left: trace.Left}
	if trace.Why != "" && (ans.Done == 0 || !q.IsOnJobs()) {
		return nil, &Refused{Why: trace.Why}
	}
	if q.IsOnJobs() {
		ans.Left += max(0, q.Jobs.Count()-ans.Done-ans.Left) // unknown to the run
		if q.Do == action.Cancel {
			ans.Changed = jobs.RangesOf(ask.JobsToRequeue(t, trace.Affected))
		}
	}
	outcome := trace.Outcome()
	outcome.Left = ans.Left
	if h := hostIn(s, q.Host); h != nil {
		outcome.HostIsIdle = h.Running+h.Buffered == 0
		outcome.HostIsAway = !h.Linked
	}
	if q.IsOnHost() {
		ans.Done, ans.Left = 1, 0
	}
	ans.Text = q.Answer(outcome)
	return ans, nil
}

func refuse(format string, args ...any) error { return &Refused{Why: fmt.Sprintf(format, args...)} }

// Do requests an action and returns when it has been carried out or refused.
func (v *View) Do(ctx context.Context, q action.Request) (*Answer, error) {
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	for {
		live, err := v.awaitEnd(ctx)
		if err != nil {
			return nil, err
		}
		if !live {
			break
		}
		if q.Do == action.Resume {
			return nil, refuse("the run is dispatched: there is nothing to resume")
		}
		ans, err := v.request(ctx, q)
		if !errors.Is(err, socket.ErrNotTaken) {
			return ans, err
		}
	}
	if v.opt.Act == nil {
		return nil, refuse("the run can only be looked at from here")
	}
	v.mu.Lock()
	silent := v.facts.silent
	v.mu.Unlock()
	ans, err := v.opt.Act(ctx, q, silent)
	v.refresh(ctx)
	return ans, err
}

// refresh reads everything again. It waits at most a second, in case the disk hangs.
func (v *View) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	until := 0
	_ = v.waitFor(ctx, func() bool {
		switch {
		case until > 0:
		case v.began.IsZero():
			until = v.polls + 1
		default:
			until = v.polls + 2 // the current read may have begun too early
		}
		if v.polls >= until {
			return true
		}
		v.link.lost = true
		v.pollSoon()
		return false
	})
}

// awaitEnd waits for the end of a dispatcher that accepts no more requests. It reports whether
// there is a dispatcher that accepts requests.
func (v *View) awaitEnd(ctx context.Context) (live bool, err error) {
	err = v.waitFor(ctx, func() bool {
		status, _ := v.status()
		live = v.facts.dispatched
		return status == StatusRunning || !live
	})
	return live, err
}

// fileAfter is the time after which a request that was sent through the socket is also stored as a
// file, because the dispatcher may be stopped or die before it records the request.
const fileAfter = 2 * time.Second

// request makes the dispatcher carry out an action. The error is socket.ErrNotTaken if the
// dispatcher is ending and has not accepted it.
func (v *View) request(ctx context.Context, asked action.Request) (*Answer, error) {
	v.mu.Lock()
	q, err := ResolveRequest(asked, v.table, v.state)
	conn, token, state := v.link.conn, v.facts.owner.Token, v.state
	now := time.Now()
	trace := &ask.Trace{Name: rundir.NewRequestName(now), IsEarly: true}
	v.traces[trace.Name] = trace
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.traces, trace.Name)
	}()
	if err != nil {
		return nil, err
	}
	q.At, q.By = now, v.opt.By
	if err := v.deliver(ctx, conn, trace.Name, q); err != nil {
		return nil, err
	}
	var ans *Answer
	waitErr := v.waitFor(ctx, func() bool {
		switch {
		case trace.Answered:
			ans, err = AnswerTo(&asked, trace, v.table, state)
		case !v.facts.dispatched || v.facts.owner.Token != token:
			err = errors.New("the dispatcher has ended. What it had not carried out before waits for the next one")
		default:
			return false
		}
		return true
	})
	if waitErr != nil && !errors.Is(waitErr, ErrGone) {
		waitErr = fmt.Errorf("asked; the dispatcher has not answered yet: %w", waitErr)
	}
	return ans, cmp.Or(waitErr, err)
}

// deliver sends a request to the dispatcher through its socket, which works even if the disk is
// full, or else as a file.
func (v *View) deliver(ctx context.Context, conn Conn, name string, q *action.Request) error {
	if conn == nil {
		return v.run.FileRequestAs(name, q)
	}
	body, err := q.Encode()
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- conn.Request(ctx, name, body) }()
	select {
	case err = <-sent:
	case <-time.After(fileAfter): // it has the same name, so it is carried out once
		return v.run.FileRequestAs(name, q)
	}
	var refused *Refused
	switch {
	case err == nil:
		v.pollSoon()
		return nil
	case errors.As(err, &refused), errors.Is(err, socket.ErrNotTaken), ctx.Err() != nil:
		return err
	}
	return v.run.FileRequestAs(name, q)
}

// Reply answers the dispatcher's question, which requires a person on the dispatcher's machine.
func (v *View) Reply(ctx context.Context, id int64, text string) error {
	if err := v.Ready(ctx); err != nil {
		return err
	}
	conn := v.connection()
	if conn == nil {
		return refuse("the dispatcher cannot be reached from here; it will ask again")
	}
	return conn.Reply(ctx, id, text)
}
