package runview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// answers are the answers to actions that become requests, which are all but Resume and Reply. done
// has a placeholder for the number of jobs or the host. none is the answer to an action on jobs
// that had nothing to do.
var answers = map[Verb]struct{ done, none string }{
	Cancel:      {"%s canceled", "nothing to cancel: it has already finished"},
	Requeue:     {"%s queued again", "nothing to requeue: it has not finished yet"},
	Edit:        {"%s changed", "not changed: a running job cannot be edited"},
	Priority:    {"priority of %s changed", "the priority of finished jobs has no effect any more"},
	Pause:       {"launching is paused", ""},
	Continue:    {"launching continues", ""},
	DrainHost:   {"%s finishes what runs there and starts nothing more", ""},
	StopHost:    {"%s is stopped: what ran there is ended and queued again", ""},
	UseHost:     {"%s is used again", ""},
	Slots:       {"the slots of %s are changed", ""},
	AddHost:     {"%s is added to the hosts of the run", ""},
	RemoveHost:  {"%s is removed: what runs there finishes, then it leaves the run", ""},
	ReloadHosts: {"the inventory file was read again", ""},
	DrainRun:    {"no more jobs are started; the dispatcher ends when the running ones have, unless continue comes first", ""},
	StopRun:     {"dispatching stops; running jobs continue", ""},
	CancelRun:   {"every job is canceled; the running ones are being ended", ""},
}

// isOnJobs reports whether an action is on Action.Jobs.
func (v Verb) isOnJobs() bool { return answers[v].none != "" }

// isOnHost reports whether an action is on Action.Host.
func (v Verb) isOnHost() bool {
	switch v {
	case DrainHost, StopHost, UseHost, Slots, AddHost, RemoveHost:
		return true
	}
	return false
}

// JobsText names n of the jobs of an action: by its number if the action is on one job.
func JobsText(which jobs.Ranges, n int) string {
	if n == 1 && which.Count() == 1 {
		return fmt.Sprintf("job %d", which[0].First)
	}
	return text.Plural(n, "job")
}

