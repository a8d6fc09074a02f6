package client

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxUnsent is how many bytes may wait to be taken by the host: room for the
// longest commands on all its slots. It bounds memory, not time; a host that takes
// nothing is found out by its silence.
const maxUnsent = 256 << 20

var (
	errFull   = fmt.Errorf("the host does not take what is sent: %d MiB are waiting", maxUnsent>>20)
	errClosed = errors.New("the link was closed")
)

// mailbox is the io.Writer between Send, which must not block, and the stream,
// which may: bytes wait here, up to a limit. One goroutine runs it.
type mailbox struct {
	wake chan struct{} // room for one: there are bytes

	mu    sync.Mutex
	buf   []byte
	spare []byte // the buffer that was written last, for reuse
	err   error  // set by close
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// Write takes p or none of it.
func (b *mailbox) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if len(b.buf)+len(p) > maxUnsent {
		return 0, errFull
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
	b.buf, b.spare = nil, nil
}

// flush writes what waits now.
func (b *mailbox) flush(w io.Writer) error {
	b.mu.Lock()
	p := b.buf
	b.buf, b.spare = b.spare[:0], nil
	b.mu.Unlock()
	if len(p) == 0 {
		return nil
	}
	_, err := w.Write(p)
	b.mu.Lock()
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
