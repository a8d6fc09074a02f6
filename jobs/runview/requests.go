package runview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// requestVerb is how an action becomes ask.
type requestVerb struct {
	do   string                                                                // kind of request
	fill func(q *rundir.Request, a Action, t *jobs.Table, s *live.State) error // nil: it has no more fields
	done string                                                                // the answer; of actions on jobs with a place for their number
	none string                                                                // the answer if there was nothing to do, for actions on jobs
}

// requestVerbs are the actions that are ask. Resume and Reply are not.
var requestVerbs = map[Verb]requestVerb{
	Cancel:    {rundir.DoCancel, nil, "%s canceled", "nothing to cancel: it is over already"},
	Requeue:   {rundir.DoRequeue, nil, "%s queued again", "nothing to run again: it is not over yet"},
	Edit:      {rundir.DoEdit, fillEdit, "%s changed", "not changed: a running job cannot be edited"},
	Priority:  {rundir.DoPriority, nil, "priority of %s changed", "the priority of what is over does not matter any more"},
	Pause:     {do: rundir.DoPause, done: "launching is paused"},
	Continue:  {do: rundir.DoContinue, done: "launching continues"},
	DrainHost: {rundir.DoDrainHost, fillHost, "%s finishes what runs there and starts nothing more", ""},
	StopHost:  {rundir.DoStopHost, fillHost, "%s is stopped: what ran there is ended and queued again", ""},
	UseHost:   {rundir.DoUseHost, fillHost, "%s is used again", ""},
	Slots:     {rundir.DoSlots, fillSlots, "the slots of %s are changed", ""},
	AddHost: {rundir.DoAddHost, func(q *rundir.Request, a Action, _ *jobs.Table, _ *live.State) error {
		q.Host, q.Options = a.Host, a.Text
		return nil
	}, "%s is added to the hosts of the run", ""},
	RemoveHost:  {rundir.DoRemoveHost, fillHost, "%s is removed: what runs there finishes, then it leaves the run", ""},
	ReloadHosts: {do: rundir.DoReloadHosts, done: "the inventory file was read again"},
	DrainRun:    {do: rundir.DoDrain, done: "no more jobs are started; the dispatcher ends when the running ones have, unless continue comes first"},
	StopRun:     {do: rundir.DoStop, done: "dispatching stops; running jobs continue"},
	CancelRun:   {do: rundir.DoCancel, done: "every job is canceled; the running ones are being ended"},
}

// maxPriorityRequests is how many requests a relative change of priorities may become.
const maxPriorityRequests = 100

// Requests returns an action as requests, in the order in which they are to be asked for.
// What is relative becomes absolute, by the table and by what the dispatcher publishes: a
// crash must not apply it twice. s may be nil. At and By are for the caller to set. The
// error is a *Refused.
func Requests(a Action, t *jobs.Table, s *live.State) ([]*rundir.Request, error) {
	v, ok := requestVerbs[a.Do]
	switch {
	case !ok:
		return nil, refuse("%s is not a request", a.Do)
	}
	q := &rundir.Request{Do: v.do, Why: a.Why, All: a.Do == CancelRun}
	if a.Do == DrainRun || a.Do == StopRun {
		q.Epoch = t.Epoch
	}
	if a.Do == Cancel && a.Waiting {
		q.Spare = rundir.SpareStarted
	}
	switch a.Do {
	case Cancel, Requeue, Edit, Priority:
		q.Jobs = jobs.RangesOf(a.Jobs.IDs(jobs.ID(t.NumJobs())))
		if len(q.Jobs) == 0 {
			return nil, refuse("the run has no such job")
		}
	}
	if a.Do == Priority {
		return priorityRequests(q, a, t)
	}
	if v.fill != nil {
		if err := v.fill(q, a, t, s); err != nil {
			return nil, err
		}
	}
	return []*rundir.Request{q}, nil
}

// priorityRequests returns a request for each priority that results.
func priorityRequests(q *rundir.Request, a Action, t *jobs.Table) ([]*rundir.Request, error) {
	if !a.Relative {
		q.Priority = min(max(a.Number, math.MinInt32), math.MaxInt32)
		return []*rundir.Request{q}, nil
	}
	byPriority := map[int][]jobs.ID{}
	for _, id := range q.Jobs.IDs(jobs.ID(t.NumJobs())) {
		if j := t.Job(id); !j.State.Terminal() {
			p := min(max(int(j.Priority)+a.Number, math.MinInt32), math.MaxInt32)
			byPriority[p] = append(byPriority[p], id)
		}
	}
	switch {
	case len(byPriority) == 0:
		return nil, refuse("%s", requestVerbs[Priority].none)
	case len(byPriority) > maxPriorityRequests:
		return nil, refuse("those jobs have too many different priorities; say which priority")
	}
	var all []*rundir.Request
	for _, p := range slices.Sorted(maps.Keys(byPriority)) {
		all = append(all, &rundir.Request{Do: q.Do, Why: q.Why, Jobs: jobs.RangesOf(byPriority[p]), Priority: p})
	}
	return all, nil
}

func fillEdit(q *rundir.Request, a Action, _ *jobs.Table, _ *live.State) error {
	q.Edit = cmp.Or(a.Edit, new(jobs.Change))
	if q.Edit.Empty() {
		return refuse("nothing is to be changed")
	}
	if err := q.Edit.Check(); err != nil {
		return refuse("%v", err)
	}
	return nil
}

func fillHost(q *rundir.Request, a Action, _ *jobs.Table, s *live.State) error {
	q.Host = a.Host
	if s == nil {
		return nil // the dispatcher will say if there is no such host
	}
	_, err := liveHost(s, a.Host)
	return err
}

