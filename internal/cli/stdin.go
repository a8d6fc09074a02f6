package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
)

// stream takes jobs from next and submits each batch that is there at once, so
// that a job starts while the next is still being made (D1). It returns what was
// wrong with them. Stored jobs of the run, and requests that wait, come first.
//
// The goroutine that calls next may be left blocked in it when ctx ends; it holds
// nothing and ends with the process.
func (s *session) stream(ctx context.Context, next func() (*jobs.Spec, error)) error {
	lines := make(chan inputJob, submitBlock)
	s.unread = true
	relative := cwdResolver{cwd: s.run.Asked.Cwd}
	s.intake.State = standing.InputOpen
	if !s.submitStored(ctx) {
		return nil
	}
	go takeJobs(ctx, next, lines)
	for {
		if s.intake.Again && !wanted(ctx, s.input, s.waitingNow) {
			return nil
		}
		var batch []*jobs.Spec
		var end error
		select {
		case l := <-lines:
			batch, end = l.add(batch, &relative)
		case <-s.input.Done():
			end = io.EOF // of a cancelled run nothing is missed
		case <-ctx.Done():
			return nil
		}
		for waiting := true; waiting && end == nil && len(batch) < submitBlock; {
			select {
			case l := <-lines:
				batch, end = l.add(batch, &relative)
			default:
				waiting = false
			}
		}
		if !submitAll(ctx, s.d, batch, end != nil, s.warnStore) {
			return nil
		}
		s.unread = end == nil
		switch {
		case end == nil:
		case errors.Is(end, io.EOF), errors.Is(end, syscall.EIO): // EIO: the terminal it was typed on is gone
			s.mark(ctx, standing.Input{State: standing.InputDone, Again: s.intake.Again})
			return nil
		default:
			s.say(func() string {
				return console.ShortenTo(console.CleanLine(end.Error()), standing.MaxFault) + "; the input is read no further, the jobs before it go on"
			})
			s.mark(ctx, standing.Input{State: standing.InputBad, Fault: end.Error()})
			return end
		}
	}
}

// enoughWaiting is how many jobs may wait before no more are made: what can be made
// again at any time need not fill memory and the run directory weeks before its turn.
const enoughWaiting = 200_000

// wanted returns when more jobs are to be made, or the input is not wanted any more;
// false: the run is over before that.
func wanted(ctx, input context.Context, waiting func() int) bool {
	for waiting() >= enoughWaiting && input.Err() == nil {
		select {
		case <-ctx.Done():
			return false
		case <-input.Done():
		case <-time.After(wantedEvery):
		}
	}
	return true
}

// waitingNow is how many jobs wait, as far as is known.
func (s *session) waitingNow() int {
	if snap := s.d.Snapshot(); snap != nil {
		return snap.Counts[jobs.Queued]
	}
	return 0
}

// wantedEvery is how often that is looked at: hosts of a thousand slots do not use up so
// many jobs meanwhile.
const wantedEvery = time.Second

// inputJob is what one reading gave.
type inputJob struct {
	spec *jobs.Spec
	err  error
}

func (l inputJob) add(batch []*jobs.Spec, relative *cwdResolver) ([]*jobs.Spec, error) {
	if l.err != nil {
		return batch, l.err
	}
	relative.resolve(l.spec)
	return append(batch, l.spec), nil
}

func takeJobs(ctx context.Context, next func() (*jobs.Spec, error), to chan<- inputJob) {
	for {
		spec, err := next()
		select {
		case to <- inputJob{spec, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// readingJobs yields the jobs of standard input.
func readingJobs(in io.Reader) func() (*jobs.Spec, error) {
	scan := jobs.NewScanner(in, "standard input", false, 1)
	return func() (*jobs.Spec, error) {
		spec, err := scan.Next()
		if err == nil && parameterLine.MatchString(spec.Command) {
			err = exit.Usagef("standard input:%d: this is a template, which dcs-tui grid - reads: %s", spec.Line, console.Shorten(console.CleanLine(spec.Command)))
		}
		if f, ok := in.(*os.File); ok && err != nil && !errors.Is(err, io.EOF) && term.IsTerminal(int(f.Fd())) {
			go io.Copy(io.Discard, f) // what is still being pasted is not for the shell
		}
		return spec, err
	}
}

// flushTyped throws away what was typed on the terminal and not read: the shell
// would carry the rest of the jobs out.
func (a *app) flushTyped() {
	if f, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // nothing is lost if it cannot be
	}
}

// mark keeps how far the input was read, and tries until it can or the run is over.
// One that cannot be kept says less than was read, never more.
func (s *session) mark(ctx context.Context, i standing.Input) {
	s.intake = i
	for said := false; ; said = true {
		err := standing.WriteInput(s.run, i)
		if err == nil {
			return
		}
		if !said {
			s.say(func() string {
				return "the file " + standing.InputFile + " of the run cannot be written: " + console.CleanLine(err.Error())
			})
		}
		select {
		case <-ctx.Done():
			_ = standing.WriteInput(s.run, i) // was said
			return
		case <-time.After(retryEvery):
		}
	}
}
