package cli

import (
	"context"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// ask asks the dispatcher of a run and waits for its answer. waits reports that nobody
// dispatches the run: the request waits in the run directory. An unanswered request has
// been reported.
func (a *app) ask(ctx context.Context, run *rundir.Run, q *rundir.Request) (r *ask.Request, waits bool, err error) {
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return nil, false, exit.Usagef("%w", err)
	}
	q.By, q.At = dispatch.Asker(), time.Now()
	if owner == nil || owner.Life() == journal.Dead {
		if r, err = ask.Leave(run, q); err != nil {
			return nil, false, exit.Usagef("%w", err)
		}
		return r, true, nil
	}
	if r, err = ask.Prepare(run, q); err != nil {
		return nil, false, exit.Usagef("%w", err)
	}
	return r, a.await(ctx, r, owner), nil
}

// await waits for the answer to a request, and reports when there is none.
func (a *app) await(ctx context.Context, r *ask.Request, owner *journal.Owner) (gone bool) {
	gone = r.Wait(ctx, owner, dialRun)
	if !gone && !r.Answered && r.Refused == "" {
		a.unanswered(r, owner)
	}
	return gone
}

// dialRun is an ask.Dial.
func dialRun(ctx context.Context, run *rundir.Run, owner *journal.Owner) (ask.Conn, error) {
	return dialSocket(ctx, run, owner)
}

// unanswered says that the dispatcher is alive and has not answered.
func (a *app) unanswered(e *ask.Request, owner *journal.Owner) {
	a.code = exit.Left
	who := console.CleanLine(owner.String())
	switch {
	case owner.Stopped():
		a.warn("%s is stopped (Ctrl-Z, SIGSTOP); the request waits: kill -CONT %d lets it go on", who, owner.PID)
	case owner.Problem != "":
		a.warn("%s has not taken it in yet; the request waits: %s", who, owner.Problem)
	default:
		a.warn("%s has not answered yet; the request waits until it does, or for the next resume", who)
	}
	if e.Problem != nil {
		a.warn("%v", e.Problem)
	}
}

// asked is what --json prints of a request.
type asked struct {
	V        int       `json:"v"`
	Run      string    `json:"run"`
	UID      string    `json:"uid"`
	Do       string    `json:"do"`      // cancel or requeue
	Request  *string   `json:"request"` // its name; null when there was nothing to ask
	Answered bool      `json:"answered"`
	Jobs     int       `json:"jobs"`        // that were cancelled or requeued
	Left     int       `json:"left_alone"`  // that were over (cancel) or not over (requeue)
	Ended    int       `json:"ended"`       // of the jobs to cancel, those that ended of themselves meanwhile
	Ending   []jobs.ID `json:"still_alive"` // of the jobs to cancel, those that have not ended yet
}
