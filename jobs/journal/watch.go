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

// OwnedError reports that somebody else dispatches the run.
type OwnedError struct {
	Run   string
	Ref   string // what to type as RUN
	Owner *Owner // nil while it is still becoming the owner
}

// Error names the owner and what the user can do.
func (e *OwnedError) Error() string {
	who := "another dcs-tui that is just starting"
	where := "there"
	if e.Owner != nil {
		who, where = e.Owner.String(), "on "+e.Owner.Host
	}
	return fmt.Sprintf("the run %s is dispatched by %s: `dcs-tui status %s` shows its status; end that dcs-tui %s, "+
		"or take the run over with --force if you know that it hangs",
		e.Run, who, e.Ref, where)
}

// watchInterval is the interval at which the file of an owner on another machine is read.
const watchInterval = time.Second

// checkMayTake returns nil if the run may be taken from its owner. It may wait for up to StaleAfter
// to find out. known is the newest epoch that has a file.
func checkMayTake(ctx context.Context, r *rundir.Run, known int, opt TakeOptions) error {
	first, err := readOwnerFile(r)
	if err != nil {
		return err
	}
	if opt.Force {
		return nil
	}
	o := first.owner
	if o == nil && first.content == nil && known == 0 {
		return nil // nobody ever dispatched the run
	}
	if o == nil || o.Epoch < known {
		// A Take is under way, or was cut off before it installed its file.
		if o, err = preparedOwner(r, known); err != nil {
			return err
		}
	}
	if s := opt.Silent; s != nil && o != nil && o.Epoch == known && o.Token == s.Token && o.Heartbeat == s.Heartbeat {
		return nil
	}
	liveness := Unsure
	if o != nil {
		liveness = o.Liveness()
	}
	switch {
	case liveness == Dead:
		return nil
	case liveness == Alive:
		if o != first.owner { // of several that prepare, one opened the epoch
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
	return awaitStale(ctx, r, first, known)
}

// preparedOwner returns the owner of an epoch whose Take has not installed its file yet, or nil if
// there is none. Only one of several has opened the epoch, but it is not known which one. One that
// may be alive is preferred.
func preparedOwner(r *rundir.Run, epoch int) (*Owner, error) {
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
			continue // installed or removed in the meantime
		}
		o, err := decodeOwner(b)
		if err == nil && o.Epoch == epoch && (best == nil || best.Liveness() == Dead || o.Liveness() == Alive) {
			best = o
		}
	}
	return best, nil
}

// takerTimeout is the time to wait for the owner file of whoever has just opened an epoch, who has as
// much time as for a heartbeat.
const takerTimeout = HeartbeatInterval

// taker returns who has just opened an epoch, for a message. It returns nil if there is no owner
// file of the epoch after takerTimeout, or immediately if noWait is set.
func taker(ctx context.Context, r *rundir.Run, epoch int, noWait bool) *Owner {
	ctx, cancel := context.WithTimeout(ctx, takerTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if now, err := readOwnerFile(r); err == nil && now.owner != nil && now.owner.Epoch >= epoch {
			return now.owner
		}
		if noWait {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// awaitStale returns nil if the owner file has not changed for StaleAfter by our own clock. It
// compares contents, never times of two machines.
func awaitStale(ctx context.Context, r *rundir.Run, first ownerFile, known int) error {
	began, torn := time.Now(), 0
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for time.Since(began) < StaleAfter {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, err := readOwnerFile(r)
		if err != nil {
			return err
		}
		files, err := listFiles(r)
		if err != nil {
			return err
		}
		switch o := now.owner; {
		case newestEpoch(files) != known:
			return &OwnedError{r.Name(), r.Ref(), taker(ctx, r, newestEpoch(files), false)}
		case bytes.Equal(now.content, first.content):
		case now.content == nil:
			// The file is gone, which proves nothing.
		case o == nil:
			// The file is torn and has changed, so somebody writes it. Watch for another
			// StaleAfter.
			torn++
			if torn > 2 {
				return &OwnedError{r.Name(), r.Ref(), first.owner}
			}
			first.content, began = now.content, time.Now()
		case o.Left:
			return nil
		case first.owner == nil || o.Token != first.owner.Token || o.Heartbeat != first.owner.Heartbeat:
			return &OwnedError{r.Name(), r.Ref(), o}
		}
	}
	return nil
}

// ownerFile is the owner file at one time. owner is nil if there is none or it is not whole.
type ownerFile struct {
	content []byte
	owner   *Owner
}

// readOwnerFile reads the owner file. It is not an error if the file is torn.
func readOwnerFile(r *rundir.Run) (ownerFile, error) {
	content, err := ownerContent(r)
	if err != nil || content == nil {
		return ownerFile{}, err
	}
	o, err := decodeOwner(content)
	if err != nil && !errors.Is(err, errOwnerTorn) {
		return ownerFile{}, err
	}
	return ownerFile{content, o}, nil
}
