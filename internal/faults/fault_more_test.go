//go:build linux

package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// killDispatcher kills the dispatcher at a random time. It is resumed on the same desk or on the
// other one.
func (d *director) killDispatcher() string {
	if d.current == nil || !d.current.kill() {
		return ""
	}
	return d.current.name
}

// terminateDispatcher sends SIGTERM to the dispatcher. It stops dispatching, and running jobs
// continue.
func (d *director) terminateDispatcher() string {
	if d.current == nil || !d.current.sendSignal(syscall.SIGTERM) {
		return ""
	}
	return d.current.name
}

// unplugDesk disconnects the dispatcher's machine from all hosts, but not from the shared
// directory.
func (d *director) unplugDesk() string {
	if d.current == nil || d.current.desk.running.Load() == nil || d.isActive(awayFault(d.current.desk)) {
		return ""
	}
	m := d.current.desk
	d.must(m.setLink(false))
	return m.name + " " + d.repairAfterRandom(2, 30, awayFault(m), func() { d.must(m.setLink(true)) })
}

// pauseDispatcher stops the dispatcher for a while, as a sleeping laptop does.
func (d *director) pauseDispatcher() string {
	if d.current == nil || d.isActive("dispatcher stopped") || !d.current.sendSignal(syscall.SIGSTOP) {
		return ""
	}
	life := d.current
	return life.name + " " + d.repairAfterRandom(1, 25, "dispatcher stopped",
		func() { life.sendSignal(syscall.SIGCONT) })
}

// takeOverWhileStopped stops the dispatcher, lets another take the run over (by force or when the
// heartbeats are stale), and continues the first. The first must detect that it is fenced off,
// report that, and exit.
func (d *director) takeOverWhileStopped() string {
	first := d.current
	if first == nil || d.isActive("dispatcher stopped") || d.hasFenced() ||
		!strings.Contains(first.output(), " on 4 hosts") && !strings.Contains(first.output(), " to adopt") {
		return "" // no dispatcher, or it is not the owner yet
	}
	if !first.sendSignal(syscall.SIGSTOP) {
		return ""
	}
	other := d.lab.desks[0]
	if other == first.desk {
		other = d.lab.desks[1]
	}
	if other.running.Load() == nil {
		first.sendSignal(syscall.SIGCONT)
		return ""
	}
	force := d.rand.IntN(2) == 0
	epoch := d.numEpochs()
	d.must(d.resume(other, force))
	from, to := 5.0, 20.0
	if !force {
		from, to = 40, 50 // the heartbeats must be stale first
	}
	lasts := d.repairAfterRandom(from, to, "dispatcher stopped", func() {
		if d.numEpochs() > epoch { // otherwise nobody has taken over yet, and it may continue
			d.fenced = append(d.fenced, first)
		}
		d.logEvent("waking %s", first.name)
		first.sendSignal(syscall.SIGCONT)
	})
	return fmt.Sprintf("%s, force %v, %s", first.name, force, lasts)
}

// numEpochs returns how many dispatchers have owned the run.
func (d *director) numEpochs() int {
	files, err := filepath.Glob(d.lab.hub.path(d.runDir() + "/journal/*.jsonl"))
	if err != nil {
		return 0
	}
	return len(files)
}

// hasFenced reports whether a dispatcher that was stopped has not exited yet.
func (d *director) hasFenced() bool {
	return slices.ContainsFunc(d.dispatchers, func(life *dispatcher) bool {
		return life != d.current && !life.hasEnded()
	})
}

// checkFenced checks that a dispatcher that was taken over reports that and exits with the code for
// "another dispatcher continues the run".
func (d *director) checkFenced() {
	d.t.Helper()
	for _, life := range d.fenced {
		if life.code == -1 || life.code == 137 {
			continue // its machine lost power before it could report anything
		}
		if life.code != 4 || !strings.Contains(life.output(), "another dispatcher has taken this run over") {
			d.t.Errorf("%s was taken over while it was stopped; it ended with %d and said:\n%s", life.name, life.code,
				lastLines(life.output(), 12))
		}
	}
}

// cutDeskPower cuts the power of the dispatcher's machine.
func (d *director) cutDeskPower() string {
	if d.current == nil {
		return ""
	}
	m := d.current.desk
	if m.running.Load() == nil || d.isActive(awayFault(m)) {
		return ""
	}
	m.powerOff(true)
	return m.name + " " + d.repairAfterRandom(0.2, 10, awayFault(m), func() { d.must(m.boot()) })
}

// fillShared fills the shared directory completely for a while.
func (d *director) fillShared() string {
	if d.isActive("disk full") {
		return ""
	}
	empty := d.fillUntil()
	if empty == nil {
		return ""
	}
	return d.repairAfterRandom(2, 12, "disk full", empty)
}

// fillUntil fills the shared directory completely until the returned function is called. It returns
// nil if the directory is full already.
func (d *director) fillUntil() (empty func()) {
	name := d.lab.hub.path(sharedDir + "/.filler")
	from := time.Now()
	f, err := os.Create(name)
	if errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	d.must(err)
	defer f.Close()
	block := make([]byte, 64<<10)
	for size := len(block); size > 0; {
		if _, err := f.Write(block[:size]); err != nil {
			size /= 2
		}
	}
	return func() {
		d.must(os.Remove(name))
		d.writeFailures = append(d.writeFailures, span{from, time.Now()})
	}
}

// mountReadOnly mounts the shared directory read-only on one host for a while.
func (d *director) mountReadOnly() string {
	m := d.randomHost()
	if m == nil || d.isActive(m.name+" read-only") {
		return ""
	}
	from := time.Now()
	s := m.running.Load()
	how, undo := "remounted", []string{"mount", "-o", "remount,rw,bind", sharedDir}
	if s.run("mount", "-o", "remount,ro,bind", sharedDir) != nil {
		// Some files are open for writing, so the mount affects only files opened from now on.
		how, undo = "mounted over", []string{"umount", "-l", sharedDir}
		d.must(s.run("sh", "-ec", "mkdir -p /run/ro; mount --bind $0 /run/ro; mount -o remount,ro,bind /run/ro; "+
			"mount --bind /run/ro $0; umount /run/ro", sharedDir))
	}
	return m.name + ", " + how + ", " + d.repairAfterRandom(2, 15, m.name+" read-only", func() {
		if m.running.Load() == s { // a reboot mounts the directory again
			d.must(s.run(undo...))
		}
		d.writeFailures = append(d.writeFailures, span{from, time.Now()})
	})
}
