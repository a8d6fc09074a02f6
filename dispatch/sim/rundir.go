package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"dcs-tui/dispatch/commit"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// makeRun creates the run directory in its state before the first dispatcher.
func (w *World) makeRun() {
	m := w.server.Mount("maker")
	mustMkdir(m, "/runs", runDir, runDir+"/"+rundir.JournalDir, runDir+"/"+rundir.AttemptsDir,
		runDir+"/"+rundir.HostsDir)
	maker := &rundir.Run{Dir: runDir, Settings: new(rundir.Settings), Disk: m}
	err := errors.Join(rundir.WriteNew(m, maker.Path(rundir.SpecsFile), nil), maker.UpgradeFormat("sim"))
	if err != nil {
		panic(err)
	}
}

func mustMkdir(d rundir.Disk, paths ...string) {
	for _, p := range paths {
		if err := errors.Join(d.Mkdir(p, 0o700), d.SyncDir(filepath.Dir(p))); err != nil {
			panic(err)
		}
	}
}

// startDispatcher starts a dispatcher on a machine. The dispatcher takes the run over and resumes
// it.
func (w *World) startDispatcher(m *machine) { w.takeOverFrom(m, nil, 0) }

// takeOverFrom takes the run over from a dispatcher that may be alive. If wake is positive, the old
// dispatcher wakes up just before the new one's disk operation number wake.
func (w *World) takeOverFrom(m *machine, old *dispatcher, wake int) {
	w.isStarting = false
	w.damageBeforeTakeover()
	l := &dispatcher{w: w, n: len(w.dispatchers) + 1, m: m, born: w.now, ownedAt: w.now,
		ownerPresent: map[string]bool{}}
	if w.numTakeovers > maxDispatchers {
		w.fail(RunEnds, "after %d dispatchers the run has not ended", w.numTakeovers)
	}
	w.dispatchers = append(w.dispatchers, l)
	l.mount = w.server.Mount(fmt.Sprintf("%s.%d", m.name, l.n))
	l.mount.Fault = l.fault
	l.share = w.share.Mount(l.mount.Name)
	l.share.Stale = func(string) bool { return w.oneInWhileFaults(2) }
	l.run = &rundir.Run{Dir: runDir, Nonce: "nonce", Settings: &rundir.Settings{UID: runUID, Name: "r"},
		Disk: disk{l.mount, l}}
	if w.oneInWhileFaults(10) {
		w.countFault(faultKilledInTakeover)
		l.trigger.killAt(atDisk, 1+w.choices.Draw(25), w.choices.Draw(2) == 1)
	}
	if wake > 0 && l.trigger.at == noPoint {
		l.trigger.callAt(atDisk, wake, func() {
			w.countFault(faultWokenInTakeover)
			old.runDueWork()
			if l.dead { // the machine lost its power
				panic(killedPanic{})
			}
		})
	}
	w.logf("%s begins", l.mount.Name)
	w.dispatcher = l
	var err error
	if l.survives(func() { err = l.takeOver() }) {
		return
	}
	if err != nil {
		w.logf("%s could not take the run: %v", l.mount.Name, err)
		l.die(false)
		return
	}
	l.trigger.disarm()
	w.passMoment()
	l.enqueue(func() { l.step(sched.Tick{}) })
	l.housekeep()
	w.readRequests(l)
	w.feedRest(l)
}

// takeOver does what resume does: it folds the journal and continues the run from there.
func (l *dispatcher) takeOver() error {
	w := l.w
	j, t, report, err := journal.Take(context.Background(), l.run, journal.TakeOptions{
		Force: true, Packed: true, Token: l.mount.Name, Now: func() time.Time {
			return (wallStart + jobs.Stamp(w.now+l.m.clockAhead)).Time()
		},
		Who: &journal.Owner{Host: l.m.name, User: "sim"},
	})
	if err != nil {
		return err
	}
	l.journal, l.epoch = j, j.Epoch()
	w.numTakeovers++
	w.logf("%s has epoch %d: %d records, %d torn, %d ignored", l.mount.Name, l.epoch, report.Records,
		report.Torn, report.Ignored)
	w.checkTake(l, t, report)
	l.inheritRequests()
	l.inventory = w.drawInventory(t)
	w.forgetUnnamed(l.inventory, t)
	cfg := w.cfg
	cfg.Seed = uint64(l.n)
	if t.Epoch > 1 {
		cfg.Found = l.found(t)
	}
	l.core = sched.New(cfg, t, l.inventory)
	l.updateSpecs()
	for _, spec := range l.core.HostSpecs() {
		l.agents = append(l.agents, &agent{l: l, spec: spec})
	}
	l.loop = commit.New(l.core, j)
	l.loop.OnRecord = l.onRecord
	w.consumer.redeliver(l, t)
	return nil
}

