package cli

import (
	"context"
	"errors"
	"time"

	"dcs-tui/dispatch/control"
	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// stageShift: the upper bits of a picture's version are the number of its stage.
const stageShift = 40

// Look is runview.Source's. Between two stages it waits for the next, as long as it may.
func (f *follower) Look(ctx context.Context, ask runview.Ask) (*runview.Picture, error) {
	until := time.Now().Add(max(ask.Wait, time.Second))
	for {
		st := f.stage()
		if st.source == nil {
			if err := st.await(ctx, time.Until(until)); err != nil {
				return nil, err
			}
			continue
		}
		inner := ask
		if inner.After = 0; ask.After>>stageShift == st.number {
			inner.After = ask.After & (1<<stageShift - 1)
		}
		pic, err := with(ctx, st, func(ctx context.Context) (*runview.Picture, error) { return st.source.Look(ctx, inner) })
		switch {
		case err == nil:
			p := *pic
			p.Version = st.number<<stageShift | pic.Version&(1<<stageShift-1)
			return &p, nil
		case !f.passes(ctx, st, err):
			return nil, err
		}
	}
}

// await waits until st is over, which has nothing to show.
func (st *stage) await(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(max(0, d))
	defer t.Stop()
	select {
	case <-st.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return st.err
	}
}

// with makes a call that ends with the stage.
func with[T any](ctx context.Context, st *stage, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-st.ended:
			cancel()
		case <-done:
		}
	}()
	return call(ctx)
}

// passes says of a failed call whether it failed because its stage is over: it may
// be made again in the next one.
func (f *follower) passes(ctx context.Context, st *stage, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-st.ended:
		return f.ctx.Err() == nil
	default:
	}
	if st.live && (errors.Is(err, runview.ErrGone) || errors.Is(err, control.ErrDeaf)) {
		st.lose()
		select {
		case <-st.ended:
		case <-ctx.Done():
		}
		return ctx.Err() == nil && f.ctx.Err() == nil
	}
	return false
}

// askPatience is how long a call waits for a dispatcher that can be asked.
const askPatience = 5 * time.Second

// retry makes a call that changes nothing, again where it passes.
func retry[T any](ctx context.Context, f *follower, call func(context.Context, runview.Source) (T, error)) (T, error) {
	until := time.Now().Add(askPatience)
	for {
		st := f.stage()
		if st.source == nil {
			if err := st.await(ctx, time.Until(until)); err != nil {
				var none T
				return none, err
			}
			continue
		}
		is, err := with(ctx, st, func(ctx context.Context) (T, error) { return call(ctx, st.source) })
		if err == nil || !f.passes(ctx, st, err) {
			return is, err
		}
	}
}

// Match is runview.Source's.
func (f *follower) Match(ctx context.Context, filter string) (jobs.Ranges, runview.Weight, error) {
	type matched struct {
		which  jobs.Ranges
		weight runview.Weight
	}
	m, err := retry(ctx, f, func(ctx context.Context, s runview.Source) (m matched, err error) {
		m.which, m.weight, err = s.Match(ctx, filter)
		return m, err
	})
	return m.which, m.weight, err
}

// Weigh is runview.Source's.
func (f *follower) Weigh(ctx context.Context, which jobs.Ranges) (runview.Weight, error) {
	return retry(ctx, f, func(ctx context.Context, s runview.Source) (runview.Weight, error) { return s.Weigh(ctx, which) })
}

// Read is runview.Source's.
func (f *follower) Read(ctx context.Context, r runview.Read) (*runview.Piece, error) {
	return retry(ctx, f, func(ctx context.Context, s runview.Source) (*runview.Piece, error) { return s.Read(ctx, r) })
}

// leavePatience is how long an action waits for a dispatcher that is just ending.
const leavePatience = 40 * time.Second

// Do is runview.Source's. What was sent and not answered is not sent again: it may have
// been carried out.
func (f *follower) Do(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	until := time.Now().Add(askPatience)
	for end := time.Now().Add(leavePatience); ; {
		st := f.stage()
		switch {
		case st.source == nil:
			if err := st.await(ctx, time.Until(until)); err != nil {
				return nil, err
			}
			continue
		case !st.live:
			return st.source.Do(ctx, a) // begins the next stage: it does not end with this one
		}
		answer, err := st.source.Do(ctx, a)
		switch {
		case err == nil && a.Do == runview.CancelRun:
			f.cancelled.Store(true)
		case errors.Is(err, control.ErrLeaving) && time.Now().Before(end):
			st.lose()
			select {
			case <-st.ended:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			until = end
			continue
		case errors.Is(err, runview.ErrGone):
			st.lose()
			return nil, errors.New("the dispatcher has ended; it may have done it before")
		}
		return answer, err
	}
}

var _ runview.Source = (*follower)(nil)
