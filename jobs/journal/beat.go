package journal

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"dcs-tui/jobs/rundir"
)

// preparedPrefix begins the name of an owner file that is not installed yet.
const preparedPrefix = "." + rundir.OwnerFile + "."

// beats is the owner's side of the file owner. Beats are written in place, into
// the very file that Take renamed there: an old dispatcher that wakes up writes
// into a file that no longer has a name, and so cannot claim the run back.
type beats struct {
	mu    sync.Mutex
	run   *rundir.Run
	owner Owner
	f     rundir.File // nil: to be opened again
}

// prepare writes the new owner's file under a name of its own, so that a full
// disk stops a Take before it has changed anything.
func (b *beats) prepare() (tmp string, err error) {
	content, err := b.owner.encode()
	if err != nil {
		return "", err
	}
	tmp = b.run.Path(fmt.Sprintf("%s%s.%d", preparedPrefix, b.owner.Token, b.owner.Beat))
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
	if b.f == nil {
		if err := b.reopen(); err != nil {
			return fmt.Errorf("cannot write the owner's sign of life: %w", err)
		}
	}
	b.owner = next // even if the write fails: a number is not used twice
	if _, err = b.f.WriteAt(content, 0); err == nil {
		err = b.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("cannot write the owner's sign of life: %w", errors.Join(err, b.close()))
	}
	return nil
}

// reopen opens the file owner if it is still ours. If a person has removed it,
// it is made again.
func (b *beats) reopen() error {
	content, err := ownerContent(b.run)
	if err != nil {
		return err
	}
	if content == nil {
		tmp, err := b.prepare()
		if err != nil {
			return err
		}
		return b.install(tmp)
	}
	// A torn content may be a beat of ours that failed half way.
	if o, err := decodeOwner(content); err == nil && o.Token != b.owner.Token {
		return fmt.Errorf("%w: %s has it", ErrFenced, o)
	}
	b.f, err = b.run.Disk.OpenFile(b.run.Path(rundir.OwnerFile), os.O_RDWR, 0)
	return err
}

func (b *beats) leave() error {
	err := b.beat(func(o *Owner) { o.Left = true })
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(err, b.close())
}
