//go:build linux

package remote

import "errors"

// refuse gives an attempt back that could not be started here: infrastructure,
// not the job's fault.
func (s *slot) refuse(a *attempt, err error) {
	r := &report{kind: repRefused, attempt: a.id, why: err.Error()}
	if taken := (*takenError)(nil); errors.As(err, &taken) {
		r.gpus = taken.devices
	}
	s.giveBack(a, r)
	s.forgetShard() // what is mounted there may be another one by now
}

// giveBack lets go of an attempt that has not been started, leaving a tombstone, and says
// why. When it is not certain that nobody starts it or has, the helper is to find out.
func (s *slot) giveBack(a *attempt, r *report) {
	s.close(a)
	dir, err := s.shard(a.id.Job)
	if err == nil && entomb(dir, s.cfg.claimTemp(s.by), a.claim) {
		s.drop(a, r)
		return
	}
	s.release(a)
	if r.kind == repRefused {
		s.report(&report{kind: repTrouble, attempt: a.id, why: r.why})
	}
	s.report(&report{kind: repKnown, attempt: a.id})
}

// drop lets go of a taken spec, then says why.
func (s *slot) drop(a *attempt, r *report) {
	s.release(a)
	s.report(r)
}

// release gives a taken spec's file back to the helper for another spec, which is
// cheaper than a new one, unless it is a large one.
func (s *slot) release(a *attempt) {
	if a.large || renameat(s.taken, a.taken, s.free, a.id.String()) != nil {
		again(func() error { return unlinkat(s.taken, a.taken, 0) })
	}
}
