package mirror

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

const (
	// silentAfter is how long a mirror may be silent before the dispatcher asks the hosts whether
	// it may continue alone.
	silentAfter = 15 * time.Second
	// confirmTimeout bounds one wait for the mirror. It is less than commit.HungAfter, so that the
	// commit loop learns the reason.
	confirmTimeout  = 4 * time.Second
	reachDelay      = time.Second     // before the first attempt to reach a lost mirror
	retryDelay      = 5 * time.Second // between two attempts
	restartInterval = time.Minute     // between two starts of a standby on a mirror
	removeTimeout   = 5 * time.Second // for the removal of a mirror at the end of the dispatcher
)

// Journal is the part of the dispatcher's journal that a Primary reads.
type Journal interface {
	Epoch() int
	Written() int64
	Fenced() (by int, err error)
}

// Options configure a Primary.
type Options struct {
	Run     *rundir.Run
	Journal Journal
	Polls   Polls
	Env     []jobs.EnvVar        // variables of the standby whose values are not in the run directory
	Say     func(text string)    // receives messages; must not block
	Warn    func(text string)    // the same for warnings
	Show    func(standby string) // receives where a standby watches; must not block
}

// Primary keeps the mirror of a dispatcher. Its methods are safe for concurrent use.
type Primary struct {
	options Options
	ctx     context.Context // ends with Close
	end     context.CancelFunc
	wake    chan struct{} // holds a signal when the mirror lacks something

	mu             sync.Mutex
	changed        chan struct{} // closed at each change of the fields below
	active         bool          // there is a mirror, or one is being made
	isAwaited      bool          // launches and results wait for it
	isLeaving      bool          // it is to be removed
	refused        error         // why this run can have no mirror; nil: it can
	requested      int64         // number of the newest request
	requestedCheck int64         // number of the newest request that is for all files
	confirmed      int64         // everything up to this request is in the mirror
	fencedBy       int           // epoch that has taken the mirror over
	silentErr      error         // why the mirror does not answer; nil: it does
	host           string        // its host
}

// New returns a Primary without a mirror.
func New(o Options) *Primary {
	p := &Primary{options: o, wake: make(chan struct{}, 1), changed: make(chan struct{})}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// update changes fields and wakes those who wait for a change.
func (p *Primary) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// IsActive reports whether there is a mirror or one is being made.
func (p *Primary) IsActive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active
}

// IsTakenOver reports whether the standby has taken the run over from the mirror, or may do so.
func (p *Primary) IsTakenOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fencedBy > 0 || p.isAwaited
}

// Refuse removes the mirror, because this run can have none any more. The run continues when the
// mirror is removed, or when enough hosts agree. It does not block.
func (p *Primary) Refuse(why error) {
	p.update(func() { p.refused = why })
	p.signal()
}

// signal wakes the goroutine that keeps the mirror.
func (p *Primary) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Confirm returns nil when the mirror has everything that was durable before the call, or when
// nothing needs to wait for a mirror. It implements journal.Journal.Confirm.
func (p *Primary) Confirm() error { return p.confirm(false) }

// Check is Confirm for all files. It also proves that nobody has taken the mirror over since the
// call.
func (p *Primary) Check() (fencedBy int, err error) {
	err = p.confirm(true)
	if by := fencedEpoch(err); by > 0 {
		return by, nil
	}
	return 0, err
}

// fencedEpoch returns the epoch that has fenced the dispatcher off, if that is the error; 0: it is
// not.
func fencedEpoch(err error) int {
	var fenced interface{ FencedBy() int }
	if errors.As(err, &fenced) {
		return fenced.FencedBy()
	}
	return 0
}

func (p *Primary) confirm(all bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.active {
		return p.fenceError()
	}
	p.requested++
	n := p.requested
	if all {
		p.requestedCheck = n
	}
	p.signal()
	switch {
	case p.await(confirmTimeout, func() bool { return !p.isAwaited || p.fencedBy > 0 || p.confirmed >= n }):
		return p.fenceError()
	case p.silentErr != nil:
		return fmt.Errorf("the mirror of the run directory on %s does not answer: %w", p.host, p.silentErr)
	}
	return fmt.Errorf("the mirror of the run directory on %s has not answered for %s", p.host, confirmTimeout)
}

