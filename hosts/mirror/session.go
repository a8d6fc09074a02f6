package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// answerTimeout bounds the wait for the answer of a receiver.
const answerTimeout = 15 * time.Second

// session is a link to the receiver of a mirror. It is not safe for concurrent use.
type session struct {
	worker hosts.Worker
	lastID int64 // id of the last Store
}

// takenOverError reports that the standby has taken over the mirror.
type takenOverError struct{ by int }

func (e *takenOverError) Error() string {
	return fmt.Sprintf("the standby dispatcher there has taken the run over (epoch %d)", e.by)
}

// store sends m and waits for the answer.
func (s *session) store(ctx context.Context, m hosts.Store) (*hosts.Stored, error) {
	s.lastID++
	m.ID = s.lastID
	if err := s.worker.Send(&m); err != nil {
		return nil, err
	}
	late := time.After(answerTimeout)
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late:
			return nil, fmt.Errorf("no answer for %s", answerTimeout)
		case report, ok := <-s.worker.Reports():
			a, stored := report.(*hosts.Stored)
			switch {
			case !ok:
				if err := s.worker.Err(); err != nil {
					return nil, withoutHost(err)
				}
				return nil, errors.New("its receiver has ended")
			case !stored || a.ID != m.ID:
			case a.FencedBy > 0:
				return nil, &takenOverError{a.FencedBy}
			case a.Why != "":
				return nil, errors.New(a.Why)
			default:
				return a, nil
			}
		}
	}
}

// reach connects to the receiver of the existing mirror d. env is the environment of a standby that
// it starts.
func (p *Polls) reach(ctx context.Context, h *hosts.Host, d *Description, epoch int,
	env []jobs.EnvVar) (*session, error) {
	if h == nil {
		return nil, errors.New("it is not in the inventory")
	}
	open := p.Open
	open.Host, open.WorkDir, open.Standby, open.Env = h.Name, h.WorkDir, true, env
	open.Mirror = &hosts.OpenMirror{Generation: d.Generation, Epoch: epoch, Exists: true}
	w, err := p.Connect(ctx, h, &open)
	if err != nil {
		return nil, withoutHost(err)
	}
	if !w.Hello().Mirrors {
		w.Close()
		return nil, errors.New("it does not receive the mirror")
	}
	return &session{worker: w}, nil
}