func fillSlots(q *rundir.Request, a Action, _ *jobs.Table, s *live.State) error {
	q.Host, q.Number = a.Host, a.Number
	if a.Relative {
		if s == nil {
			return refuse("the slots of %s are not known now; say how many it shall have", a.Host)
		}
		h, err := liveHost(s, a.Host)
		if err != nil {
			return err
		}
		if h.Slots == 0 && h.Given == 0 {
			return refuse("%s has not said yet how many slots it has", a.Host)
		}
		q.Number += h.Slots
	}
	if q.Number < 1 && (a.Relative || q.Number < 0) {
		return refuse("%s has at least 1 slot; drain it to have nothing started there", a.Host)
	}
	q.Number = min(q.Number, jobs.MaxSlots)
	return nil
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

// AnswerTo returns the answer to an action from what happened to its requests, which are all
// answered. The error is a *Refused when none was carried out.
func AnswerTo(a Action, traces []*ask.Trace, t *jobs.Table) (*Answer, error) {
	v, ans := requestVerbs[a.Do], new(Answer)
	refused := ""
	var affected []jobs.ID
	for _, trace := range traces {
		ans.Done, ans.Left = ans.Done+trace.Done, ans.Left+trace.Left
		affected = append(affected, trace.Affected...)
		refused = cmp.Or(refused, trace.Why)
	}
	switch a.Do {
	case Cancel, Requeue, Edit, Priority:
	case DrainHost, StopHost, UseHost, Slots, AddHost, RemoveHost:
		if refused != "" {
			return nil, &Refused{Why: refused}
		}
		ans.Done, ans.Left, ans.Text = 1, 0, fmt.Sprintf(v.done, a.Host)
		return ans, nil
	default:
		if refused != "" {
			return nil, &Refused{Why: refused}
		}
		ans.Text = v.done
		return ans, nil
	}
	ans.Left += max(0, a.Jobs.Count()-ans.Done-ans.Left) // jobs that the run does not have, or that were over
	switch {
	case ans.Done == 0 && refused != "":
		return nil, &Refused{Why: refused}
	case ans.Done == 0:
		ans.Text = v.none
	case ans.Left == 0:
		ans.Text = fmt.Sprintf(v.done, jobs.Plural(ans.Done, "job"))
	default:
		ans.Text = fmt.Sprintf(v.done, jobs.Plural(ans.Done, "job")) + fmt.Sprintf("; %d left alone", ans.Left)
	}
	if a.Do == Cancel {
		ans.Changed = jobs.RangesOf(ask.Undo(t, affected))
	}
	return ans, nil
}

func refuse(format string, args ...any) error { return &Refused{Why: fmt.Sprintf(format, args...)} }

// Do asks for an action and returns when it is carried out, or refused.
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

// refresh has everything read again and waits for that, but not for a disk that hangs.
func (v *View) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	v.mu.Lock()
	until := v.polls + 1
	if !v.began.IsZero() {
		until++ // what the one under way has read may be older
	}
	for v.polls < until && ctx.Err() == nil {
		news := v.news
		v.link.lost = true
		v.poke()
		v.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
		}
		v.mu.Lock()
	}
	v.mu.Unlock()
}

// awaitEnd waits for a dispatcher that is ending, which takes no requests any more. It
// returns whether there is one that does.
func (v *View) awaitEnd(ctx context.Context) (live bool, err error) {
	for {
		v.mu.Lock()
		status, _ := v.status()
		dispatched, news := v.facts.dispatched, v.news
		v.mu.Unlock()
		if status == StatusRunning || !dispatched {
			return dispatched, nil
		}
		select {
		case <-news:
		case <-v.ctx.Done():
			return false, ErrGone
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// fileAfter is how long the socket may take before a request is left as a file, too: its
// dispatcher may be stopped, or die before it can record the request.
const fileAfter = 2 * time.Second

// request has the dispatcher carry an action out. The error is socket.ErrNotTaken when it
// is ending and has not taken it.
func (v *View) request(ctx context.Context, a Action) (*Answer, error) {
	v.mu.Lock()
	list, err := Requests(a, v.table, v.state)
	conn, token := v.link.conn, v.facts.owner.Token
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
	for {
		v.mu.Lock()
		answered := true
		for _, t := range traces {
			answered = answered && t.Answered
		}
		if answered {
			defer v.mu.Unlock()
			return AnswerTo(a, traces, v.table)
		}
		gone := !v.facts.dispatched || v.facts.owner.Token != token
		news := v.news
		v.mu.Unlock()
		if gone {
			return nil, errors.New("the dispatcher has ended; it may have done it before. What it has not done waits for the next one")
		}
		select {
		case <-news:
		case <-v.ctx.Done():
			return nil, ErrGone
		case <-ctx.Done():
			return nil, fmt.Errorf("asked; the dispatcher has not answered yet: %w", ctx.Err())
		}
	}
}

// deliver hands a request to the dispatcher: through its socket, which works also while
// the disk is full, or as a file.
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
	case <-late.C: // with the same name it is carried out once
		return v.run.FileRequestAs(name, q)
	}
	var refused *Refused
	switch {
	case err == nil:
		v.poke()
		return nil
	case errors.As(err, &refused), errors.Is(err, socket.ErrNotTaken), ctx.Err() != nil:
		return err
	}
	return v.run.FileRequestAs(name, q)
}

// reply answers the dispatcher's question, which only a person on its machine can do.
func (v *View) reply(ctx context.Context, a Action) (*Answer, error) {
	conn := v.dispatcher()
	if conn == nil {
		return nil, refuse("the dispatcher cannot be reached from here; it will ask again")
	}
	if err := conn.Reply(ctx, int64(a.Number), a.Text); err != nil {
		return nil, err
	}
	return &Answer{Done: 1}, nil
}
