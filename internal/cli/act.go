package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// Do is runview.Source's.
func (s *runScreen) Do(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	ans, err := s.View.Do(ctx, a)
	if err == nil && a.Do == runview.CancelRun {
		s.cancelled.Store(true)
	}
	return ans, err
}

// act carries out what a person asks of a run that nobody dispatches. What only a
// dispatcher can do waits in the run directory as a request, and one is started.
func (s *runScreen) act(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	switch a.Do {
	case runview.Resume:
		if err := s.resume(ctx); err != nil {
			return nil, err
		}
		return &runview.Answer{Done: 1, Text: "the run goes on"}, nil
	case runview.Requeue, runview.Edit, runview.Priority:
		return s.request(ctx, a)
	case runview.Cancel:
		if a.Waiting { // what of them runs is not known here, and would be ended
			return nil, &runview.Refused{Why: "the dispatcher has gone meanwhile; resume the run first"}
		}
		const limit = 2000 // ranges that fit on a command line
		var ids []string
		for _, r := range a.Jobs {
			ids = append(ids, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
		switch {
		case len(ids) > limit:
			return nil, &runview.Refused{Why: "nobody dispatches the run, and those are too many single jobs to end without: resume it first"}
		case len(ids) == 0:
			return &runview.Answer{}, nil
		}
		return s.cancel(ctx, ids...)
	case runview.CancelRun:
		return s.cancel(ctx)
	case runview.DrainRun, runview.StopRun:
		return nil, &runview.Refused{Why: "nobody dispatches the run"}
	}
	return nil, &runview.Refused{Why: "nobody dispatches the run; resume it first"}
}

// requests returns an action as requests.
func (s *runScreen) requests(a runview.Action) ([]*rundir.Request, error) {
	table, err := wholeTable(s.run)
	if err != nil {
		return nil, err
	}
	if err := applyWaiting(s.run, table); err != nil {
		return nil, err
	}
	list, err := runview.Requests(a, table, nil)
	for _, q := range list {
		q.By, q.At = dispatch.Asker(), time.Now()
	}
	return list, err
}

// applyWaiting gives jobs the priorities that requests ask for that wait for a dispatcher:
// a relative change adds to those.
func applyWaiting(run *rundir.Run, t *jobs.Table) error {
	names, _, err := run.RequestNames()
	for _, name := range names {
		if t.Requests[name] {
			continue
		}
		q, readErr := run.ReadRequest(name)
		var refused *rundir.RefusedError
		switch {
		case errors.As(readErr, &refused), errors.Is(readErr, fs.ErrNotExist): // comes to nothing
		case readErr != nil:
			return readErr
		case q.Do == rundir.DoPriority:
			for _, id := range q.Jobs.IDs(jobs.ID(len(t.Jobs))) {
				t.Job(id).Priority = int32(q.Priority)
			}
		}
	}
	return err
}

// request leaves an action as requests. A change of priorities waits for the next resume.
// For others it starts a dispatcher, which carries them out before it launches anything.
func (s *runScreen) request(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	list, err := s.requests(a)
	if err != nil {
		return nil, err
	}
	var q *ask.Request
	n := 0
	for _, r := range list {
		if q, err = ask.Leave(s.run, r); err != nil {
			return nil, err
		}
		n += r.Jobs.Count()
	}
	if a.Do == runview.Priority {
		return &runview.Answer{Done: n, Text: "noted for the next resume"}, nil
	}
	if err := s.resume(ctx); err != nil {
		s.run.RemoveRequest(q.Name) // nobody would expect it to come into effect later
		return nil, err
	}
	owner, err := journal.ReadOwner(s.run)
	if err != nil {
		return nil, err
	}
	if owner != nil {
		q.Wait(ctx, owner, dialRun)
	}
	switch {
	case q.Refused != "":
		return nil, &runview.Refused{Why: q.Refused}
	case !q.Answered:
		return &runview.Answer{Text: "asked; the dispatcher has not taken it in yet"}, nil
	}
	return &runview.Answer{Done: q.Done, Left: q.Left, Text: jobs.Plural(q.Done, "job") + " queued again; the run goes on"}, nil
}

// resume starts a dispatcher in the background and waits until it dispatches.
func (s *runScreen) resume(ctx context.Context) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	var said output
	p, err := run.StartBackground([]string{"resume", s.run.Dir}, null, &said)
	if err != nil {
		return err
	}
	dir, err := p.Ready(ctx)
	if err != nil {
		return err
	}
	if dir == "" {
		otherwise := "it could not be resumed"
		if _, death := codeOf(p); death != "" {
			otherwise += ": the dispatcher was ended (" + death + ") before it had begun"
		}
		return &runview.Refused{Why: said.problem(otherwise)}
	}
	s.process.Store(p)
	return nil
}

// cancel has the cancel command take the run over, end jobs, and leave.
func (s *runScreen) cancel(ctx context.Context, ids ...string) (*runview.Answer, error) {
	before, err := wholeTable(s.run)
	if err != nil {
		return nil, err
	}
	var said output
	// It goes on when the screen is left: what was asked for is done to its end. In a
	// session of its own it asks nothing on the terminal that the screen is on.
	cmd := exec.Command("/proc/self/exe", append([]string{"cancel", "--yes", s.run.Dir}, ids...)...)
	cmd.Args[0] = run.ProgramName
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
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	if failed != nil && failed.ExitCode() == exit.Usage {
		return nil, &runview.Refused{Why: said.problem("it could not be cancelled")}
	}
	after, err := wholeTable(s.run)
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

// output keeps what a program that we have started prints, up to a bound. exec writes to it
// from one goroutine and waits for that before it tells that the program has ended.
type output struct{ b bytes.Buffer }

func (w *output) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), max(0, 8192-w.b.Len()))])
	return len(p), nil
}

// problem returns the error that the program printed, on one line and without advice
// for a command line. If there is no error, it returns everything that was printed.
func (w *output) problem(otherwise string) string {
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
