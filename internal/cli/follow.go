package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch/control"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// How often a follower looks whether somebody dispatches the run.
const (
	lookEvery  = time.Second            // at a run that nobody dispatches
	againAfter = 250 * time.Millisecond // after a dispatcher was lost
	tryEvery   = 2 * time.Second        // at one that cannot be reached
)

// reacher connects to the dispatcher that owner names.
type reacher func(ctx context.Context, owner *journal.Owner) (*control.Client, error)

// follower is the source of a screen that stays with a run whoever dispatches it: a
// dispatcher that lives, what it has left when it has ended or died, and the next
// one.
type follower struct {
	app   *app
	run   *rundir.Run
	reach reacher
	// A dispatcher that cannot be reached is left alone, and what the run directory shows
	// is shown: for commands, which do not wait. One on another machine is not asked at all.
	files bool
	far   farReader // of what only a host of such a run has; nil: it is not read

	ctx          context.Context
	cancel       context.CancelFunc
	watcher, all sync.WaitGroup

	silence   silence                           // the watcher's
	process   atomic.Pointer[dispatcherProcess] // the last that was started here; nil: none
	cancelled atomic.Bool                       // the whole run, from here

	mu  sync.Mutex
	now *stage
}

// stage is what a follower shows for a while.
type stage struct {
	number uint64
	source runview.Source // nil: there is nothing to show, because of err
	live   bool
	err    error
	owner  *journal.Owner // as it was; nil: there was none
	close  func()

	ended chan struct{} // closed when the next one begins
	lost  chan struct{} // closed when somebody has found that it is not live any more
	once  sync.Once
}

// newStage is a stage with nothing to show, because of err.
func newStage(err error, owner *journal.Owner) *stage {
	return &stage{err: err, owner: owner, ended: make(chan struct{}), lost: make(chan struct{})}
}

func (s *stage) lose() { s.once.Do(func() { close(s.lost) }) }

var errEnoughPast = errors.New("that is enough")

var errStarting = errors.New("the dispatcher has ended; its last words are being read")

// follow begins to follow a run for a screen.
func (a *app) follow(run *rundir.Run, reach reacher) *follower {
	return (&follower{app: a, run: run, reach: reach}).begin()
}

func (f *follower) begin() *follower {
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.enter(newStage(errStarting, nil))
	f.watcher.Go(f.watch)
	return f
}

// first waits until it is known how the run stands, and returns what keeps it from
// being shown.
func (f *follower) first() error {
	st := f.stage()
	if st.number == 0 {
		<-st.ended
		st = f.stage()
	}
	if st.source == nil {
		return st.err
	}
	return nil
}

// Close ends it; the dispatcher goes on.
func (f *follower) Close() {
	f.cancel()
	f.watcher.Wait()
	f.enter(newStage(runview.ErrGone, nil))
	f.all.Wait()
}

// enter makes st what is shown.
func (f *follower) enter(st *stage) {
	f.mu.Lock()
	old := f.now
	if old != nil {
		st.number = old.number + 1
	}
	f.now = st
	f.mu.Unlock()
	if old != nil {
		close(old.ended)
		if old.close != nil {
			old.close()
		}
	}
}

func (f *follower) stage() *stage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// watch moves from stage to stage until Close.
func (f *follower) watch() {
	for {
		f.enter(f.find(f.ctx))
		if f.ctx.Err() != nil {
			return
		}
		st := f.stage()
		var looking chan bool // nil: the file owner is not being looked at beside a live stage
		for stays := true; stays; {
			wait := lookEvery
			if st.source == nil {
				wait = tryEvery
			}
			t := time.NewTimer(wait)
			select {
			case <-f.ctx.Done():
				t.Stop()
				return
			case <-st.lost:
				stays = false
			case taken := <-looking:
				stays, looking = !taken, nil
			case <-t.C:
				switch {
				case !st.live:
					stays = st.source != nil && !f.taken(st)
				case st.owner.Stopped():
					stays = false
				case looking == nil: // the run directory may hang: the stage is live all the same
					looking = make(chan bool, 1)
					go func(answer chan<- bool) { answer <- f.overtaken(st) }(looking)
				}
			}
			t.Stop()
		}
		if st.live {
			f.enter(newStage(errStarting, st.owner))
			select { // its process may need a moment to end
			case <-f.ctx.Done():
				return
			case <-time.After(againAfter):
			}
		}
	}
}

// taken says whether somebody dispatches the run now, who did not when st was made.
func (f *follower) taken(st *stage) bool {
	owner, err := journal.ReadOwner(f.run)
	if err != nil || owner == nil {
		return false
	}
	if st.owner == nil || owner.Token != st.owner.Token {
		return true
	}
	return owner.Beat != st.owner.Beat && owner.Life() != journal.Dead // it was only silent
}

// overtaken says that another dispatcher has the run than that of st, which is live, and
// that there is something of it to show.
func (f *follower) overtaken(st *stage) bool {
	owner, err := journal.ReadOwner(f.run)
	return err == nil && owner != nil && owner.Token != st.owner.Token && (owner.Address != "" || owner.Life() == journal.Dead)
}

// find makes the stage of how the run stands now.
func (f *follower) find(ctx context.Context) *stage {
	owner, err := journal.ReadOwner(f.run)
	if err != nil {
		return newStage(err, nil)
	}
	if owner == nil || owner.Life() == journal.Dead || f.silence.dead(owner) {
		return f.past(owner, "")
	}
	st := newStage(nil, owner)
	switch {
	case f.files && (owner.Address == "" || owner.Life() != journal.Alive):
		return f.past(owner, owner.Host)
	case owner.Address == "" && time.Since(owner.Since) < time.Minute:
		st.err = errors.New("the dispatcher is just beginning")
		return st
	case owner.Address == "":
		st.err = fmt.Errorf("%s has no control socket", owner)
		return st
	case owner.Stopped():
		st.err = fmt.Errorf("%s does not answer: %s", owner, standing.StoppedText(owner))
		return st
	}
	client, err := f.reach(ctx, owner)
	if err != nil {
		if f.files {
			var p *exit.Problem
			if errors.As(err, &p) { // what we call it has its name, too
				err = cmp.Or(errors.Unwrap(p.Err), p.Err)
			}
			f.app.warn("%s cannot be asked, so this is what the run directory shows: %v", console.CleanLine(owner.String()), err)
			return f.past(owner, owner.Host)
		}
		st.err = err
		return st
	}
	st.source, st.live, st.close = client, true, func() { client.Close() }
	f.all.Go(func() {
		select {
		case <-client.Done():
			st.lose()
		case <-st.ended:
		}
	})
	return st
}

// silence watches the sign of life of a dispatcher on another machine, whose process
// cannot be looked at. Clocks of two machines are never compared.
type silence struct {
	token string
	beat  int64
	since time.Time
}

func (s *silence) dead(o *journal.Owner) bool {
	if o.Life() == journal.Alive || o.Token != s.token || o.Beat != s.beat {
		s.token, s.beat, s.since = o.Token, o.Beat, time.Now()
		return false
	}
	return time.Since(s.since) >= journal.StaleAfter
}
