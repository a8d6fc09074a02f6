package run

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/rundir"
)

// submitBlock is the number of jobs that are submitted at once. It is small enough that the first
// jobs start while a million others are still being submitted.
const submitBlock = 10_000

// feed submits the jobs of the run until the run is over or its input has ended.
func (r *Run) feed(ctx context.Context) {
	switch {
	case !r.submitStored(ctx):
		return
	case r.opts.Search != nil && r.opts.Search.Proposer != nil:
		r.searcher.feed(ctx)
	case r.opts.Lines != nil:
		r.inputErr = r.readInput(ctx, r.opts.Lines)
		if r.opts.AcceptJobs && r.inputErr == nil {
			r.awaitCloseInput(ctx)
		}
	case r.opts.AcceptJobs:
		r.awaitCloseInput(ctx)
	default:
		r.submitLast(ctx)
	}
	if r.isCanceled.Load() { // jobs that were submitted after the cancel
		r.d.Do(sched.Cancel{All: true, Why: "the run was canceled"})
	}
	if r.opts.StopWhen != nil {
		r.d.Do(sched.Stop{Why: r.opts.StopWhen(ctx)})
	}
}

// submitStored submits the stored jobs and has the waiting requests carried out. It returns false
// if the run is over before that.
func (r *Run) submitStored(ctx context.Context) bool {
	if names, _, _ := r.dir.RequestNames(); len(names) > 0 && !r.opts.EndOnly {
		// A requeue that an earlier dispatcher has carried out in part is carried out again. None
		// of its jobs may run before that. Otherwise it would run twice.
		r.d.Do(sched.Hold{By: sched.HoldRequests, On: true})
		defer r.d.Do(sched.Hold{By: sched.HoldRequests})
	}
	for len(r.stored) > 0 {
		block := r.stored[:min(len(r.stored), submitBlock)]
		last := block[len(block)-1].ID
		if !r.submit(ctx, block, false, nil) || r.d.NumAccepted(ctx) < int(last) {
			return false
		}
		clear(block) // the core has packed them
		r.stored = r.stored[len(block):]
	}
	r.inbox.TakeWaiting()
	close(r.storedDone)
	return true
}

// submitLast records that no more jobs will follow.
func (r *Run) submitLast(ctx context.Context) {
	r.awaitMetrics(ctx)
	r.inputUnread = !r.submit(ctx, nil, true, nil)
}

