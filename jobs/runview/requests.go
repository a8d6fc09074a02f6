package runview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// answers are the answers to actions that become requests, which are all but Resume and Reply. done
// has a placeholder for the number of jobs or the host. none is the answer to an action on jobs
// that had nothing to do.
var answers = map[Verb]struct{ done, none string }{
	Cancel:      {"%s canceled", "nothing to cancel: it is over already"},
	Requeue:     {"%s queued again", "nothing to run again: it is not over yet"},
	Edit:        {"%s changed", "not changed: a running job cannot be edited"},
	Priority:    {"priority of %s changed", "the priority of what is over does not matter any more"},
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

// maxPriorityRequests is the maximum number of requests that a relative change of priorities
// becomes.
const maxPriorityRequests = 100

// Requests converts an action to requests, in the order in which to send them. Relative values
// become absolute, based on the table and on s, the published state of the dispatcher, so that a
// crash does not apply them twice. s may be nil. The caller sets At and By. The error is a
// *Refused.
func Requests(a Action, t *jobs.Table, s *live.State) ([]*rundir.Request, error) {
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
		if a.Relative {
			return priorityRequests(q, a, t)
		}
		q.Priority = min(max(a.Number, math.MinInt32), math.MaxInt32)
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
		q.Host = a.Host
		q.Number, err = slotsOf(a, s)
	}
	if err != nil {
		return nil, err
	}
	return []*rundir.Request{q}, nil
}

// priorityRequests returns a request for each priority that results from a relative change.
func priorityRequests(q *rundir.Request, a Action, t *jobs.Table) ([]*rundir.Request, error) {
	byPriority := map[int][]jobs.ID{}
	for _, id := range q.Jobs.IDs(jobs.ID(t.NumJobs())) {
		if j := t.Job(id); !j.State.Terminal() {
			p := min(max(int(j.Priority)+a.Number, math.MinInt32), math.MaxInt32)
			byPriority[p] = append(byPriority[p], id)
		}
	}
	switch {
	case len(byPriority) == 0:
		return nil, refuse("%s", answers[Priority].none)
	case len(byPriority) > maxPriorityRequests:
		return nil, refuse("those jobs have too many different priorities; say which priority")
	}
	var all []*rundir.Request
	for _, p := range slices.Sorted(maps.Keys(byPriority)) {
		all = append(all, &rundir.Request{Do: q.Do, Why: q.Why, Jobs: jobs.RangesOf(byPriority[p]), Priority: p})
	}
	return all, nil
}

// slotsOf returns the number of slots that a host should have. 0 means the number of its rule.
func slotsOf(a Action, s *live.State) (int, error) {
	n := a.Number
	if a.Relative {
		if s == nil {
			return 0, refuse("the slots of %s are not known now; say how many it shall have", a.Host)
		}
		h, err := liveHost(s, a.Host)
		if err != nil {
			return 0, err
		}
		if h.Slots == 0 && h.Given == 0 {
			return 0, refuse("%s has not said yet how many slots it has", a.Host)
		}
		n += h.Slots
	}
	if n < 1 && (a.Relative || n < 0) {
		return 0, refuse("%s has at least 1 slot; drain it to have nothing started there", a.Host)
	}
	return min(n, jobs.MaxSlots), nil
}

func liveHost(s *live.State, name string) (*live.Host, error) {
	var names []string
	for i := range s.Hosts {
		if h := &s.Hosts[i]; h.Name == name {
			return h, nil
		}
		names = append(names, s.Hosts[i].Name)
	}
	if near := jobs.Nearest(name, names); near != "" {
		return nil, refuse("there is no host %s; did you mean %s?", name, near)
	}
	return nil, refuse("there is no host %s", name)
}

// silentAnswers are the answers to actions on a host that cannot be reached and has attempts.
var silentAnswers = map[Verb]string{
	StopHost:   "%s is stopped, but cannot be reached: what ran there may still run; its jobs are queued again after lost_after, except those with on_lost=wait",
	RemoveHost: "%s is removed, but cannot be reached: what ran there may still run; its jobs are queued again after lost_after",
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

// AnswerTo computes the answer to an action from its requests, which have all been answered. s is
// the state of the dispatcher when they were sent, or nil. The error is a *Refused if none was
// carried out.
func AnswerTo(a Action, traces []*ask.Trace, t *jobs.Table, s *live.State) (*Answer, error) {
	text, ans := answers[a.Do], new(Answer)
	refused := ""
	var affected []jobs.ID
	for _, trace := range traces {
		ans.Done, ans.Left = ans.Done+trace.Done, ans.Left+trace.Left
		affected = append(affected, trace.Affected...)
		refused = cmp.Or(refused, trace.Why)
	}
	if refused != "" && (ans.Done == 0 || !a.Do.isOnJobs()) {
		return nil, &Refused{Why: refused}
	}
	if !a.Do.isOnJobs() {
		if h := hostIn(s, a.Host); h != nil && !h.Linked && h.Running+h.Buffered > 0 && (a.Do == StopHost || a.Do == RemoveHost) {
			text.done = silentAnswers[a.Do]
		}
		if ans.Text = text.done; strings.Contains(text.done, "%s") {
			ans.Done, ans.Left, ans.Text = 1, 0, fmt.Sprintf(text.done, a.Host)
		}
		return ans, nil
	}
	ans.Left += max(0, a.Jobs.Count()-ans.Done-ans.Left) // unknown to the run, or already finished
	switch ans.Text = fmt.Sprintf(text.done, jobs.Plural(ans.Done, "job")); {
	case ans.Done == 0:
		ans.Text = text.none
	case ans.Left > 0:
		ans.Text += fmt.Sprintf("; %d left alone", ans.Left)
	}
	if a.Do == Cancel {
		ans.Changed = jobs.RangesOf(ask.JobsToRequeue(t, affected))
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
	list, err := Requests(a, v.table, v.state)
	conn, token, state := v.link.conn, v.facts.owner.Token, v.state
	traces := make([]*ask.Trace, len(list))
	for i, q := range list {
		q.At, q.By = time.Now(), v.opt.By
		traces[i] = &ask.Trace{Name: rundir.NewRequestName(q.At)}
		v.traces[traces[i].Name] = traces[i]
	}
	v.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, t := range traces {
			delete(v.traces, t.Name)
		}
	}()
	for i, q := range list {
		if err := v.deliver(ctx, conn, traces[i].Name, q); err != nil {
			return nil, err
		}
	}
	var ans *Answer
	waitErr := v.waitFor(ctx, func() bool {
		switch {
		case !slices.ContainsFunc(traces, func(t *ask.Trace) bool { return !t.Answered }):
			ans, err = AnswerTo(a, traces, v.table, state)
		case !v.facts.dispatched || v.facts.owner.Token != token:
			err = errors.New("the dispatcher has ended; it may have done it before. What it has not done waits for the next one")
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
