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

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

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

// refuseFenced tells the dispatcher that a newer one owns the run, and what of
// its orders was therefore not carried out.
func (h *helper) refuseFenced(ids []jobs.AttemptID, by int) {
	h.out.send(&hosts.Refused{Attempts: ids, FencedBy: by, Why: fmt.Sprintf("a newer dispatcher (epoch %d) owns this run", by)})
}

// shutOut says that this spool is another's: a newer helper's or dispatcher's.
func (h *helper) shutOut() bool { return h.superseded() || h.fence(h.open.Epoch) != 0 }

var errSuperseded = errors.New("another helper has taken over on this host")

// superseded says that a newer helper serves this spool: we must not feed it.
func (h *helper) superseded() bool { return h.ctl.at(ctlGeneration).Load() != h.generation }