// await waits until ready reports true, at most for limit, and returns what it reported last. The
// caller holds mu, which is not held while nothing changes.
func (p *Primary) await(limit time.Duration, ready func() bool) bool {
	late := time.After(limit)
	for over := false; !ready(); {
		if over {
			return false
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			over = true
		}
		p.mu.Lock()
	}
	return true
}

// fenceError returns the error of a dispatcher whose mirror was taken over. The caller holds mu.
func (p *Primary) fenceError() error {
	if p.fencedBy > 0 {
		return journal.Fenced(p.fencedBy, p.options.Journal.Epoch())
	}
	return nil
}

var errUndecided = errors.New("a standby may have taken the run over from an earlier mirror")

// generation is one mirror in its life.
type generation struct {
	*Primary
	description      Description
	host             *hosts.Host
	session          *session
	copier           *copier
	mayBeWatched     bool      // a standby may watch the mirror
	answeredAt       time.Time // last answer of the mirror
	standbyStartedAt time.Time
	watched          bool // a standby watches
	asking           bool // the standby has asked for votes
	lossReported     bool // the loss of the mirror was reported
	// noStandby is why the last start of a standby has failed.
	noStandby string
}

// Protect makes a mirror on host h, whose receiver is w, and keeps it. It returns when the run is
// not protected by this mirror any more, with the reason if none was begun.
func (p *Primary) Protect(h *hosts.Host, w hosts.Worker, generationID string) error {
	// The state of an earlier generation may only be replaced when it is decided.
	earlier, err := Read(p.options.Run)
	if err != nil || earlier != nil && !earlier.Mirror && earlier.State != Alone {
		w.Close()
		return errors.Join(err, errUndecided)
	}
	name, _ := os.Hostname()
	g := &generation{
		Primary: p,
		host:    h,
		session: &session{worker: w},
		copier:  newCopier(p.options.Run, p.options.Journal),
		description: Description{
			V:          jobs.FormatMirror.Version,
			Generation: generationID,
			Host:       h.Name,
			Dir:        w.Hello().Dir,
			From: name + ":" +
				p.options.Run.Dir,
			Continued: earlier != nil && (earlier.Mirror || earlier.Continued),
		},
	}
	defer func() { g.session.worker.Close() }()
	p.mu.Lock()
	refused := p.refused
	p.mu.Unlock()
	if refused != nil {
		return refused
	}
	p.update(func() { p.active, p.host, p.silentErr = true, h.Name, nil })
	defer p.update(func() { p.active, p.isAwaited = false, false })
	p.options.Show(h.Name + " (copying the run directory)")
	if g.description.Voters, err = p.options.Polls.enlist(p.ctx, generationID, p.options.Journal.Epoch()); err == nil {
		err = g.push(true)
	}
	if p.ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	err = g.recordState(On)
	if errors.Is(err, journal.ErrFenced) {
		return err
	} else if err != nil {
		return errors.Join(err, g.recordState(Alone)) // it may be there nevertheless
	}
	p.update(func() { p.isAwaited = true })
	g.answeredAt = time.Now()
	for {
		err := g.serve()
		if fenced, ok := errors.AsType[*takenOverError](err); ok {
			g.recordFence(fenced.by)
			return nil
		}
		switch {
		case p.ctx.Err() != nil:
			return nil
		case err == nil: // the mirror is to be removed
			if _, err = g.session.store(p.ctx, hosts.Store{Remove: true}); err == nil {
				return g.goAlone(g.removalText())
			}
		}
		if over, err := g.reconnectOrGoAlone(err); over {
			return err
		}
	}
}

// NewGeneration returns the id of a new generation of mirrors.
func NewGeneration() string { return rand.Text() }

