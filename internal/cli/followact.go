package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// actor carries out what a person asks for on a screen.
type actor = func(context.Context, runview.Action) (*runview.Answer, error)

// act carries out what a person asks of a run that nobody dispatches. What only a
// dispatcher can do waits in the run directory as a request, and one is started.
func (f *follower) act(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	switch a.Do {
	case runview.Resume:
		if err := f.resume(ctx); err != nil {
			return nil, err
		}
		return &runview.Answer{Done: 1, Text: "the run goes on"}, nil
	case runview.Requeue, runview.Edit:
		return f.again(ctx, a)
	case runview.Priority:
		return f.prioritise(&a)
	case runview.Cancel:
		if a.Waiting { // what of them runs is not known here, and would be ended
			return nil, &runview.Refused{Why: "the dispatcher has gone meanwhile; resume the run first"}
		}
		return f.cancelJobs(ctx, a.Jobs)
	case runview.CancelRun:
		f.cancelled.Store(true)
		return f.runCancel(ctx)
	case runview.DrainRun, runview.StopRun:
		return nil, &runview.Refused{Why: "nobody dispatches the run"}
	}
	return nil, &runview.Refused{Why: "nobody dispatches the run; resume it first"}
}

// requestOf is an action as a request in the run directory.
func requestOf(a *runview.Action) *rundir.Request {
	q := &rundir.Request{By: dispatch.Asker(), At: time.Now(), Why: a.Why, Priority: a.Number}
	for _, r := range a.Jobs {
		q.Jobs = append(q.Jobs, jobs.Range{First: r.First, Last: r.Last})
	}
	switch a.Do {
	case runview.Requeue:
		q.Do = rundir.DoRequeue
	case runview.Edit:
		q.Do, q.Edit = rundir.DoEdit, changeOf(a.Edit)
	case runview.Priority:
		q.Do = rundir.DoPriority
	case runview.Cancel:
		q.Do = rundir.DoCancel
	}
	return q
}

// changeOf is a change as jobs are given it.
func changeOf(c *runview.Change) *jobs.Change {
	j := &jobs.Change{Name: c.Name, Timeout: c.Timeout, MemBytes: c.MemBytes, Tries: c.Tries, Slots: c.Slots, GPUs: c.GPUs, Tags: c.Tags}
	if c.Command != "" {
		j.Command = &c.Command
	}
	return j
}

// again leaves the request, then starts a dispatcher, which takes it in before it
// starts anything.
func (f *follower) again(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	if a.Do == runview.Edit {
		if a.Edit == nil {
			return nil, &runview.Refused{Why: "nothing is to be changed"}
		}
		if err := changeOf(a.Edit).Check(); err != nil {
			return nil, &runview.Refused{Why: err.Error()}
		}
	}
	e, err := ask.Leave(f.run, requestOf(&a))
	if err != nil {
		return nil, err
	}
	if err := f.resume(ctx); err != nil {
		f.run.RemoveRequest(e.Name) // nobody would expect it to come into effect later
		return nil, err
	}
	owner, err := journal.ReadOwner(f.run)
	if err != nil {
		return nil, err
	}
	if owner != nil {
		e.Wait(ctx, owner, dialRun)
	}
	switch {
	case e.Refused != "":
		return nil, &runview.Refused{Why: e.Refused}
	case !e.Answered:
		return &runview.Answer{Text: "asked; the dispatcher has not taken it in yet"}, nil
	}
	return &runview.Answer{Done: e.Done, Left: e.Left, Text: jobs.Plural(e.Done, "job") + " queued again; the run goes on"}, nil
}

// resume starts a dispatcher in the background and waits until it dispatches.
func (f *follower) resume(ctx context.Context) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	var said words
	p, err := startDispatcher([]string{"resume", f.run.Dir}, null, &said)
	if err != nil {
		return err
	}
	ready, err := p.ready(ctx)
	if err != nil {
		return err
	}
	if ready == nil {
		otherwise := "it could not be resumed"
		if p.death != "" {
			otherwise += ": the dispatcher was ended (" + p.death + ") before it had begun"
		}
		return &runview.Refused{Why: said.problem(otherwise)}
	}
	f.process.Store(p)
	f.stage().lose()
	return nil
}

// cancelJobs and runCancel have `cancel` take the run over, end them, and leave.
func (f *follower) cancelJobs(ctx context.Context, which jobs.Ranges) (*runview.Answer, error) {
	const most = 2000 // ranges that fit on a command line
	if len(which) > most {
		return nil, &runview.Refused{Why: "nobody dispatches the run, and those are too many single jobs to end without: resume it first"}
	}
	var args []string
	for _, r := range which {
		args = append(args, fmt.Sprintf("%d-%d", r.First, r.Last))
	}
	if len(args) == 0 {
		return &runview.Answer{}, nil
	}
	return f.runCancel(ctx, args...)
}

func (f *follower) runCancel(ctx context.Context, ids ...string) (*runview.Answer, error) {
	before, err := standing.WholeTable(f.run)
	if err != nil {
		return nil, err
	}
	var said words
	// It goes on when the screen is left: what was asked for is done to its end. In a
	// session of its own it asks nothing on the terminal that the screen is on.
	cmd := exec.Command("/proc/self/exe", append([]string{"cancel", "--yes", f.run.Dir}, ids...)...)
	cmd.Args[0] = programName
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = run.WriteTimeout
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.stage().lose()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	if failed != nil && failed.ExitCode() == exit.Usage {
		return nil, &runview.Refused{Why: said.problem("it could not be cancelled")}
	}
	after, err := standing.WholeTable(f.run)
	if err != nil {
		return nil, err
	}
	return cancelAnswer(before, after, failed != nil), nil
}

// cancelAnswer returns the result of a cancel, from the run before and after it. It
// does not use the output of the command, which is written for a terminal.
func cancelAnswer(before, after *jobs.Table, failed bool) *runview.Answer {
	n := after.Counts[jobs.Cancelled] - before.Counts[jobs.Cancelled]
	a := &runview.Answer{Done: n, Text: jobs.Plural(n, "job") + " cancelled"}
	if n == 0 {
		a.Text = "no job was cancelled"
	}
	if running := after.Counts[jobs.Running]; failed && running > 0 {
		a.Text += fmt.Sprintf(", %s not ended yet: %s ended as soon as %s can be reached", jobs.Verb(running, "1 has", fmt.Sprintf("%d have", running)),
			jobs.Verb(running, "it is", "they are"), jobs.Verb(running, "its host", "their hosts"))
	}
	return a
}

// words keeps what a program that we have started says, up to a bound. exec writes to it from
// one goroutine and waits for that before it tells that the program has ended.
type words struct{ b bytes.Buffer }

func (w *words) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), max(0, 8192-w.b.Len()))])
	return len(p), nil
}

// problem returns the error that the program printed, on one line and without advice
// for a command line. If there is no error, it returns everything that was printed.
func (w *words) problem(otherwise string) string {
	for line := range strings.Lines(w.b.String()) {
		if text, ok := strings.CutPrefix(line, "dcs-tui: "); ok {
			return console.CleanLine(strings.TrimSpace(text))
		}
	}
	if text := console.CleanLine(strings.TrimSpace(w.b.String())); text != "" {
		return text
	}
	return otherwise
}
