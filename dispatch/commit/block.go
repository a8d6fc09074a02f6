package commit

import (
	"fmt"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// While the journal cannot be written, or the run directory is missing, nothing is launched and no
// end of the run is released. Commands that start nothing continue.

// SetObstacle sets or clears (nil) another reason to launch nothing. Only the first reason and the
// end of all reasons are reported.
func (r *Loop) SetObstacle(now sched.Time, err error) {
	if r.isFenced {
		return
	}
	was := r.isBlocked()
	switch {
	case err != nil && r.obstacle == nil:
		r.report(now, fmt.Sprintf("nothing is launched: %v", err))
	case err == nil && r.obstacle != nil && r.failure == nil && !r.isHung:
		r.report(now, "the run directory is there again; the run continues")
	}
	r.obstacle = err
	r.reportBlocked(now, was)
}

func (r *Loop) isBlocked() bool { return r.failure != nil || r.isHung || r.obstacle != nil }

// reportBlocked tells the core when isBlocked has changed; was is its previous value. While
// blocked, the core launches nothing. Jobs that it had decided to launch return to the queue,
// because their launches were never sent.
func (r *Loop) reportBlocked(now sched.Time, was bool) {
	switch is := r.isBlocked(); {
	case is && !was:
		r.step(now, sched.Hold{By: sched.HoldJournal, On: true})
		waiting, held := r.waitingCommands, r.heldCommands
		r.waitingCommands, r.heldCommands = nil, nil
		r.waitingCommands = r.takeBack(now, waiting)
		held = r.takeBack(now, held)
		r.heldCommands = append(held, r.heldCommands...)
	case was && !is:
		r.step(now, sched.Hold{By: sched.HoldJournal})
	}
}

// takeBack withdraws the launches among these commands, which have not been released yet, and
// returns the other commands. The core's resulting commands are added to heldCommands.
func (r *Loop) takeBack(now sched.Time, commands []sched.Command) []sched.Command {
	var kept []sched.Command
	for _, o := range commands {
		launch, ok := o.(sched.Launch)
		if !ok {
			kept = append(kept, o)
			continue
		}
		ids := make([]jobs.AttemptID, len(launch.Jobs))
		for k, p := range launch.Jobs {
			ids[k] = p.Attempt
		}
		r.step(now, sched.AttemptsWithdrawn{Host: launch.Host, Msg: &hosts.Withdrawn{
			Attempts: ids, Why: "the journal could not be written before it was sent"}})
	}
	return kept
}

// releaseHarmless releases the commands that neither start nor end anything. A launch and the end
// of the run wait until their records are durable. A stop by a user asserts nothing about jobs, so
// it does not wait for the journal.
func (r *Loop) releaseHarmless() Out {
	r.released = r.released[:0]
	for _, list := range []*[]sched.Command{&r.waitingCommands, &r.heldCommands} {
		kept := (*list)[:0]
		for _, o := range *list {
			switch o.(type) {
			case sched.Finish:
				why, stopped := r.core.Stopped()
				if !stopped {
					kept = append(kept, o)
					continue
				}
				// The stop also replaces an end that had to be recorded first. The next dispatcher
				// reaches that end again.
				o, r.endRecord = sched.Finish{How: sched.Stopped, Why: why}, nil
			case sched.Launch, sched.CreateInstance, sched.TerminateInstance:
				kept = append(kept, o)
				continue
			}
			r.released = append(r.released, o)
		}
		clear((*list)[len(kept):])
		*list = kept
	}
	return Out{Commands: r.released}
}

// report reports text at once, and also adds it to the journal, which may become writable only
// later.
func (r *Loop) report(now sched.Time, text string) {
	r.RecordEvent(jobs.Record{Kind: jobs.KindEvent, At: now.Wall, Reason: text})
	if r.Notify != nil {
		r.Notify(text)
	}
}

// Problem returns the reason why nothing is launched, or nil if there is none.
func (r *Loop) Problem(now sched.Time) error {
	switch {
	case r.failure != nil:
		return fmt.Errorf("the journal cannot be written: %w", r.failure)
	case r.isHung:
		return fmt.Errorf("the run directory has not answered for %.0f s", (now.Mono - r.flushedAt).Seconds())
	}
	return r.obstacle
}