// recordFence records that the standby has taken the run over.
func (g *generation) recordFence(by int) { g.update(func() { g.fencedBy = by }) }

// push makes everything that was durable before the call durable in the mirror.
func (g *generation) push(all bool) error {
	return g.copier.copy(all, func(pieces []hosts.StorePiece) error {
		_, err := g.store(hosts.Store{Pieces: pieces})
		return err
	})
}

func (g *generation) store(m hosts.Store) (*hosts.Stored, error) {
	a, err := g.session.store(g.ctx, m)
	if err == nil {
		g.answeredAt = time.Now()
		g.asking = a.Asking
	}
	return a, err
}

// serve keeps the mirror up to date. It returns nil if the mirror is to be removed.
func (g *generation) serve() error {
	if !g.mayBeWatched {
		// What was released before anything waited for the mirror must be there when a standby may
		// take it over.
		if err := g.push(true); err != nil {
			return err
		}
		if err := g.startStandby(); err != nil {
			return err
		}
	}
	for {
		g.mu.Lock()
		n, all, leaves := g.requested, g.requestedCheck > g.confirmed, g.isLeaving || g.refused != nil
		g.mu.Unlock()
		if err := g.push(all); err != nil {
			return err
		}
		if all {
			a, err := g.store(hosts.Store{Check: true})
			if err != nil {
				return err
			}
			g.recordWatched(a.Watched)
			if !a.Watched && time.Since(g.standbyStartedAt) >= restartInterval {
				if err := g.startStandby(); err != nil {
					return err
				}
			}
		}
		g.lossReported = false
		g.update(func() { g.confirmed, g.silentErr = max(g.confirmed, n), nil })
		if leaves || g.asking {
			return nil
		}
		select {
		case <-g.ctx.Done():
			return context.Cause(g.ctx)
		case <-g.wake:
		}
	}
}

// startStandby starts the standby.
func (g *generation) startStandby() error {
	g.standbyStartedAt = time.Now()
	a, err := g.store(hosts.Store{Describe: g.description.with(On)})
	if err != nil {
		return err
	}
	g.mayBeWatched = true
	g.recordWatched(a.Watched)
	// The mirror is of use nevertheless: a person can start a standby on it.
	if a.NoStandby != "" && a.NoStandby != g.noStandby {
		g.options.Show("")
		g.options.Warn(fmt.Sprintf("no standby dispatcher on %s, which has a mirror of the run directory: %s",
			g.host.Name, a.NoStandby))
	}
	g.noStandby = a.NoStandby
	return nil
}

// recordWatched records whether a standby watches.
func (g *generation) recordWatched(watched bool) {
	switch {
	case watched == g.watched:
	case watched:
		g.options.Show(g.host.Name + " (mirror)")
		g.options.Say(fmt.Sprintf("a standby dispatcher watches on %s, with a mirror of the run directory: "+
			"launches and results wait for the mirror", g.host.Name))
	default:
		g.options.Show("")
		g.options.Warn("no standby dispatcher watches any more")
	}
	g.watched = watched
}

// removalText describes the removal of a mirror while the run continues.
func (g *generation) removalText() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.isLeaving:
		return ""
	case g.refused != nil:
		return fmt.Sprintf("the mirror of the run directory on %s is removed, "+
			"and the run is not protected any more: %v", g.host.Name, g.refused)
	}
	return fmt.Sprintf("the mirror of the run directory on %s is replaced by a new one, "+
		"because it and this dispatcher had lost contact: until then the run is not protected", g.host.Name)
}

