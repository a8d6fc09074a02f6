package runview

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/rundir"
)

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

// refresh has everything read anew and waits for that, but not for a disk that hangs.
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
