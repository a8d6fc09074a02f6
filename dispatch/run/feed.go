package run

import (
	"context"
	"errors"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// submitBlock is how many jobs are submitted at once: enough to be cheap, few enough that
// the first starts while a million others are still to be submitted.
const submitBlock = 10_000

// feed submits the jobs of the run until the run is over or its input has ended.
func (r *Run) feed(ctx context.Context) {
	switch {
	case !r.submitStored(ctx):
		return
	case r.opts.Search != nil && r.opts.Search.Proposer != nil:
		r.searcher.feed(ctx)
	case r.opts.Lines != nil:
		if r.inputErr = r.stream(ctx, r.opts.Lines); r.opts.AcceptJobs && r.inputErr == nil {
			r.awaitCloseInput(ctx)
		}
	case r.opts.AcceptJobs:
		r.awaitCloseInput(ctx)
	default:
		r.submitLast(ctx)
	}
	if r.canceled.Load() { // jobs that were submitted after the cancel
		r.d.Do(sched.Cancel{All: true, Why: "the run was cancelled"})
	}
	if r.opts.StopWhen != nil {
		r.d.Do(sched.Stop{Why: r.opts.StopWhen(ctx)})
	}
}

// submitStored submits the stored jobs and has the waiting requests carried out. It
// returns false when the run is over before that.
func (r *Run) submitStored(ctx context.Context) bool {
	if names, _, _ := r.dir.RequestNames(); len(names) > 0 && !r.opts.EndOnly {
		// A requeue that an earlier dispatcher carried out in part when it died is carried
		// out anew. Nothing of it may have run meanwhile, or it would run once more.
		r.d.Do(sched.Hold{By: sched.HoldRequests, On: true})
		defer r.d.Do(sched.Hold{By: sched.HoldRequests})
	}
	if len(r.stored) > 0 && !r.submit(ctx, r.stored, false, nil) {
		return false
	}
	r.inbox.TakeWaiting()
	close(r.storedDone)
	return true
}

// submitLast says that no more jobs will come.
func (r *Run) submitLast(ctx context.Context) {
	r.awaitFigures(ctx)
	r.unread = !r.submit(ctx, nil, true, nil)
}

// Submit adds jobs to a run that was started with AcceptJobs, numbers them, and returns
// when they are durable. It blocks until a full disk has room for them, and returns an
// error if the run or ctx ends before that. Safe for concurrent use.
func (r *Run) Submit(ctx context.Context, specs ...*jobs.Spec) error {
	select {
	case <-r.storedDone:
	case <-r.ctx.Done():
		return ErrOver
	case <-ctx.Done():
		return ctx.Err()
	}
	paths := jobs.AbsoluteCwd{Base: r.dir.Asked.Cwd}
	for _, s := range specs {
		if s.Options == nil {
			s.Options = jobs.NoOptions
		}
		paths.Resolve(s)
	}
	r.submitting.Lock()
	defer r.submitting.Unlock()
	select {
	case <-r.inputClosed:
		return errors.New("no jobs can be submitted after CloseInput")
	default:
	}
	if !r.submit(ctx, specs, false, nil) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrOver
	}
	return nil
}

// CloseInput says that no more jobs will be submitted. The run then ends with its last job.
func (r *Run) CloseInput() {
	r.submitting.Lock()
	defer r.submitting.Unlock()
	r.closeInput.Do(func() { close(r.inputClosed) })
}

// awaitCloseInput waits until CloseInput is called or no input is wanted any more.
func (r *Run) awaitCloseInput(ctx context.Context) {
	select {
	case <-r.inputClosed:
	case <-r.inputCtx.Done(): // the run was canceled
	case <-ctx.Done():
		return
	}
	if r.submitLast(ctx); !r.unread {
		r.markInput(ctx, rundir.Input{State: rundir.InputDone})
	}
}

// submit submits jobs in blocks. If they cannot be stored because a disk is full, it tries
// again until they can, and says so once. It returns false when ctx or the run ends first.
// number is that of dispatch.SubmitNumbered, for at most a block.
func (r *Run) submit(ctx context.Context, specs []*jobs.Spec, last bool, number func(first jobs.ID)) bool {
	for said := false; ; {
		n := min(len(specs), submitBlock)
		err := r.d.SubmitNumbered(specs[:n], last && n == len(specs), number)
		if err == nil {
			if said {
				r.sayText("jobs are stored again; the run goes on")
				said = false
			}
			if specs = specs[n:]; len(specs) == 0 {
				return true
			}
			continue
		}
		if ctx.Err() != nil {
			return false
		}
		select {
		case <-r.d.Finished():
			return false
		default:
		}
		if !said {
			said = true
			r.sayText("no more jobs are taken until they can be stored: " + err.Error())
		}
		select {
		case <-ctx.Done():
			return false
		case <-r.d.Finished():
			return false
		case <-time.After(retryInterval):
		}
	}
}

// maxQueued is how many jobs may be queued before no more are made. Jobs that can be made
// at any time need not fill memory and the run directory weeks before their turn.
const maxQueued = 200_000

// demandInterval is how often the queue is looked at. Hosts of a thousand slots do not
// use up maxQueued jobs meanwhile.
const demandInterval = time.Second

// awaitDemand waits until more jobs are to be made or the input is not wanted any more. It
// returns false when the run is over before that.
func awaitDemand(ctx, input context.Context, numQueued func() int) bool {
	for numQueued() >= maxQueued && input.Err() == nil {
		select {
		case <-ctx.Done():
			return false
		case <-input.Done():
		case <-time.After(demandInterval):
		}
	}
	return true
}

// numQueued returns the number of queued jobs, as far as it is known.
func (r *Run) numQueued() int {
	if snap := r.d.Snapshot(); snap != nil {
		return snap.Counts[jobs.Queued]
	}
	return 0
}

// markInput stores how far the input was read. It tries until it can or the run is over. A
// mark that cannot be stored claims less than was read, never more.
func (r *Run) markInput(ctx context.Context, i rundir.Input) {
	r.input = i
	for said := false; ; said = true {
		err := r.dir.WriteInput(i)
		if err == nil {
			return
		}
		if !said {
			r.sayText("the file " + rundir.InputFile + " of the run cannot be written: " + err.Error())
		}
		select {
		case <-ctx.Done():
			_ = r.dir.WriteInput(i) // the error was reported
			return
		case <-time.After(retryInterval):
		}
	}
}
