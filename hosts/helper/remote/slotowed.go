//go:build linux

package remote

import (
	"sync/atomic"
	"time"
)

// owed is what remains to be said of an attempt whose sentinel is in place. It
// waits until the next job has been started, when there is one: the slot is busy
// again first, and two reports travel in one write.
type owed struct {
	a    *attempt
	exit *report
}

// debt holds what is owed. The loop pays it, with the next start or without; a
// timer does when the next start takes long, because a file system hangs. Who
// takes it out of cur pays it.
type debt struct {
	cur   atomic.Pointer[owed]
	armed atomic.Bool
}

// oweTime is how often the timer looks: what it sees twice has waited too long.
const oweTime = 300 * time.Millisecond

// await is called before the next job is begun. It sees to it that what is owed
// is paid in time whatever happens, and returns it. Under a stream of short jobs
// the timer costs nothing for each: it is armed a few times a second.
func (d *debt) await(s *slot) *owed {
	o := d.cur.Load()
	if o != nil && d.armed.CompareAndSwap(false, true) {
		time.AfterFunc(oweTime, func() { d.look(s, nil) })
	}
	return o
}

// look pays what was owed at the last look already, and looks again later if
// there is anything.
func (d *debt) look(s *slot, last *owed) {
	o := d.cur.Load()
	if o != nil && o == last && d.cur.CompareAndSwap(o, nil) {
		s.release(o.a)
		s.reportIn(nil, o.exit)
		o = nil
	}
	if o == nil {
		// What comes to be owed from here on is waited for by the next await.
		d.armed.Store(false)
		if o = d.cur.Load(); o == nil || !d.armed.CompareAndSwap(false, true) {
			return
		}
	}
	time.AfterFunc(oweTime, func() { d.look(s, o) })
}

// pay lets go of the attempt that is owed a report, and reports it.
func (s *slot) pay() {
	if o := s.debt.cur.Swap(nil); o != nil {
		s.drop(o.a, o.exit)
	}
}