// RequestOf converts an action to a request. s is the published state of the dispatcher; it may be
// nil. The caller sets At and By. The error is a *Refused.
func RequestOf(a Action, t *jobs.Table, s *live.State) (*rundir.Request, error) {
	if answers[a.Do].done == "" {
		return nil, refuse("%s is not a request", a.Do)
	}
	q := &rundir.Request{Do: string(a.Do), Why: a.Why}
	if a.Do.isOnJobs() {
		q.Jobs = jobs.RangesOf(a.Jobs.IDs(jobs.ID(t.NumJobs())))
		if len(q.Jobs) == 0 {
			return nil, refuse("the run has no such job")
		}
	}
	var err error
	switch a.Do {
	case Cancel:
		if a.Waiting {
			q.Spare = rundir.SpareStarted
		}
	case Edit:
		q.Edit = cmp.Or(a.Edit, new(jobs.Change))
		if q.Edit.Empty() {
			err = refuse("nothing is to be changed")
		} else if wrong := q.Edit.Check(); wrong != nil {
			err = refuse("%v", wrong)
		}
	case Priority:
		q.Priority, q.Relative = min(max(a.Number, math.MinInt32), math.MaxInt32), a.Relative
	case DrainRun, StopRun:
		q.Epoch = t.Epoch
	case CancelRun:
		q.Do, q.All = rundir.DoCancel, true
	case AddHost:
		q.Host, q.Options = a.Host, a.Text
	case DrainHost, StopHost, UseHost, RemoveHost:
		q.Host = a.Host
		if s != nil { // otherwise the dispatcher reports an unknown host
			_, err = liveHost(s, a.Host)
		}
	case Slots:
		q.Host, q.Relative = a.Host, a.Relative
		q.Number = min(max(a.Number, -jobs.MaxSlots), jobs.MaxSlots)
		if !a.Relative && a.Number < 0 {
			err = refuse("%s needs at least 1 slot; drain it to start nothing there", a.Host)
		}
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

func liveHost(s *live.State, name string) (*live.Host, error) {
	var names []string
	for i := range s.Hosts {
		if h := &s.Hosts[i]; h.Name == name {
			return h, nil
		}
		names = append(names, s.Hosts[i].Name)
	}
	return nil, &Refused{Why: hosts.UnknownText(name, names)}
}

// answerAbout returns the answer to stopping or removing a host in the state of h, or "" for the
// ordinary one.
func answerAbout(v Verb, h *live.Host) string {
	switch has := h.Running+h.Buffered > 0; {
	case v == StopHost && !has:
		return "%s is stopped; nothing ran there"
	case v == StopHost && !h.Linked:
		return "%s is stopped, but cannot be reached: what ran there may still run; dcs-tui status says when its jobs are queued again"
	case v == RemoveHost && !has:
		return "%s is removed from the run"
	case v == RemoveHost && !h.Linked:
		return "%s is removed, but cannot be reached: what ran there may still run; dcs-tui status says when its jobs are queued again"
	}
	return ""
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

// AnswerTo computes the answer to an action from its request, which has been answered. s is the state
// of the dispatcher when it was sent, or nil. The error is a *Refused if the request was not carried
// out.
func AnswerTo(a Action, trace *ask.Trace, t *jobs.Table, s *live.State) (*Answer, error) {
	words, ans := answers[a.Do], &Answer{Done: trace.Done, Left: trace.Left}
	if trace.Why != "" && (ans.Done == 0 || !a.Do.isOnJobs()) {
		return nil, &Refused{Why: trace.Why}
	}
	if !a.Do.isOnJobs() {
		if h := hostIn(s, a.Host); h != nil {
			words.done = cmp.Or(answerAbout(a.Do, h), words.done)
		}
		ans.Text = words.done
		if a.Do.isOnHost() {
			ans.Done, ans.Left, ans.Text = 1, 0, fmt.Sprintf(words.done, a.Host)
		}
		return ans, nil
	}
	ans.Left += max(0, a.Jobs.Count()-ans.Done-ans.Left) // unknown to the run, or already finished
	switch ans.Text = fmt.Sprintf(words.done, JobsText(a.Jobs, ans.Done)); {
	case ans.Done == 0:
		ans.Text = words.none
	case ans.Left > 0:
		ans.Text += fmt.Sprintf("; %d left alone", ans.Left)
	}
	if a.Do == Cancel {
		ans.Changed = jobs.RangesOf(ask.JobsToRequeue(t, trace.Affected))
	}
	return ans, nil
}

func refuse(format string, args ...any) error { return &Refused{Why: fmt.Sprintf(format, args...)} }

// Do requests an action and returns when it has been carried out or refused.
func (v *View) Do(ctx context.Context, a Action) (*Answer, error) {
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	if a.Do == Reply {
		return v.reply(ctx, a)
	}
	for {
		live, err := v.awaitEnd(ctx)
		if err != nil {
			return nil, err
		}
		if !live {
			break
		}
		if a.Do == Resume {
			return nil, refuse("the run is dispatched: there is nothing to resume")
		}
		ans, err := v.request(ctx, a)
		if !errors.Is(err, socket.ErrNotTaken) {
			return ans, err
		}
	}
	if v.opt.Act == nil {
		return nil, refuse("the run can only be looked at from here")
	}
	ans, err := v.opt.Act(ctx, a)
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
func (v *View) request(ctx context.Context, a Action) (*Answer, error) {
	v.mu.Lock()
	q, err := RequestOf(a, v.table, v.state)
	conn, token, state := v.link.conn, v.facts.owner.Token, v.state
	now := time.Now()
	trace := &ask.Trace{Name: rundir.NewRequestName(now)}
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
			ans, err = AnswerTo(a, trace, v.table, state)
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
func (v *View) deliver(ctx context.Context, conn Conn, name string, q *rundir.Request) error {
	if conn == nil {
		return v.run.FileRequestAs(name, q)
	}
	body, err := q.Encode()
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- conn.Request(ctx, name, body) }()
	late := time.NewTimer(fileAfter)
	defer late.Stop()
	select {
	case err = <-sent:
	case <-late.C: // it has the same name, so it is carried out once
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

// reply answers the dispatcher's question, which requires a person on the dispatcher's machine.
func (v *View) reply(ctx context.Context, a Action) (*Answer, error) {
	conn := v.connection()
	if conn == nil {
		return nil, refuse("the dispatcher cannot be reached from here; it will ask again")
	}
	if err := conn.Reply(ctx, int64(a.Number), a.Text); err != nil {
		return nil, err
	}
	return &Answer{Done: 1}, nil
}