// reconnectOrGoAlone reaches the mirror again after an error, or has the hosts decide that the
// run continues without it. over is true when the run does not depend on the mirror any more.
func (g *generation) reconnectOrGoAlone(err error) (over bool, _ error) {
	g.session.worker.Close()
	if !g.lossReported {
		g.lossReported = true
		g.options.Warn(fmt.Sprintf("the mirror of the run directory on %s does not answer (%v): "+
			"nothing is launched until it does, or enough hosts agree to continue without it", g.host.Name, err))
	}
	for delay, said := reachDelay, false; ; delay = retryDelay {
		g.mu.Lock()
		leaves, refused := g.isLeaving, g.refused != nil
		g.mu.Unlock()
		if leaves {
			g.options.Warn(fmt.Sprintf("the mirror of the run directory on %s may not be removed, "+
				"so its standby may continue the run: %v", g.host.Name, err))
			return true, nil // the next dispatcher finds out what became of the mirror
		}
		g.update(func() { g.silentErr = err })
		select {
		case <-g.ctx.Done():
			return true, nil
		case <-time.After(delay):
		}
		silent := time.Since(g.answeredAt) >= silentAfter
		if silent || g.asking || refused {
			// Votes that were cast are lost for both sides, so another generation is needed.
			if err = g.options.Polls.retireMirror(g.ctx, g.host, &g.description,
				g.options.Journal.Epoch()); err == nil {
				return true, g.goAlone(g.removalText())
			}
		} else {
			ctx, cancel := context.WithTimeout(g.ctx, reachTimeout)
			var s *session
			s, err = g.options.Polls.reach(ctx, g.host, &g.description, g.options.Journal.Epoch(), g.options.Env)
			cancel()
			if err == nil {
				g.session = s
				return false, nil
			}
		}
		if fenced, ok := errors.AsType[*takenOverError](err); ok {
			g.recordFence(fenced.by)
			return true, nil
		}
		if !silent {
			continue
		}
		switch won, missing := g.options.Polls.decide(g.ctx, &g.description, VoteAlone); won {
		case VoteAlone:
			return true, g.goAlone(fmt.Sprintf("the run continues without the mirror on %s, which does not answer "+
				"(%v): it is not protected until there is another mirror", g.host.Name, err))
		case VoteTakeover:
			g.recordFence(g.options.Journal.Epoch() + 1)
			return true, nil
		default:
			err = fmt.Errorf("%w; %w", err,
				undecidedText(&g.description, missing, VoteAlone, "agree to continue without it"))
			if !said {
				said = true
				g.options.Warn("nothing is launched: " + err.Error())
			}
		}
	}
}

// recordState makes state the durable state of the run directory, unless a later dispatcher has the
// directory: that one may have a mirror of its own.
func (g *generation) recordState(state string) error {
	switch by, err := g.options.Journal.Fenced(); {
	case err != nil:
		return err
	case by > 0:
		return journal.Fenced(by, g.options.Journal.Epoch())
	}
	return g.description.write(g.options.Run.Disk, g.options.Run.Dir, state)
}

// goAlone makes the dispatcher independent of the mirror, and says so.
func (g *generation) goAlone(text string) error {
	for {
		err := g.recordState(Alone)
		if err == nil {
			break
		}
		if by := fencedEpoch(err); by > 0 {
			g.recordFence(by)
			return nil
		}
		g.update(func() { g.silentErr = err })
		select {
		case <-g.ctx.Done():
			return err
		case <-time.After(retryDelay):
		}
	}
	g.update(func() { g.isAwaited = false })
	g.options.Show("")
	if text != "" {
		g.options.Warn(text)
	}
	return nil
}

// Close ends the Primary. If the dispatcher has closed the run in an orderly way, the mirror is
// removed, because nobody needs to take the run over.
func (p *Primary) Close(orderly bool) {
	p.mu.Lock()
	waits := p.isAwaited
	p.mu.Unlock()
	if waits {
		switch err := p.confirm(true); {
		case errors.Is(err, journal.ErrFenced):
		case err != nil:
			p.options.Warn(fmt.Sprintf("the mirror of the run directory cannot be removed, "+
				"so its standby may continue the run: %v", err))
		case orderly:
			p.update(func() { p.isLeaving = true })
			p.signal()
			p.awaitInactive()
		}
	}
	p.end()
	p.awaitInactive()
}

// awaitInactive waits until there is no mirror, at most removeTimeout.
func (p *Primary) awaitInactive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.await(removeTimeout, func() bool { return !p.active })
}
