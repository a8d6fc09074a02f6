package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs/rundir"
)

// ErrOutdated is the error of a mirror that can never be taken over.
var ErrOutdated = errors.New("this mirror of the run directory cannot be taken over any more: " +
	"the run was continued without it, or its hosts decide about a later mirror")

// Claim makes the caller, which runs on the host of a mirror, the only one who may continue the
// run. It needs the votes of more than half of the voters, and may be repeated after any error but
// ErrOutdated.
func Claim(ctx context.Context, run *rundir.Run, p *Polls, lock func(dir string) (func(), error)) error {
	d, err := advanceState(run, lock, On, Asking)
	if err != nil || d.State == Taken {
		return err
	}
	switch won, missing := p.decide(ctx, d, VoteTakeover); {
	case won == VoteAlone, won == "" && len(missing) == 0:
		return ErrOutdated
	case won != VoteTakeover:
		return undecidedText(d, missing, VoteTakeover, "let this standby take the run over")
	}
	_, err = advanceState(run, lock, Asking, Taken)
	return err
}

// advanceState changes the state of a mirror, unless it has gone further.
func advanceState(run *rundir.Run, lock func(dir string) (func(), error), from, to string) (*Description, error) {
	unlock, err := lock(run.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d, err := Read(run)
	switch {
	case err != nil:
		return nil, err
	case d == nil, !d.Mirror, d.State == Removed: // it was removed, or was taken over and has a mirror of its own
		return nil, ErrOutdated
	case d.State == Copying:
		return nil, errors.New("this mirror of the run directory is not complete")
	case d.State == from:
		err = d.write(run.Disk, run.Dir, to)
	}
	return d, err
}

// undecidedText describes votes that were not enough.
func undecidedText(d *Description, missing []string, choice, what string) error {
	answers := "the others have voted against it"
	if len(missing) > 0 {
		answers = "no answer from " + strings.Join(missing, ", ")
	}
	return fmt.Errorf("%d of %d voters must %s; %s", votesNeeded(len(d.Voters), choice), len(d.Voters), what, answers)
}

// reachTimeout bounds the time to connect to the host of a mirror.
const reachTimeout = 10 * time.Second

// Recover makes sure that the standby of an earlier dispatcher's mirror will not take the run over.
// The dispatcher of the run, of that epoch, calls it before it contacts any host. find returns a
// host by its name, or nil.
func Recover(ctx context.Context, run *rundir.Run, epoch int, p *Polls, find func(name string) *hosts.Host) error {
	d, err := Read(run)
	if err != nil || d == nil || d.Mirror || d.State == Alone {
		return err
	}
	err = p.retireMirror(ctx, find(d.Host), d, epoch)
	if _, ok := errors.AsType[*takenOverError](err); ok {
		return takenOver(d)
	}
	if err != nil {
		switch won, missing := p.decide(ctx, d, VoteAlone); won {
		case VoteTakeover:
			return takenOver(d)
		case VoteAlone:
		default:
			return fmt.Errorf("the standby on %s may have taken the run over, and cannot be asked (%w): %w", d.Host,
				err,
				undecidedText(d, missing, VoteAlone, "agree to continue without it"))
		}
	}
	return d.write(run.Disk, run.Dir, Alone)
}

func takenOver(d *Description) error {
	return fmt.Errorf("the standby on %s has taken the run over: continue it there, in %s", d.Host, d.Dir)
}

// retireMirror removes a mirror, unless its standby has taken the run over.
func (p *Polls) retireMirror(ctx context.Context, h *hosts.Host, d *Description, epoch int) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	s, err := p.reach(ctx, h, d, epoch, nil)
	if err != nil {
		return err
	}
	defer s.worker.Close()
	_, err = s.store(ctx, hosts.Store{Remove: true})
	return err
}
