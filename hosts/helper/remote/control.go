//go:build linux

package remote

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// control is a page of memory that helpers and supervisors of one spool share: a
// file of it mapped by all. Reading it costs no system call, and it outlives
// each of them.
type control struct {
	mem []byte
	dev uint64 // of the file
	ino uint64
}

const (
	controlBytes = 64 << 10
	controlMagic = 0x6463732d74756903 // "dcs-tui", version 3 of this page
)

// The words of the page.
const (
	ctlMagic      = iota
	ctlLease           // boot clock, ns: no buffered job starts later
	ctlLimit           // slots that may be busy; supervisors with a higher index take nothing
	ctlGeneration      // counts the helpers of this spool; only the newest feeds it
	ctlEpoch           // the highest epoch that opened this spool
	ctlEnd             // 1: the run is over, supervisors leave even if children are left
	ctlBeat            // boot clock, ns: when the beat file was last touched
	ctlAllowed         // 1 and the limit that a dispatcher gave last; 0: none
	ctlSuspended       // ns: how long jobs have been suspended, including the time until ctlSuspendTo
	ctlSuspendTo       // boot clock, ns: until when jobs are suspended; 0: they are not
	ctlShared          // slots of the host if they are shared with other runs and users; 0: not
	ctlLast            // 1: one slot may be used though others hold all
	ctlServing    = 16 // one word a slot: pid of the supervisor that takes tickets in it
)

// maxSlots is how many slots the page has room for, at least jobs.MaxSlots.
const maxSlots = controlBytes/8 - ctlServing - 1

const _ = uint(maxSlots - jobs.MaxSlots) // does not compile if maxSlots is smaller

// openControl maps the spool's page, making it when there is none.
func openControl(dir string) (*control, error) {
	path := filepath.Join(dir, fileControl)
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	defer closeFile(fd, path)
	var st unix.Stat_t
	err = fstat(fd, path, &st)
	if err == nil && st.Size < controlBytes {
		// Written out, not just extended: touching a hole on a full disk would be SIGBUS.
		err = pwrite(fd, path, make([]byte, controlBytes), 0)
	}
	c := &control{dev: uint64(st.Dev), ino: st.Ino}
	if err == nil {
		c.mem, err = mapFile(fd, path, controlBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if !c.at(ctlMagic).CompareAndSwap(0, controlMagic) && c.at(ctlMagic).Load() != controlMagic {
		return nil, fmt.Errorf("spool: %s was made by another version of dcs-tui; end the run with that version, or remove %s", path, dir)
	}
	return c, nil
}

// inPlace says whether the page is still the one that is found in the spool.
func (c *control) inPlace(dir string) bool {
	st, err := stat(filepath.Join(dir, fileControl))
	return err == nil && uint64(st.Dev) == c.dev && st.Ino == c.ino
}

func (c *control) at(word int) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&c.mem[8*word]))
}

// serving is the word of one slot, 1 to maxSlots.
func (c *control) serving(slot int) *atomic.Int64 {
	return c.at(ctlServing + min(max(slot, 0), maxSlots))
}

func (c *control) lease() time.Duration { return time.Duration(c.at(ctlLease).Load()) }

// extend raises the lease; it never shortens it, because the dispatcher counts
// on a lease once given having run out only at its end.
func (c *control) extend(to time.Duration) { raise(c.at(ctlLease), int64(to)) }

// raise sets w to v unless it is higher already, and returns what it was.
func raise(w *atomic.Int64, v int64) int64 {
	for {
		old := w.Load()
		if old >= v || w.CompareAndSwap(old, v) {
			return old
		}
	}
}