// Submit adds jobs to a run that was started with AcceptJobs. It numbers them, and returns when
// they are durable. While the disk is full, it blocks until there is space. It returns an error if
// the run or ctx ends before that. It is safe for concurrent use.
func (r *Run) Submit(ctx context.Context, specs ...*jobs.Spec) error {
	select {
	case <-r.storedDone:
	case <-r.ctx.Done():
		return ErrOver
	case <-ctx.Done():
		return ctx.Err()
	}
	paths := jobs.AbsoluteCwd{Base: r.dir.Settings.Cwd}
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

// CloseInput records that no more jobs will be submitted. The run then ends with its last job.
func (r *Run) CloseInput() {
	r.submitting.Lock()
	defer r.submitting.Unlock()
	r.closeInput.Do(func() { close(r.inputClosed) })
}

// awaitCloseInput waits until CloseInput is called or no more input is needed.
func (r *Run) awaitCloseInput(ctx context.Context) {
	select {
	case <-r.inputClosed:
	case <-r.inputCtx.Done(): // the run was canceled
	case <-ctx.Done():
		return
	}
	r.submitLast(ctx)
	if !r.inputUnread {
		r.storeInputMark(ctx, rundir.Input{State: rundir.InputDone})
	}
}

// submit submits jobs in blocks. If they cannot be stored because a disk is full, it retries until
// they can be, and reports that once. It returns false if ctx or the run ends first. number is that
// of dispatch.SubmitNumbered, for at most one block.
func (r *Run) submit(ctx context.Context, specs []*jobs.Spec, last bool, number func(first jobs.ID)) bool {
	for said := false; ; {
		n := min(len(specs), submitBlock)
		err := r.d.SubmitNumbered(specs[:n], last && n == len(specs), number)
		if err == nil {
			if said {
				r.printText("jobs are stored again; the run continues")
				said = false
			}
			specs = specs[n:]
			if len(specs) == 0 {
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
			r.printText("no more jobs are taken until they can be stored: " + err.Error())
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

// maxQueued is the number of queued jobs above which no more jobs are generated, so that they do
// not fill memory and the run directory weeks before their turn.
const maxQueued = 200_000

// demandInterval is the interval between checks of the queue's length. A thousand slots do not use
// up maxQueued jobs in that time.
const demandInterval = time.Second

// awaitDemand waits until more jobs must be generated or the input is not needed any more. It
// returns false if the run is over before that.
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

// storeInputMark stores how far the input was read. It retries until the run is over. If it cannot
// store the mark, the stored one means that less was read, never more.
func (r *Run) storeInputMark(ctx context.Context, i rundir.Input) {
	r.input = i
	for said := false; ; said = true {
		err := r.dir.WriteInput(i)
		if err == nil {
			return
		}
		if !said {
			r.printText("the file " + rundir.InputFile + " of the run cannot be written: " + err.Error())
		}
		select {
		case <-ctx.Done():
			_ = r.dir.WriteInput(i) // the error was reported
			return
		case <-time.After(retryInterval):
		}
	}
}

// Reply answers a line of the input that is not a job; docs/reference/protocol.md describes it.
type Reply struct {
	V     int    `json:"v"`
	Line  int    `json:"line"`
	ID    string `json:"id,omitempty"`    // id of the line
	Do    string `json:"do,omitempty"`    // action that was carried out
	Error string `json:"error,omitempty"` // why the line was refused
}

// JobLines turns a function that returns jobs into Options.Lines.
func JobLines(next func() (*jobs.Spec, error)) func() (jobs.Line, error) {
	return func() (jobs.Line, error) {
		spec, err := next()
		return jobs.Line{Spec: spec}, err
	}
}

// readInput reads lines from next and submits their jobs without waiting for more, so that a job
// starts while the next one is still being generated. It returns the error in the input, or nil.
//
// When ctx ends, the goroutine that calls next may stay blocked in it until the process ends.
func (r *Run) readInput(ctx context.Context, next func() (jobs.Line, error)) error {
	read := make(chan inputLine, submitBlock)
	go readLines(ctx, next, read)
	paths := jobs.AbsoluteCwd{Base: r.dir.Settings.Cwd}
	numbers := &inputNumbers{base: r.numEarlierJobs}
	for {
		if r.input.Again && !awaitDemand(ctx, r.inputCtx, r.numQueued) {
			return nil
		}
		var batch []*jobs.Spec
		var ask *jobs.StreamAsk
		var end error
		add := func(l inputLine) {
			end, ask = l.err, l.line.Ask
			if end == nil && ask == nil {
				paths.Resolve(l.line.Spec)
				batch = append(batch, l.line.Spec)
			}
		}
		select {
		case l := <-read:
			add(l)
		case <-r.inputCtx.Done():
			end = io.EOF // a canceled run misses no jobs
		case <-ctx.Done():
			return nil
		}
		for more := true; more && end == nil && ask == nil && len(batch) < submitBlock; {
			select {
			case l := <-read:
				add(l)
			default:
				more = false
			}
		}
		// EIO: the terminal on which the input was typed is gone.
		read := errors.Is(end, io.EOF) || errors.Is(end, syscall.EIO)
		open := read && r.opts.AcceptJobs
		var number func(jobs.ID)
		if !r.input.Again { // otherwise no job names another one
			number = numbers.number(batch)
		}
		if (len(batch) > 0 || end != nil) && !r.submit(ctx, batch, end != nil && !open, number) {
			return nil
		}
		if ask != nil {
			r.answer(ctx, ask, numbers)
		}
		r.inputUnread = end == nil
		switch {
		case r.inputUnread:
		case open:
			r.storeInputMark(ctx, rundir.Input{State: rundir.InputOpen, IsKeptOpen: true, Again: r.input.Again})
			return nil
		case read:
			r.storeInputMark(ctx, rundir.Input{State: rundir.InputDone, Again: r.input.Again})
			return nil
		default:
			r.printText(text.ShortenTo(text.Line(end.Error()), 60) +
				"; the input is read no further, the jobs before it continue")
			r.storeInputMark(ctx, rundir.Input{State: rundir.InputBad, Fault: end.Error()})
			return end
		}
	}
}

// answer carries out a line that is not a job. When it returns, the answer is durable.
func (r *Run) answer(ctx context.Context, ask *jobs.StreamAsk, numbers *inputNumbers) {
	if ask.Repeats != 0 {
		r.d.Redeliver(numbers.of(ask.Repeats), r.earlierSeq) // Next returns later ones
		return
	}
	reply, err := &Reply{V: 1, Line: ask.Line, ID: ask.ID}, ask.Err
	if err == nil {
		err = r.request(ctx, ask, numbers)
	}
	if err == nil {
		reply.Do = ask.Do
	} else {
		reply.Error = err.Error()
		r.numRefused++
		r.printText(text.ShortenTo(text.Line(reply.Error), 200))
	}
	r.opts.Reply(reply)
}

// request makes a request from a line, like the request of a person.
func (r *Run) request(ctx context.Context, ask *jobs.StreamAsk, numbers *inputNumbers) error {
	q := &action.Request{Do: action.Name(ask.Do), All: ask.All, Jobs: ask.Jobs, By: dispatch.Asker(), At: time.Now()}
	if ask.Do == jobs.AskCancel {
		q.Why = "canceled by its submitter"
	}
	for _, n := range ask.Named {
		id := numbers.of(n)
		q.Jobs = append(q.Jobs, jobs.Range{First: id, Last: id})
	}
	q.Jobs, _ = jobs.ParseRanges(q.Jobs.String()) // sort the jobs
	body, err := q.Encode()
	if err != nil {
		return err
	}
	return r.inbox.Request(ctx, rundir.NewRequestName(q.At), body)
}

// inputNumbers maps the numbers that a jobs.Scanner assigns to the jobs of an input to their
// numbers in the run. They differ if other jobs are submitted in the meantime.
type inputNumbers struct {
	base jobs.ID // up to this number, both are equal
	ids  []jobs.ID
}

func (s *inputNumbers) of(n jobs.ID) jobs.ID {
	if n <= s.base {
		return n
	}
	return s.ids[n-s.base-1]
}

// number returns the function that SubmitNumbered calls for a batch.
func (s *inputNumbers) number(batch []*jobs.Spec) func(first jobs.ID) {
	before, after := len(s.ids), make([]jobs.Dependencies, len(batch))
	for i, spec := range batch {
		after[i] = spec.After()
	}
	return func(first jobs.ID) {
		s.ids = s.ids[:before]
		for i := range batch {
			s.ids = append(s.ids, first+jobs.ID(i))
		}
		for i, d := range after {
			if len(d) > 0 {
				batch[i].SetAfter(d.Map(s.of))
			}
		}
	}
}

// inputLine is a result of Options.Lines.
type inputLine struct {
	line jobs.Line
	err  error
}

func readLines(ctx context.Context, next func() (jobs.Line, error), to chan<- inputLine) {
	for {
		line, err := next()
		select {
		case to <- inputLine{line, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}
