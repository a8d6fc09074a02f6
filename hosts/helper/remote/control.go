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

// control is a page of memory that the helpers and supervisors of one spool share: they
// all map the same file. Reading it needs no system call, and it outlives each process.
type control struct {
	mem    []byte
	device uint64 // device and inode of the file
	inode  uint64
	// The file system is read-only, and changes stay in this process. Nothing can be started.
	private bool
}

const (
	controlBytes = 64 << 10
	controlMagic = 0x6463732d74756900 // "dcs-tui" and, in the last byte, the version of the spool
)

// The words of the page.
const (
	ctlMagic      = iota
	ctlLease           // boot clock, ns: no buffered job starts later
	ctlLimit           // slots that may be busy; supervisors with a higher index take nothing
	ctlGeneration      // counts the helpers of this spool; only the newest feeds it
	ctlEpoch           // the highest epoch that opened this spool
	ctlEnd             // 1: the run is over, supervisors leave even if children are left
	ctlHeartbeat       // boot clock, ns: when the heartbeat file was last touched
	ctlAllowed         // 1 plus the last limit that a dispatcher set; 0: none was set
	ctlSuspended       // ns: how long jobs have been suspended, including the time until ctlSuspendTo
	ctlSuspendTo       // boot clock, ns: until when jobs are suspended; 0: they are not
	ctlShared          // hosts.Share.Slots; 0: slots are not shared with other runs and users
	ctlRule            // hosts.Share.Rule
	ctlLast            // number of slots that the run may hold although others hold all of them
	ctlSearching       // boot clock, ns: until when a search for processes elsewhere is reserved
	ctlSearched        // boot clock, ns: start of the last such search, times 2, plus 1 if it found some
	ctlServing    = 16 // one word per slot: pid of the supervisor that takes specs in it
)

// maxSlots is the number of slots for which the page has space, at least jobs.MaxSlots.
const maxSlots = controlBytes/8 - ctlServing - 1

const _ = uint(maxSlots - jobs.MaxSlots) // does not compile if maxSlots is smaller

// openControl maps the control page of a spool and creates the file if it is missing.
func openControl(dir string) (*control, error) {
	path := filepath.Join(dir, fileControl)
	c := &control{}
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDWR|unix.O_CREAT, 0o600)
	if errors.Is(err, unix.EROFS) {
		c.private = true
		fd, err = openPlain(path)
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	defer closeFile(fd, path)
	var st unix.Stat_t
	err = fstat(fd, path, &st)
	if err == nil && st.Size < controlBytes {
		// Written, not just extended: on a full disk, touching a hole raises SIGBUS.
		err = pwrite(fd, path, make([]byte, controlBytes), 0)
	}
	c.device, c.inode = uint64(st.Dev), st.Ino
	if err == nil {
		share := unix.MAP_SHARED
		if c.private {
			share = unix.MAP_PRIVATE
		}
		c.mem, err = mapFile(fd, path, controlBytes, share)
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	c.word(ctlMagic).CompareAndSwap(0, controlMagic|int64(jobs.FormatSpool.Version))
	found := c.word(ctlMagic).Load()
	if err = jobs.FormatSpool.Check(int(found & 0xff)); found&^0xff != controlMagic {
		err = errors.New("it is damaged")
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %s: %w; if no job of the run is left on this host, remove %s", path, err, dir)
	}
	return c, nil
}

// inPlace reports whether the spool still contains this page.
func (c *control) inPlace(dir string) bool {
	st, err := stat(filepath.Join(dir, fileControl))
	return err == nil && uint64(st.Dev) == c.device && st.Ino == c.inode
}

func (c *control) word(index int) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&c.mem[8*index]))
}

// serving returns the word of a slot, 1 to maxSlots.
func (c *control) serving(slot int) *atomic.Int64 {
	return c.word(ctlServing + min(max(slot, 0), maxSlots))
}

func (c *control) lease() time.Duration { return time.Duration(c.word(ctlLease).Load()) }

// raiseLease raises the lease. It never shortens it, because the dispatcher relies on a lease
// that it has given.
func (c *control) raiseLease(to time.Duration) { raiseWord(c.word(ctlLease), int64(to)) }

