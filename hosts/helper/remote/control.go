//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
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
	controlMagic = 0x6463732d74756904 // "dcs-tui", version 4 of the spool
)

// The words of the page.
const (
	ctlMagic      = iota
	ctlLease           // boot clock, ns: no buffered job starts later
	ctlLimit           // slots that may be busy; supervisors with a higher index take nothing
	ctlGeneration      // counts the helpers of this spool; only the newest feeds it
	ctlEpoch           // the highest epoch that opened this spool
	ctlEnd             // 1: the run is over, supervisors leave even if children are left
	ctlBeat            // boot clock, ns: when the heartbeat file was last touched
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

// inPlace reports whether the page is still the one that is found in the spool.
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

// The fence: a dispatcher of epoch N makes the file epoch.N before it does
// anything on a host; whoever finds a higher number does nothing any more.

// passFence makes our epoch's file and returns a higher epoch, 0 if there is none.
func passFence(dir string, o *hosts.Open) (int, error) {
	if by, err := fencedBy(dir, o.Epoch); err != nil || by != 0 {
		return by, err
	}
	path := filepath.Join(dir, epochFile(o.Epoch))
	fd, err := openat(unix.AT_FDCWD, path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fencedBy(dir, o.Epoch) // another host's helper of the same dispatcher, or we before
	}
	if err != nil {
		return 0, fmt.Errorf("work_dir cannot be used: %w", err)
	}
	if err := finish(fd, path, fmt.Appendf(nil, "%s %s %s\n", o.Run, o.Host, o.Nonce)); err != nil {
		return 0, fmt.Errorf("work_dir cannot be used: %w", err)
	}
	// Looked at once more: of two that pass at the same time, the lower must see the higher.
	all, err := epochs(dir)
	if err != nil {
		return 0, err
	}
	if by := slices.Max(append(all, o.Epoch)); by > o.Epoch {
		return by, nil
	}
	// Ours shuts out all that the older ones did, so there need not be one for each
	// dispatcher that there ever was. It stays, also after the run.
	for _, e := range all {
		if e < o.Epoch {
			remove(filepath.Join(dir, epochFile(e)))
		}
	}
	return 0, nil
}

const epochPrefix = "epoch."

func epochFile(n int) string { return epochPrefix + strconv.Itoa(n) }

// fencedBy lists dir for the highest epoch above ours, 0 if there is none.
func fencedBy(dir string, ours int) (int, error) {
	all, err := epochs(dir)
	if err != nil || len(all) == 0 || slices.Max(all) <= ours {
		return 0, err
	}
	return slices.Max(all), nil
}

// epochs lists the epochs that dir shows.
func epochs(dir string) (all []int, err error) {
	names, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for newer dispatchers: %w", err)
	}
	for _, n := range names {
		if s, ok := strings.CutPrefix(n, epochPrefix); ok {
			if e, err := strconv.Atoi(s); err == nil {
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// fence returns the epoch that keeps us from acting on an order of the given
// epoch, 0 if none does. It reads memory only: the directory is listed by
// watchFiles, and another helper of this spool leaves its epoch in the shared page.
func (h *helper) fence(epoch int) int {
	by := int(max(h.fencedBy.Load(), h.ctl.at(ctlEpoch).Load(), int64(h.open.Epoch)))
	if by > epoch {
		return by
	}
	return 0
}

// fenced reports whether an order of the given epoch about attempts must not be carried out,
// and tells the dispatcher so.
func (h *helper) fenced(epoch int, ids []jobs.AttemptID) bool {
	by := h.fence(epoch)
	if by != 0 {
		h.refuseFenced(ids, by)
	}
	return by != 0
}

// refuseFenced tells the dispatcher that a newer one owns the run, and what of
// its orders was therefore not carried out.
func (h *helper) refuseFenced(ids []jobs.AttemptID, by int) {
	h.out.send(&hosts.Refused{Attempts: ids, FencedBy: by, Why: fmt.Sprintf("a newer dispatcher (epoch %d) owns this run", by)})
}

// isShutOut reports whether this spool is another's: a newer helper's or dispatcher's.
func (h *helper) isShutOut() bool { return h.isSuperseded() || h.fence(h.open.Epoch) != 0 }

var errSuperseded = errors.New("another helper has taken over on this host")

// isSuperseded reports whether a newer helper serves this spool: we must not feed it.
func (h *helper) isSuperseded() bool { return h.ctl.at(ctlGeneration).Load() != h.generation }
