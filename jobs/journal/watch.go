package journal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dcs-tui/jobs/rundir"
)

// OwnedError refuses a run that somebody else dispatches.
type OwnedError struct {
	Run   string
	Ref   string // what to type as RUN
	Owner *Owner // nil when it is only about to become the owner
}

// Error names the owner and says what to do.
func (e *OwnedError) Error() string {
	who := "another dcs-tui that is just starting"
	where := "there"
	if e.Owner != nil {
		who, where = e.Owner.String(), "on "+e.Owner.Host
	}
	return fmt.Sprintf("the run %s is dispatched by %s: `dcs-tui status %s` shows its status; end that dcs-tui %s, or take the run over with --force if you know that it hangs",
		e.Run, who, e.Ref, where)
}

// watchEvery is how often an owner on another machine is looked at.
const watchEvery = time.Second

// admit decides whether the run may be taken from its present owner, and waits
// as long as that takes. known is the newest epoch that has a file.
func admit(ctx context.Context, r *rundir.Run, known int, opt TakeOptions) error {
	first, err := look(r)
	if err != nil {
		return err
	}
	if opt.Force {
		return nil
	}
	o := first.owner
	if o == nil && first.content == nil && known == 0 {
		return nil // nobody ever had it
	}
	if o == nil || o.Epoch < known {
		// A Take is under way, or was cut off before it installed its file.
		if o, err = prepared(r, known); err != nil {
			return err
		}
	}
	if s := opt.Silent; s != nil && o != nil && o.Epoch == known && o.Token == s.Token && o.Beat == s.Beat {
		return nil
	}
	life := Unsure
	if o != nil {
		life = o.Life()
	}
	switch {
	case life == Dead:
		return nil
	case life == Alive:
		if o != first.owner { // of several that prepare, one has it
			o = cmp.Or(taker(ctx, r, known, false), o)
		}
		return &OwnedError{r.Name(), r.Ref(), o}
	}
	if opt.Notify != nil {
		who := "a dcs-tui that was starting"
		if o != nil {
			who = o.String()
		}
		opt.Notify(fmt.Sprintf("waiting up to %d s to see whether %s is alive", int(StaleAfter.Seconds()), who))
	}
	return watch(ctx, r, first, known)
}

// prepared returns the owner of an epoch whose Take has not installed its file
// yet, nil when there is none. Of several one alone opened the epoch, and which
// cannot be told: one that may be alive goes before one that is dead.
func prepared(r *rundir.Run, epoch int) (*Owner, error) {
	names, err := r.Disk.Names(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	var best *Owner
	for _, name := range names {
		if !strings.HasPrefix(name, preparedPrefix) {
			continue
		}
		b, err := rundir.ReadFile(r.Disk, r.Path(name))
		if err != nil {
			continue // installed or removed meanwhile
		}
		o, err := decodeOwner(b)
		if err == nil && o.Epoch == epoch && (best == nil || best.Life() == Dead || o.Life() == Alive) {
			best = o
		}
	}
	return best, nil
}

// takerPatience is how long anyone who has just opened an epoch has to install its
// owner file before a message does without its name.
const takerPatience = 2 * time.Second

// taker names who has just opened an epoch, for a message; nil when that does not
// show, in a hurry at once.
func taker(ctx context.Context, r *rundir.Run, epoch int, hurry bool) *Owner {
	ctx, cancel := context.WithTimeout(ctx, takerPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if now, err := look(r); err == nil && now.owner != nil && now.owner.Epoch >= epoch {
			return now.owner
		}
		if hurry {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// watch returns nil when nothing has moved for StaleAfter by our own clock. It
// compares contents, never times of two machines.
func watch(ctx context.Context, r *rundir.Run, first glance, known int) error {
	began, torn := time.Now(), 0
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for time.Since(began) < StaleAfter {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, err := look(r)
		if err != nil {
			return err
		}
		files, err := listFiles(r)
		if err != nil {
			return err
		}
		switch o := now.owner; {
		case newest(files) != known:
			return &OwnedError{r.Name(), r.Ref(), taker(ctx, r, newest(files), false)}
		case bytes.Equal(now.content, first.content):
		case now.content == nil:
			// Gone, which proves nothing.
		case o == nil:
			// Torn, and not as it was: somebody writes. Whether he lives, the next 30 s tell.
			if torn++; torn > 2 {
				return &OwnedError{r.Name(), r.Ref(), first.owner}
			}
			first.content, began = now.content, time.Now()
		case o.Left:
			return nil
		case first.owner == nil || o.Token != first.owner.Token || o.Beat != first.owner.Beat:
			return &OwnedError{r.Name(), r.Ref(), o}
		}
	}
	return nil
}

// glance is the owner file at one time. owner is nil when there is none or it
// is not whole.
type glance struct {
	content []byte
	owner   *Owner
}

func look(r *rundir.Run) (glance, error) {
	content, err := ownerContent(r)
	if err != nil || content == nil {
		return glance{}, err
	}
	o, err := decodeOwner(content)
	if err != nil && !errors.Is(err, errOwnerTorn) {
		return glance{}, err
	}
	return glance{content, o}, nil
}
