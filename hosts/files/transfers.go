package files

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/text"
)

// Transfers counts the bytes of the transfers under way. The zero value has none. It is safe for
// concurrent use.
type Transfers struct {
	mu         sync.Mutex
	n          int
	got, total int64     // bytes
	since      time.Time // start of the first of them
}

// Transfer is one of Transfers.
type Transfer struct {
	of         *Transfers // its mu guards got
	got, total int64
}

// Begin records the start of a transfer of total bytes.
func (t *Transfers) Begin(total int64) *Transfer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 {
		t.since = time.Now()
	}
	t.n++
	t.total += total
	return &Transfer{of: t, total: total}
}

// Progress returns the number of transfers, and describes their progress: "12 MiB of 1 GiB, 8.1
// MiB/s".
func (t *Transfers) Progress() (n int, progress string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	progress = text.Size(t.got) + " of " + text.Size(t.total)
	if took := time.Since(t.since); took > time.Second && t.got > 0 {
		progress += fmt.Sprintf(", %s/s", text.Size(int64(float64(t.got)/took.Seconds())))
	}
	return t.n, progress
}

// Add records that n bytes have arrived.
func (t *Transfer) Add(n int) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.got += int64(n)
	t.of.got += int64(n)
}

// End records the end of the transfer.
func (t *Transfer) End() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.n--
	t.of.got -= t.got
	t.of.total -= t.total
}

// reservedBytes are left free for others, such as a dispatcher's journal.
const reservedBytes = 64 << 20

// Space reserves free space of a file system for files whose sizes hosts announce. It is safe for
// concurrent use.
type Space struct {
	Dir string // a directory of the file system
	// Free returns the number of bytes that may be written. nil: the free bytes of the file system,
	// less reservedBytes.
	Free func() (int64, error)

	mu       sync.Mutex
	reserved int64 // bytes that are reserved and not written yet
}

// SpaceError is the error for files that do not fit into a file system.
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes; Free without what other files have reserved
	TooLarge   bool  // Need is more than the file system holds
	Full       bool  // nothing at all is free
}

// Error names the sizes.
func (e *SpaceError) Error() string {
	if e.TooLarge {
		return fmt.Sprintf("%s are more than the whole disk of %s holds", text.Size(e.Need), e.Dir)
	}
	return fmt.Sprintf("there is no space in %s for %s (%s free)", e.Dir, text.Size(e.Need), text.Size(max(0, e.Free)))
}

// Is reports whether the error is that of a full disk, which may have space later.
func (e *SpaceError) Is(err error) bool { return err == syscall.ENOSPC && !e.TooLarge }

// Reserve reserves n bytes, which the caller gives back with Release as they are written or not
// needed. The error is a *SpaceError if they are not free.
func (s *Space) Reserve(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var st unix.Statfs_t
	if err := unix.Statfs(s.Dir, &st); err != nil {
		return err
	}
	free, err := int64(st.Bavail)*int64(st.Bsize)-reservedBytes, error(nil)
	if s.Free != nil {
		free, err = s.Free()
	}
	switch {
	case err != nil:
		return err
	case free <= 0, free-s.reserved < n:
		return &SpaceError{s.Dir, n, free - s.reserved, n > int64(st.Blocks)*int64(st.Bsize), free <= 0}
	}
	s.reserved += n
	return nil
}

// Release gives n reserved bytes back.
func (s *Space) Release(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= n
}
