package faults

import (
	"fmt"
	"syscall"
	"time"

	"dcs-tui/internal/labfs"
)

// onClient makes a fault of the view that a random machine has of the shared directory. Hosts are
// chosen more often than desks.
func onClient(strike func(*director, *machine) string) func(*director) string {
	return func(d *director) string {
		list := append(d.l.machines(), d.l.hosts...)
		m := list[d.rnd.IntN(len(list))]
		if m.now.Load() == nil || d.busy(m.name+" files") {
			return ""
		}
		return strike(d, m)
	}
}

// suffer injects a fault into a machine's file system for a while.
func (d *director) suffer(m *machine, after time.Duration, on, off func()) string {
	from := time.Now()
	on()
	// The timer ends the fault even if the director waits, for example for a process that hangs.
	time.AfterFunc(after, off)
	d.later(after, m.name+" files", func() {
		off() // also if the fault is ended early
		d.spans = append(d.spans, span{from, time.Now()})
	})
	return fmt.Sprintf("%s for %s", m.name, after.Round(time.Millisecond))
}

// wedge makes every call to the shared directory hang on one machine.
func (d *director) wedge(m *machine) string {
	return d.suffer(m, d.seconds(2, 25), m.client.Wedge, m.client.Unwedge)
}

// overQuota makes writes of one machine's user exceed the quota for blocks and inodes. A file
// server reports that to each client separately.
func (d *director) overQuota(m *machine) string {
	return d.suffer(m, d.seconds(2, 12), func() { m.client.Full(true) }, func() { m.client.Full(false) })
}

// failCalls makes some calls of some kinds fail on one machine.
func (d *director) failCalls(m *machine) string {
	ops := []labfs.Op{labfs.Lookup, labfs.Getattr, labfs.Open, labfs.Create, labfs.Read, labfs.Write, labfs.Flush, labfs.Fsync,
		labfs.Mkdir, labfs.Unlink, labfs.Rename, labfs.Link, labfs.List, labfs.Statfs}
	errs := []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EDQUOT, syscall.ENOSPC}
	first, second := ops[d.rnd.IntN(len(ops))], ops[d.rnd.IntN(len(ops))]
	f := labfs.Fault{Ops: first | second, Errno: errs[d.rnd.IntN(len(errs))], Count: 1 + d.rnd.IntN(8)}
	i := m.client.Fail(f)
	on := d.suffer(m, d.seconds(1, 10), func() {}, i.Stop)
	return fmt.Sprintf("%s, %d times %s at %s", on, f.Count, f.Errno, f.Ops)
}

// loseReplies loses replies of a file server to one machine: the repeated request finds that it has
// already been executed.
func (d *director) loseReplies(m *machine) string {
	ops := []labfs.Op{labfs.Create, labfs.Link, labfs.Mkdir, labfs.Rename, labfs.Unlink}
	op := ops[d.rnd.IntN(len(ops))]
	i := m.client.LostReply(op, "", 1+d.rnd.IntN(4))
	on := d.suffer(m, d.seconds(1, 10), func() {}, i.Stop)
	return fmt.Sprintf("%s, at %s", on, op)
}
