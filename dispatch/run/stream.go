package run

import (
	"context"
	"errors"
	"io"
	"slices"
	"syscall"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Reply answers a line of the input that is no job; docs/protocol.md describes it.
type Reply struct {
	V     int    `json:"v"`
	Line  int    `json:"line"`
	ID    string `json:"id,omitempty"`    // as the line has it
	Do    string `json:"do,omitempty"`    // what was carried out
	Error string `json:"error,omitempty"` // why the line was not taken
}

// JobLines makes Options.Lines of what yields jobs.
func JobLines(next func() (*jobs.Spec, error)) func() (jobs.Line, error) {
	return func() (jobs.Line, error) {
		spec, err := next()
		return jobs.Line{Spec: spec}, err
	}
}

// stream takes lines from next and submits the jobs that are there at once, so that a job
// starts while the next one is still being made. It returns what was wrong with them.
//
// The goroutine that calls next may be left blocked in it when ctx ends. It holds nothing
// and ends with the process.
func (r *Run) stream(ctx context.Context, next func() (jobs.Line, error)) error {
	read := make(chan inputLine, submitBlock)
	go readLines(ctx, next, read)
	paths := jobs.AbsoluteCwd{Base: r.dir.Asked.Cwd}
	numbers := &streamNumbers{base: r.base}
	for {
		if r.input.Again && !awaitDemand(ctx, r.inputCtx, r.numQueued) {
			return nil
		}
		var batch []*jobs.Spec
		var ask *jobs.StreamAsk
		var end error
		add := func(l inputLine) {
			if end, ask = l.err, l.line.Ask; end == nil && ask == nil {
				paths.Resolve(l.line.Spec)
				batch = append(batch, l.line.Spec)
			}
		}
		select {
		case l := <-read:
			add(l)
		case <-r.inputCtx.Done():
			end = io.EOF // a canceled run lacks nothing
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
		read := errors.Is(end, io.EOF) || errors.Is(end, syscall.EIO) // EIO: the terminal it was typed on is gone
		open := read && r.opts.AcceptJobs
		var number func(jobs.ID)
		if !r.input.Again { // else no job names another
			number = numbers.number(batch)
		}
		if (len(batch) > 0 || end != nil) && !r.submit(ctx, batch, end != nil && !open, number) {
			return nil
		}
		if ask != nil {
			r.answer(ctx, ask, numbers)
		}
		switch r.unread = end == nil; {
		case r.unread:
		case open:
			return nil
		case read:
			r.markInput(ctx, rundir.Input{State: rundir.InputDone, Again: r.input.Again})
			return nil
		default:
			r.sayText(text.ShortenTo(text.Line(end.Error()), 60) + "; the input is read no further, the jobs before it go on")
			r.markInput(ctx, rundir.Input{State: rundir.InputBad, Fault: end.Error()})
			return end
		}
	}
}

// answer carries out a line that is no job. Its answer is durable when it returns.
func (r *Run) answer(ctx context.Context, ask *jobs.StreamAsk, numbers *streamNumbers) {
	if ask.Repeats != 0 {
		r.d.Redeliver(numbers.of(ask.Repeats), r.earlier) // later ones are on their way
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
		r.refused++
		r.sayText(text.ShortenTo(text.Line(reply.Error), 200))
	}
	r.opts.Reply(reply)
}

// request makes a request of a line, as a person would.
func (r *Run) request(ctx context.Context, ask *jobs.StreamAsk, numbers *streamNumbers) error {
	q := &rundir.Request{Do: ask.Do, All: ask.All, Jobs: ask.Jobs, By: dispatch.Asker(), At: time.Now()}
	if ask.Do == jobs.AskCancel {
		q.Why = "canceled by its submitter"
	}
	for _, n := range ask.Named {
		id := numbers.of(n)
		q.Jobs = append(q.Jobs, jobs.Range{First: id, Last: id})
	}
	q.Jobs, _ = jobs.ParseRanges(q.Jobs.String()) // in order
	body, err := q.Encode()
	if err != nil {
		return err
	}
	return r.inbox.Request(ctx, rundir.NewRequestName(q.At), body)
}

// streamNumbers maps the numbers that a jobs.Scanner gives to the jobs of an input to those
// that they have in the run: other jobs may be submitted meanwhile.
type streamNumbers struct {
	base jobs.ID // up to here they are the same
	ids  []jobs.ID
}

func (s *streamNumbers) of(n jobs.ID) jobs.ID {
	if n <= s.base {
		return n
	}
	return s.ids[n-s.base-1]
}

// number returns the function that SubmitNumbered calls for a batch.
func (s *streamNumbers) number(batch []*jobs.Spec) func(first jobs.ID) {
	before, options := len(s.ids), make([]*jobs.Options, len(batch))
	for i, spec := range batch {
		options[i] = spec.Options
	}
	return func(first jobs.ID) {
		s.ids = s.ids[:before]
		for i := range batch {
			s.ids = append(s.ids, first+jobs.ID(i))
		}
		for i, o := range options {
			own := *o
			own.After = slices.Clone(o.After)
			for k, n := range own.After {
				own.After[k] = s.of(n)
			}
			if batch[i].Options = o; !slices.Equal(own.After, o.After) {
				batch[i].Options = &own
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