// drawInventory returns the inventory of one dispatcher. A person may have removed a host from it. A
// host of which damage destroyed every record is not removed, because nothing can be known of it
// (docs/internals/reliability.md, what is not proved).
func (w *World) drawInventory(t *jobs.Table) *hosts.Inventory {
	inv := w.inventory()
	list := w.hostSet(t)
	if len(list) < 2 || w.losesHosts || !w.oneInWhileFaults(8) {
		return inv
	}
	name := list[w.choices.Draw(len(list))].Name
	if _, asked := t.Inventory[name]; asked || t.Damaged && !isMentioned(t, name) {
		return inv
	}
	w.countFault(faultHostLeftOut)
	w.logf("the inventory lacks %s", name)
	w.after(time.Hour, w.sendInventory) // this may be the only host that can run some job
	inv.Hosts = slices.DeleteFunc(slices.Clone(inv.Hosts), func(s *hosts.Host) bool { return s.Name == name })
	return inv
}

// forgetUnnamed records that nothing can be known of hosts that are neither in an inventory nor, because
// of damage, in a record (docs/internals/reliability.md, what is not proved).
func (w *World) forgetUnnamed(inv *hosts.Inventory, t *jobs.Table) {
	if !w.damaged {
		return
	}
	for _, h := range w.hosts {
		_, isNamed := t.Inventory[h.name]
		isNamed = isNamed || isMentioned(t, h.name) ||
			slices.ContainsFunc(inv.Hosts, func(s *hosts.Host) bool { return s.Name == h.name })
		if !isNamed {
			w.truth.forget(h)
		}
	}
}

// isMentioned reports whether an intact record names the host.
func isMentioned(t *jobs.Table, name string) bool {
	for j := range t.Rows() {
		if slices.ContainsFunc(j.Attempts, func(a *jobs.Attempt) bool { return a.Host == name }) {
			return true
		}
	}
	return false
}

// runDueWork makes a dispatcher carry out its due work now, even if it is stopped.
func (l *dispatcher) runDueWork() {
	if l.dead || l.busy || l.loop == nil {
		return
	}
	paused := l.numPauses
	l.numPauses = 0
	l.queueReport(sched.Tick{})
	if !l.dead {
		l.numPauses = paused
	}
}

// killedPanic is the panic value with which a dispatcher dies in the middle of an operation.
type killedPanic struct{}

// survives calls do, and reports whether the dispatcher died in it.
func (l *dispatcher) survives(do func()) (died bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case killedPanic:
			l.die(l.trigger.power)
			died = true
		default:
			panic(r)
		}
	}()
	do()
	return l.dead
}

// die ends a dispatcher. It is killed, or with power its machine loses its power.
func (l *dispatcher) die(power bool) {
	if l.dead {
		return
	}
	w := l.w
	w.logf("%s is dead (power %v)", l.mount.Name, power)
	l.dead, l.inbox, l.mount.Fault = true, nil, nil
	for _, a := range l.agents {
		a.dialing++
		if a.link != nil {
			a.link.close(!power)
			a.link = nil
		}
	}
	if power {
		for _, other := range w.dispatchers {
			if other.m == l.m {
				other.die(false)
			}
		}
		l.m.powerLoss(w)
	}
	if w.dispatcher == l {
		w.dispatcher = nil
		w.passMoment()
		w.restartLater(w.within(w.size.restart))
	}
}

// restartLater starts another dispatcher later, on this or another machine.
func (w *World) restartLater(d time.Duration) {
	if w.isStarting {
		return
	}
	w.isStarting = true
	w.after(d, func() {
		if w.dispatcher == nil {
			w.startDispatcher(w.machines[w.choices.Draw(len(w.machines))])
			return
		}
		w.isStarting = false
	})
}

// disk is the run directory as one dispatcher sees it. It reports durable data to the ledger.
type disk struct {
	*memdisk.Mount
	l *dispatcher
}

func (d disk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	f, err := d.Mount.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	if isJournalFile(path) && flag&os.O_EXCL != 0 {
		d.l.fileEpoch = epochOf(path)
		d.l.w.ledger.newEpoch(d.l.w, path)
	}
	return openFile{f, d.l, path}, nil
}

// isJournalFile reports whether a file is the journal file of an epoch. The marks file beside it is
// not one.
func isJournalFile(path string) bool { return path == journalPath(epochOf(path)) }

// openFile is an open file of the run directory.
type openFile struct {
	rundir.File
	l    *dispatcher
	path string
}

