package journal

import (
	"errors"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// Reader follows a run from its directory: the durable records, the owner, and live.json. It writes
// nothing. It is not safe for concurrent use.
type Reader struct {
	Run   *rundir.Run
	Owner *Owner // who dispatches the run, or did last; nil: nobody ever did
	// What the dispatcher published last; nil: nothing, or nobody dispatches the run.
	Live     *live.State
	Liveness Liveness // whether the process of Owner is alive
	// Silent reports whether the owner is on another machine and has sent no heartbeat for
	// StaleAfter.
	Silent bool

	*Follower
	sign sign
}

// NewReader returns a Reader of the run whose journal f follows.
func NewReader(run *rundir.Run, f *Follower) *Reader { return &Reader{Run: run, Follower: f} }

// Poll reads what has been added since the last Poll. see and restarted are those of Follower.Poll.
// The Reader may be used after an error.
func (r *Reader) Poll(see func(epoch int, rec *jobs.Record)) (restarted bool, err error) {
	watchErr := r.Watch(true)
	restarted, err = r.Follow(live.Durable{}, see)
	return restarted, errors.Join(err, watchErr)
}

// Watch reads the owner file and, if state is set, live.json.
func (r *Reader) Watch(state bool) error {
	owner, err := ReadOwner(r.Run)
	// The file may be torn for a moment.
	for try := 0; err != nil && r.Owner == nil && try < 3; try++ {
		time.Sleep(20 * time.Millisecond)
		owner, err = ReadOwner(r.Run)
	}
	if err == nil {
		r.Owner = owner
	}
	r.Liveness = r.Owner.Liveness()
	r.sign.note(r.Owner, time.Now())
	r.Silent = r.Liveness == Unsure && r.IsHung()
	if !state {
		return err
	}
	s, stateErr := live.Read(r.Run)
	if stateErr == nil {
		r.Live = s
	}
	return errors.Join(err, stateErr)
}

// IsDispatched reports whether somebody dispatches the run, as far as this machine can tell.
func (r *Reader) IsDispatched() bool {
	return r.Owner != nil && r.Liveness != Dead && !r.Silent
}

// SilentOwner returns the owner whose silence this Reader has observed (see Silent), for TakeOptions, or nil.
func (r *Reader) SilentOwner() *Owner {
	if !r.Silent {
		return nil
	}
	return r.Owner
}

// SinceHeartbeat returns the time since the owner's last heartbeat. It is 0 if the owner is alive
// on this machine.
func (r *Reader) SinceHeartbeat() time.Duration {
	if r.Liveness == Alive {
		return 0
	}
	return time.Since(r.sign.at)
}

// IsHung reports whether this Reader has seen no heartbeat of the owner, on whatever machine it is,
// for StaleAfter. The owner's process may exist.
func (r *Reader) IsHung() bool { return r.Owner != nil && time.Since(r.sign.at) >= StaleAfter }

// State returns what the current dispatcher published last. It returns nil if nothing was published
// or nobody dispatches the run.
func (r *Reader) State() *live.State {
	if s := r.Live; s != nil && r.IsDispatched() && s.Epoch == r.Owner.Epoch && s.Token == r.Owner.Token {
		return s
	}
	return nil
}

// Follow polls the journal. pushed is a durable position that the dispatcher has pushed; the zero
// value means none.
func (r *Reader) Follow(pushed live.Durable, see func(epoch int, rec *jobs.Record)) (restarted bool, err error) {
	limit := LimitOf(r.Owner, r.Liveness, r.Live)
	if pushed.Epoch > limit.Epoch || pushed.Epoch == limit.Epoch && pushed.Bytes > limit.Bytes {
		limit.Durable = pushed
	}
	limit.End = limit.End || r.Silent
	return r.Follower.Poll(limit, see)
}

// Published reports whether other readers find all records that Follow has shown. A pushed position
// may be ahead of live.json.
func (r *Reader) Published() bool {
	limit, n := LimitOf(r.Owner, r.Liveness, r.Live), len(r.files)
	if limit.End || r.Silent || n == 0 {
		return true
	}
	last := r.files[n-1]
	return last.epoch < limit.Epoch || last.epoch == limit.Epoch && last.length <= limit.Bytes
}

// sign is the newest heartbeat of a dispatcher. The clocks of two machines are never compared.
type sign struct {
	token     string
	heartbeat int64
	at        time.Time // by our clock
}

func (s *sign) note(o *Owner, now time.Time) {
	switch {
	case o == nil:
		s.at = now
	case o.Token != s.token || o.Heartbeat != s.heartbeat:
		s.token, s.heartbeat, s.at = o.Token, o.Heartbeat, now
	}
}
