package sim

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// disk is the run directory as one dispatcher sees it. It tells the ledger what has
// become durable.
type disk struct {
	*memdisk.Mount
	l *life
}

func (d disk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	f, err := d.Mount.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	if inJournal(path) && flag&os.O_EXCL != 0 {
		d.l.made = epochOf(path)
		d.l.w.ledger.newEpoch(d.l.w, path)
	}
	return openFile{f, d.l, path}, nil
}

// inJournal says that a file is an epoch's. What stands beside it (marks) is none.
func inJournal(path string) bool { return path == journalPath(epochOf(path)) }

// openFile is an open file of the run directory.
type openFile struct {
	rundir.File
	l    *life
	path string
}

// Sync makes durable what any process of the machine has written.
func (f openFile) Sync() error {
	err := f.File.Sync()
	for _, other := range f.l.w.lives {
		if err == nil && other != f.l && other.m == f.l.m {
			fault := other.mount.Fault
			other.mount.Fault = nil
			if o, e := other.mount.OpenFile(f.path, os.O_RDWR, 0); e == nil {
				err = errors.Join(o.Sync(), o.Close())
			}
			other.mount.Fault = fault
		}
	}
	if err == nil && inJournal(f.path) {
		if size, err := f.File.Size(); err == nil {
			f.l.w.ledger.synced(f.l, f.path, size)
		}
	}
	return err
}

// SyncDir makes durable what names any process of the machine has made.
func (d disk) SyncDir(dir string) error {
	err := d.Mount.SyncDir(dir)
	for _, other := range d.l.w.lives {
		if err == nil && other != d.l && other.m == d.l.m {
			fault := other.mount.Fault
			other.mount.Fault = nil
			err = other.mount.SyncDir(dir)
			other.mount.Fault = fault
		}
	}
	return err
}

// doomAt is a point of a turn.
type doomAt uint8

const (
	nowhere   doomAt = iota
	atDisk           // before an operation on the disk
	atWrite          // in the middle of a write
	atRelease        // when the records are durable and no order has gone
	atOrder          // before an order
)

// doom is what is going to happen to a dispatcher at a point of its turn.
type doom struct {
	l     *life
	at    doomAt
	left  int  // how often the point is passed before
	power bool // its machine loses its power as well
	do    func()
}

// arm lets it be killed at the nth passing of a point.
func (d *doom) arm(at doomAt, n int, power bool) {
	d.at, d.left, d.power = at, n, power
	d.do = func() { panic(killed{}) }
}

// armWith lets something else happen then.
func (d *doom) armWith(at doomAt, n int, do func()) { d.at, d.left, d.do = at, n, do }

func (d *doom) disarm() { d.at = nowhere }

func (d *doom) strike(at doomAt) {
	if d.at != at {
		return
	}
	if d.left--; d.left > 0 {
		return
	}
	d.at = nowhere
	d.do()
}

// fault is asked before each operation on the run directory.
func (l *life) fault(op, path string) error {
	l.doom.strike(atDisk)
	if op == "write" && l.doom.at == atWrite {
		if l.doom.left--; l.doom.left <= 0 {
			l.doom.at, l.doom.left = atDisk, 1 // it does not come back from this write
			return memdisk.Short{N: l.w.tape.Draw(400), Err: syscall.EINTR}
		}
	}
	if l.w.now >= l.m.full {
		return nil
	}
	switch {
	case op == "write":
		switch l.w.tape.Draw(3) {
		case 1:
			return memdisk.Short{N: l.w.tape.Draw(300), Err: syscall.ENOSPC}
		case 2:
			return syscall.EDQUOT
		} // otherwise only fsync tells, as on NFS
	case op == "sync" && l.w.tape.Draw(2) == 0 && l.made == len(l.w.ledger.files): // nobody has read it
		return memdisk.Forget{Err: syscall.EIO, Zeros: l.w.tape.Draw(2) == 1}
	case op == "sync":
		return syscall.ESTALE
	}
	return nil
}

// powerLoss loses what no process of the machine had made durable, as the tape says.
// What another machine has read meanwhile is on the server and stays.
func (m *machine) powerLoss(w *World) {
	t := w.tape
	for _, l := range w.lives {
		if l.m != m || w.ledger.readElsewhere(l) {
			continue
		}
		l.mount.PowerLoss(func(loss memdisk.Loss) memdisk.Fate {
			w.logf("power loss: %s %s %s %d", loss.Op, loss.Path, loss.Name, loss.Len)
			switch t.Draw(4) {
			case 0:
				return memdisk.Fate{}
			case 1:
				return memdisk.Fate{Keep: loss.Len}
			}
			return memdisk.Fate{Keep: t.Draw(loss.Len + 1), Zeros: t.Draw(2) == 1}
		})
	}
	w.ledger.lostPower(w)
}
