package client

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Limits on the bytes queued for hosts. They bound memory, not time: a host that reads
// nothing is detected by its silence.
const (
	maxUnsent     = 256 << 20 // for all hosts together; enough for the longest commands on all slots of some hosts
	maxUnsentSure = 1 << 20   // guaranteed to each host, and one message of any size, whatever the others use
)

var errClosed = errors.New("the link was closed")

// mailbox is the io.Writer between Send, which must not block, and the stream,
// which may: bytes wait here, up to a limit. One goroutine runs it.
type mailbox struct {
	wake chan struct{} // room for one: there are bytes
	all  *atomic.Int64 // bytes queued in the mailboxes of all hosts

	mu      sync.Mutex
	buf     []byte
	writing int    // bytes that are being written
	spare   []byte // the buffer that was written last, for reuse
	err     error  // set by close
}

func newMailbox(all *atomic.Int64) *mailbox { return &mailbox{wake: make(chan struct{}, 1), all: all} }

// Write takes p or none of it.
func (b *mailbox) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	have := len(b.buf) + b.writing
	all := b.all.Add(int64(len(p)))
	if have > 0 && have+len(p) > maxUnsentSure && all > maxUnsent {
		b.all.Add(-int64(len(p)))
		return 0, fmt.Errorf("the host does not read what is sent: %d MiB are waiting, %d MiB for all hosts together", have>>20, all>>20)
	}
	b.buf = append(b.buf, p...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// close drops what waits and refuses more with err, which is not nil.
func (b *mailbox) close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.all.Add(-int64(len(b.buf)))
	b.buf, b.spare = nil, nil
}

// flush writes what waits now.
func (b *mailbox) flush(w io.Writer) error {
	b.mu.Lock()
	p := b.buf
	b.buf, b.spare = b.spare[:0], nil
	b.writing = len(p)
	b.mu.Unlock()
	if len(p) == 0 {
		return nil
	}
	_, err := w.Write(p)
	b.all.Add(-int64(len(p)))
	b.mu.Lock()
	b.writing = 0
	if cap(p) <= 1<<20 && b.err == nil {
		b.spare = p
	}
	b.mu.Unlock()
	return err
}

// run writes what comes until stop is closed or a write fails.
func (b *mailbox) run(w io.Writer, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		case <-b.wake:
			if err := b.flush(w); err != nil {
				return err
			}
		}
	}
}