// setShare records for the supervisors which slots they share with other runs and users.
func (c *control) setShare(s hosts.Share) {
	c.word(ctlRule).Store(int64(s.Rule))
	c.word(ctlShared).Store(int64(s.Slots))
}

// share returns what setShare has recorded. Want is not recorded.
func (c *control) share() hosts.Share {
	return hosts.Share{Rule: int(c.word(ctlRule).Load()), Slots: int(c.word(ctlShared).Load())}
}

// raiseWord sets w to v unless w is higher, and returns the value before.
func raiseWord(w *atomic.Int64, v int64) int64 {
	for {
		old := w.Load()
		if old >= v || w.CompareAndSwap(old, v) {
			return old
		}
	}
}

// The fence: before a dispatcher of epoch N does anything on a host, its helper creates
// the file epoch.N in work_dir. A helper that finds a higher number does nothing more.

// passFence creates the file of our epoch. It returns a higher epoch, or 0 if there is none.
func passFence(dir string, o *hosts.Open) (int, error) {
	if by, err := fencedBy(dir, o.Epoch); err != nil || by != 0 {
		return by, err
	}
	path := filepath.Join(dir, epochFile(o.Epoch))
	fd, err := openat(unix.AT_FDCWD, path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fencedBy(dir, o.Epoch) // created for another host of the same dispatcher, or by us before
	}
	if err != nil {
		return 0, fmt.Errorf("work_dir cannot be used: %w", err)
	}
	if err := writeAndClose(fd, path, fmt.Appendf(nil, "%s %s %s\n", o.Run, o.Host, o.Nonce)); err != nil {
		return 0, fmt.Errorf("work_dir cannot be used: %w", err)
	}
	// List again: of two helpers that pass at the same time, the lower one must see the higher.
	all, err := listEpochs(dir)
	if err != nil {
		return 0, err
	}
	if by := slices.Max(append(all, o.Epoch)); by > o.Epoch {
		return by, nil
	}
	// Our file fences every older dispatcher, so the older files are not needed. Ours stays
	// after the run.
	for _, e := range all {
		if e < o.Epoch {
			remove(filepath.Join(dir, epochFile(e)))
		}
	}
	return 0, nil
}

const epochPrefix = "epoch."

func epochFile(n int) string { return epochPrefix + strconv.Itoa(n) }

// fencedBy returns the highest epoch in dir that is above ours, or 0.
func fencedBy(dir string, ours int) (int, error) {
	all, err := listEpochs(dir)
	if err != nil || len(all) == 0 || slices.Max(all) <= ours {
		return 0, err
	}
	return slices.Max(all), nil
}

// listEpochs returns the epochs in dir.
func listEpochs(dir string) (all []int, err error) {
	names, err := listNames(dir)
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

// newerEpoch returns a newer epoch that forbids commands of the given epoch, or 0. It reads
// memory only: watchFiles lists the directory, and another helper of this spool leaves its
// epoch in the control page.
func (h *helper) newerEpoch(epoch int) int {
	by := int(max(h.fencedBy.Load(), h.control.word(ctlEpoch).Load(), int64(h.open.Epoch)))
	if by > epoch {
		return by
	}
	return 0
}

// isFenced reports whether a command of the given epoch must not be carried out, and reports
// that to the dispatcher.
func (h *helper) isFenced(epoch int, ids []jobs.AttemptID) bool {
	by := h.newerEpoch(epoch)
	if by != 0 {
		h.refuseFenced(ids, by)
	}
	return by != 0
}

// refuseFenced reports that a newer dispatcher owns the run, and for which attempts a
// command was therefore not carried out.
func (h *helper) refuseFenced(ids []jobs.AttemptID, by int) {
	h.outbox.send(&hosts.Refused{Attempts: ids, FencedBy: by,
		Why: fmt.Sprintf("a newer dispatcher (epoch %d) owns this run", by)})
}

// isShutOut reports whether a newer helper or a newer dispatcher owns this spool.
func (h *helper) isShutOut() bool { return h.isSuperseded() || h.newerEpoch(h.open.Epoch) != 0 }

var errSuperseded = errors.New("another helper has taken over on this host")

// isSuperseded reports whether a newer helper serves this spool. This one must not feed it.
func (h *helper) isSuperseded() bool { return h.control.word(ctlGeneration).Load() != h.generation }
