package journal

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"dcs-tui/jobs/rundir"
)

// preparedPrefix begins the name of an owner file that is not installed yet; the
// epoch follows.
const preparedPrefix = "." + rundir.OwnerFile + "."

// beats is the owner's side of the file owner. Beats are written in place, into
// the very file that Take renamed there: an old dispatcher that wakes up writes
// into a file that no longer has a name, and so cannot claim the run back.
type beats struct {
	mu    sync.Mutex
	run   *rundir.Run
	owner Owner
	f     rundir.File // nil: to be opened again
	named bool        // f has been made the file owner
}

// prepare writes the new owner's file under a name of its own, so that a full
// disk stops a Take before it has changed anything.
func (b *beats) prepare() (tmp string, err error) {
	content, err := b.owner.encode()
	if err != nil {
		return "", err
	}
	tmp = b.run.Path(fmt.Sprintf("%s%d.%s.%d", preparedPrefix, b.owner.Epoch, b.owner.Token, b.owner.Beat))
	b.f, err = b.run.Disk.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = b.f.WriteAt(content, 0); err == nil {
		err = b.f.Sync()
	}
	if err != nil {
		return "", errors.Join(err, b.close(), b.run.Disk.Remove(tmp))
	}
	return tmp, nil
}

// install makes the prepared file the file owner.
func (b *beats) install(tmp string) error {
	if err := b.run.Disk.Rename(tmp, b.run.Path(rundir.OwnerFile)); err != nil {
		return err
	}
	b.named = true
	return b.run.Disk.SyncDir(b.run.Dir)
}

func (b *beats) close() error {
	if b.f == nil {
		return nil
	}
	err := b.f.Close()
	b.f = nil
	return err
}

// beat writes the next beat. A failed one is repeated by the next call, on a
// file opened anew (a stale handle does not heal).
func (b *beats) beat(change func(*Owner)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.owner
	next.Beat++
	change(&next)
	content, err := next.encode()
	if err != nil {
		return err
	}
	if err := b.lookAfter(); err != nil {
		return fmt.Errorf("cannot write the owner's sign of life: %w", err)
	}
	if b.f == nil {
		if err := b.reopen(); err != nil {
			return fmt.Errorf("cannot write the owner's sign of life: %w", err)
		}
	}
	b.owner = next // even if the write fails: a number is not used twice
	if err = b.write(content); err != nil {
		return fmt.Errorf("cannot write the owner's sign of life: %w", errors.Join(err, b.close()))
	}
	return nil
}

// write puts a content in the place of the last one, also where damage has made
// the file longer.
func (b *beats) write(content []byte) error {
	if _, err := b.f.WriteAt(content, 0); err != nil {
		return err
	}
	size, err := b.f.Size()
	if err == nil && size > ownerBytes {
		err = b.f.Truncate(ownerBytes)
	}
	if err != nil {
		return err
	}
	return b.f.Sync()
}

// lookAfter gives the file up when it is not the file owner any more: a Take that
// was overtaken half way, and then went on, has put its own in that place.
func (b *beats) lookAfter() error {
	if b.f == nil || !b.named {
		return nil
	}
	now, err := look(b.run)
	if err != nil || now.owner != nil && now.owner.Token == b.owner.Token || now.content != nil && now.owner == nil {
		return err // ours, or torn: what we write now mends it
	}
	return b.close()
}

// reopen opens the file owner if it is still ours. If a person has removed it, or
// an earlier epoch's has taken its place, it is made again.
func (b *beats) reopen() error {
	now, err := look(b.run)
	switch {
	case err != nil:
		return err
	case now.content == nil, now.owner != nil && now.owner.Epoch < b.owner.Epoch:
		tmp, err := b.prepare()
		if err != nil {
			return err
		}
		return b.install(tmp)
	case now.owner != nil && now.owner.Token != b.owner.Token:
		return fmt.Errorf("%w: %s has it", ErrFenced, now.owner)
	}
	// A torn content may be a beat of ours that failed half way.
	b.f, err = b.run.Disk.OpenFile(b.run.Path(rundir.OwnerFile), os.O_RDWR, 0)
	return err
}
