//go:build linux

package faults

import (
	"fmt"
	"syscall"
	"time"

	"dcs-tui/internal/labfs"
)

// onRandomClient makes a fault of the view that a random machine has of the shared directory. Hosts
// are chosen more often than desks.
func onRandomClient(strike func(*director, *machine) string) func(*director) string {
	return func(d *director) string {
		list := append(d.lab.machines(), d.lab.hosts...)
		m := list[d.rand.IntN(len(list))]
		if m.running.Load() == nil || d.isActive(m.name+" files") {
			return ""
		}
		return strike(d, m)
	}
}

// injectFault injects a fault into a machine's file system for a while.
func (d *director) injectFault(m *machine, after time.Duration, on, off func()) string {
	from := time.Now()
	on()
	// The timer ends the fault even if the director waits, for example for a process that hangs.
	time.AfterFunc(after, off)
	d.repairAfter(after, m.name+" files", func() {
		off() // also if the fault is ended early
		d.writeFailures = append(d.writeFailures, span{from, time.Now()})
	})
	return fmt.Sprintf("%s for %s", m.name, after.Round(time.Millisecond))
}

// hangCalls makes every call to the shared directory hang on one machine.
func (d *director) hangCalls(m *machine) string {
	return d.injectFault(m, d.randomSeconds(2, 25), m.mount.Hang, m.mount.Resume)
}

// exceedQuota makes writes of one machine's user exceed the quota for blocks and inodes. A file
// server reports that to each client separately.
func (d *director) exceedQuota(m *machine) string {
	return d.injectFault(m, d.randomSeconds(2, 12), func() { m.mount.SetFull(true) }, func() { m.mount.SetFull(false) })
}

// failCalls makes some calls of some kinds fail on one machine.
func (d *director) failCalls(m *machine) string {
	ops := []labfs.Op{labfs.Lookup, labfs.Getattr, labfs.Open, labfs.Create, labfs.Read, labfs.Write, labfs.Flush,
		labfs.Fsync,
		labfs.Mkdir, labfs.Unlink, labfs.Rename, labfs.Link, labfs.List, labfs.Statfs}
	errs := []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EDQUOT, syscall.ENOSPC}
	first, second := ops[d.rand.IntN(len(ops))], ops[d.rand.IntN(len(ops))]
	f := labfs.Fault{Ops: first | second, Errno: errs[d.rand.IntN(len(errs))], Count: 1 + d.rand.IntN(8)}
	i := m.mount.Fail(f)
	on := d.injectFault(m, d.randomSeconds(1, 10), func() {}, i.Stop)
	return fmt.Sprintf("%s, %d times %s at %s", on, f.Count, f.Errno, f.Ops)
}

// loseReplies loses replies of a file server to one machine: the repeated request finds that it has
// already been executed.
func (d *director) loseReplies(m *machine) string {
	ops := []labfs.Op{labfs.Create, labfs.Link, labfs.Mkdir, labfs.Rename, labfs.Unlink}
	op := ops[d.rand.IntN(len(ops))]
	i := m.mount.LoseReplies(op, "", 1+d.rand.IntN(4))
	on := d.injectFault(m, d.randomSeconds(1, 10), func() {}, i.Stop)
	return fmt.Sprintf("%s, at %s", on, op)
}