// Sync makes durable what any process of the machine has written to the file.
func (f openFile) Sync() error {
	err := f.File.Sync()
	if err == nil {
		err = f.l.onSameMachine(func(other *memdisk.Mount) error {
			o, err := other.OpenFile(f.path, os.O_RDWR, 0)
			if err != nil {
				return nil
			}
			return errors.Join(o.Sync(), o.Close())
		})
	}
	if err == nil && isJournalFile(f.path) {
		if size, err := f.File.Size(); err == nil {
			f.l.w.ledger.recordSynced(f.l, f.path, size)
		}
	}
	return err
}

// SyncDir makes durable the directory entries that any process of the machine has created.
func (d disk) SyncDir(dir string) error {
	if err := d.Mount.SyncDir(dir); err != nil {
		return err
	}
	return d.l.onSameMachine(func(other *memdisk.Mount) error { return other.SyncDir(dir) })
}

// onSameMachine calls do, without faults, for the mount of each other dispatcher of the machine
// until there is an error.
func (l *dispatcher) onSameMachine(do func(*memdisk.Mount) error) (err error) {
	for _, other := range l.w.dispatchers {
		if err == nil && other != l && other.m == l.m {
			fault := other.mount.Fault
			other.mount.Fault = nil
			err = do(other.mount)
			other.mount.Fault = fault
		}
	}
	return err
}

// turnPoint is a point of a turn.
type turnPoint uint8

const (
	noPoint   turnPoint = iota
	atDisk              // before a disk operation
	atWrite             // in the middle of a write
	atRelease           // after the records are durable, before the first command
	atCommand           // before a command
)

// trigger is a planned event at a point of a dispatcher's turn.
type trigger struct {
	at      turnPoint
	numLeft int  // number of times that the point is still passed
	power   bool // its machine loses its power as well
	do      func()
}

// killAt kills the dispatcher at the nth passing of a point.
func (d *trigger) killAt(at turnPoint, n int, power bool) {
	d.at, d.numLeft, d.power = at, n, power
	d.do = func() { panic(killedPanic{}) }
}

// callAt calls do at the nth passing of a point.
func (d *trigger) callAt(at turnPoint, n int, do func()) { d.at, d.numLeft, d.do = at, n, do }

func (d *trigger) disarm() { d.at = noPoint }

func (d *trigger) passPoint(at turnPoint) {
	if d.at != at {
		return
	}
	d.numLeft--
	if d.numLeft > 0 {
		return
	}
	d.at = noPoint
	d.do()
}

// fault decides before each operation on the run directory whether it fails.
func (l *dispatcher) fault(op, path string) error {
	l.trigger.passPoint(atDisk)
	if op == "write" && l.trigger.at == atWrite {
		l.trigger.numLeft--
		if l.trigger.numLeft <= 0 {
			l.trigger.at, l.trigger.numLeft = atDisk, 1 // the process dies before its next operation
			return memdisk.ShortWrite{N: l.w.choices.Draw(400), Err: syscall.EINTR}
		}
	}
	if l.w.now >= l.m.fullUntil {
		return nil
	}
	switch {
	case op == "write":
		switch l.w.choices.Draw(3) {
		case 1:
			return memdisk.ShortWrite{N: l.w.choices.Draw(300), Err: syscall.ENOSPC}
		case 2:
			return syscall.EDQUOT
		} // otherwise only fsync reports the error, as on NFS
	case op == "sync" && l.w.choices.Draw(2) == 0 && l.fileEpoch == len(l.w.ledger.files):
		// No other dispatcher has read it.
		return memdisk.LostWrites{Err: syscall.EIO, Zeros: l.w.choices.Draw(2) == 1}
	case op == "sync":
		return syscall.ESTALE
	}
	return nil
}

// powerLoss loses writes that no process of the machine had made durable, as the choices decide.
// What another machine has read in the meantime is on the server and survives.
func (m *machine) powerLoss(w *World) {
	t := w.choices
	for _, l := range w.dispatchers {
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
	w.ledger.forgetLostFiles(w)
}

// describe formats an event or a command for the log: the fields that are set, including the values
// behind pointers, but no specifications.
func describe(v reflect.Value) string {
	if v.IsValid() && v.CanInterface() {
		switch v := v.Interface().(type) {
		case error:
			return v.Error()
		case fmt.Stringer:
			return v.String()
		case *hosts.Host, *jobs.Spec, *hosts.Inventory, *hosts.Hello:
			return "…"
		}
	}
	var parts []string
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return describe(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				parts = append(parts, v.Type().Field(i).Name+" "+describe(v.Field(i)))
			}
		}
		return v.Type().Name() + "{" + strings.Join(parts, ", ") + "}"
	case reflect.Map:
		return fmt.Sprintf("%d entries", v.Len())
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, describe(v.Index(i)))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v)
}
