package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// runCommand adds one job to a run, waits for its end, prints what it has printed, and exits
// as it did. A signal cancels the job.
func (a *app) runCommand(f *submitFlags, run *rundir.Run, words []string) error {
	spec, err := f.commandSpec(run, strings.Join(words, " "))
	if err != nil {
		return err
	}
	requests, err := submitRequests([]*jobs.Spec{spec})
	if err != nil {
		return err
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	s, err := a.ask(context.Background(), run, requests...)
	if err != nil {
		return err
	}
	end, err := a.awaitEnd(run, s.parts[0], stopped)
	if end == nil {
		return err
	}
	if f.json {
		table, err := wholeTable(run)
		if err != nil {
			return err
		}
		result := metrics.Locations(run).Result(table.Job(end.Job))
		if _, err := a.stdout.Write(result.AppendJSON(nil)); err != nil {
			return exit.Usagef("%w", err)
		}
	} else if err := a.printJob(run, end.Job); err != nil {
		return err
	}
	if a.code = codeOfJob(end); a.code != exit.OK && !f.json {
		a.con.Line(fmt.Sprintf("job %d: %s", end.Job, console.CleanLine(results.Cause(end.Next, end.Reason, end.Outcome))))
	}
	return nil
}

// commandSpec makes the job of a command. It runs in the directory of whoever submits it.
func (f *submitFlags) commandSpec(run *rundir.Run, command string) (*jobs.Spec, error) {
	keys := map[string]any{"command": command}
	if here, err := os.Getwd(); err == nil && here != run.Asked.Cwd && len(run.Asked.Send)+len(run.Asked.Return) == 0 {
		keys["cwd"] = here
	}
	if f.queue != "" {
		keys["queue"] = f.queue
	}
	for _, option := range f.options {
		key, value, ok := strings.Cut(option, "=")
		if !ok || key == "command" {
			return nil, exit.Usagef("--option %s: KEY=VALUE is wanted, such as slots=4", console.Shorten(option))
		}
		keys[key] = value
	}
	line, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	specs, err := jobs.Parse(strings.NewReader(string(line)), "the job", true, 1)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	f.apply(specs)
	return specs[0], nil
}

// maxPoll is the longest time between two looks at the journal.
const maxPoll = 500 * time.Millisecond

// awaitEnd waits until the job of a request is over, also while its dispatcher is dead and
// not replaced yet. It returns nil if that will not come.
func (a *app) awaitEnd(run *rundir.Run, e *ask.Request, stopped <-chan os.Signal) (*jobs.Record, error) {
	began, said := time.Now(), false
	for {
		e.Poll()
		owner := e.Owner()
		switch end := e.End(); {
		case end != nil:
			return end, nil
		case e.Refused != "":
			return nil, exit.Usagef("%s", console.CleanLine(e.Refused))
		case owner == nil || owner.Left:
			if !e.Answered {
				err := exit.Usagef("nobody dispatches the run; the command was not submitted").WithAdvice("dcs-tui resume %s --keep-open goes on with it", refTo(run))
				return nil, exit.WithCode(exit.Left, cmp.Or(run.RemoveRequest(e.Name), error(err)))
			}
			return nil, exit.WithCode(exit.Left, exit.Usagef("nobody dispatches the run any more; job %d is not over", e.First).
				WithAdvice("dcs-tui resume %s goes on with it", refTo(run)))
		case !e.Dispatched() && !said:
			said = true
			a.warn("the dispatcher of the run has died; waiting for dcs-tui resume %s", refTo(run))
		}
		select {
		case <-stopped:
			a.code = exit.Cancelled
			if !e.Answered {
				return nil, run.RemoveRequest(e.Name)
			}
			_, err := a.ask(context.Background(), run, &rundir.Request{Do: rundir.DoCancel, Jobs: jobs.RangesOf([]jobs.ID{e.First}), Why: "whoever waited for it was ended"})
			return nil, err
		case <-time.After(min(time.Since(began)/20+20*time.Millisecond, maxPoll)): // as exact as it takes long
		}
	}
}

// printJob prints what the newest attempt of a job has printed.
func (a *app) printJob(run *rundir.Run, id jobs.ID) error {
	src, done, err := a.openOutputs(run)
	if err != nil {
		return err
	}
	defer done()
	d, err := detail(src, run, id)
	if err != nil || len(d.Attempts) == 0 {
		return err
	}
	at := &d.Attempts[len(d.Attempts)-1]
	out := &logWriter{out: a.stdout, tty: term.IsTerminal(int(a.stdout.Fd())), quiet: true}
	errs := &logWriter{out: a.stderr, tty: term.IsTerminal(int(a.stderr.Fd())), quiet: true}
	return cmp.Or(a.copyLog(src, run, at, jobs.FileOut, false, out), a.copyLog(src, run, at, jobs.FileErr, false, errs))
}

// openOutputs opens a view of a run that also reads what only hosts have.
func (a *app) openOutputs(run *rundir.Run) (src *runview.View, done func(), err error) {
	far := &farOutputs{app: a, run: run}
	o := a.viewOptions(run)
	o.Far = far.read
	if src, err = a.openView(run, o); err != nil {
		far.close()
		return nil, nil, err
	}
	return src, func() { src.Close(); far.close() }, nil
}

// codeOfJob returns the exit code of a job as a shell gives it: 128 and the number of the
// signal that ended it; and as timeout(1) does, 124.
func codeOfJob(end *jobs.Record) int {
	o := end.Outcome
	switch {
	case end.Next == jobs.Succeeded:
		return exit.OK
	case end.Next == jobs.Cancelled:
		return exit.Cancelled
	case end.Next == jobs.TimedOut:
		return 124
	case o != nil && o.Signal != "":
		return 128 + jobs.SignalNumber(o.Signal)
	case o != nil && o.Exit > 0:
		return o.Exit
	}
	return exit.Failed
}
