package files

import (
	"fmt"
	"sync"
	"time"

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
