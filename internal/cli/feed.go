package cli

import (
	"context"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
)

// submitBlock is how many jobs are handed over at once: enough to be cheap, few
// enough that the first starts while a million others are still on their way.
const submitBlock = 10_000

// submitWaiting submits the jobs that are stored and not yet part of the run, which
// are its last.
func (s *session) submitWaiting(ctx context.Context) error {
	s.unread = true
	if s.submitStored(ctx) {
		s.awaitFigures(ctx)
		s.unread = !submitAll(ctx, s.d, nil, true, s.warnStore)
	}
	return nil
}

// submitStored submits the stored jobs and has the waiting requests carried out; false
// when the run is over before that.
func (s *session) submitStored(ctx context.Context) bool {
	if names, _, _ := s.run.RequestNames(); len(names) > 0 && !s.endsOnly {
		// A requeue that an earlier dispatcher carried out in part, when it died, is carried
		// out anew: nothing of it may have run meanwhile, or that would run once more.
		s.d.Do(sched.Hold{By: sched.HoldRequests, On: true})
		defer s.d.Do(sched.Hold{By: sched.HoldRequests})
	}
	if len(s.waiting) > 0 && !submitAll(ctx, s.d, s.waiting, false, s.warnStore) {
		return false
	}
	s.inbox.TakeWaiting()
	return true
}

// countWaiting shows in the table, which is ours again, what an early end kept
// from being submitted: to a person those jobs are queued.
func (s *session) countWaiting() {
	for len(s.waiting) > 0 && int(s.waiting[0].ID) <= len(s.table.Jobs) {
		s.waiting = s.waiting[1:]
	}
	s.table.Specs = append(s.table.Specs[:len(s.table.Jobs)], s.waiting...)
	standing.AcceptRest(s.table)
}

// submitAll hands jobs over in blocks. What cannot be stored (a full disk) is
// tried again until it can: jobs are not lost because of it, and no more are read
// meanwhile. warn is told once, and of nil when it goes on. It ends early when ctx does.
func submitAll(ctx context.Context, d *dispatch.Dispatcher, specs []*jobs.Spec, last bool, warn func(error)) bool {
	for {
		n := min(len(specs), submitBlock)
		if !submitBlockOf(ctx, d, specs[:n], last && n == len(specs), warn) {
			return false
		}
		if specs = specs[n:]; len(specs) == 0 {
			return true
		}
	}
}

func submitBlockOf(ctx context.Context, d *dispatch.Dispatcher, specs []*jobs.Spec, last bool, warn func(error)) bool {
	for said := false; ; {
		err := d.Submit(specs, last)
		if err == nil {
			if said {
				warn(nil)
			}
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-d.Finished():
			return false
		default:
		}
		if !said {
			said = true
			warn(err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-d.Finished():
			return false
		case <-time.After(retryEvery):
		}
	}
}
