package client

import (
	"io"
	"sync/atomic"
	"testing"
)

// Hosts that read nothing cost a bounded amount of memory, however many there are. A
// host can always be sent one message, and bytes that were read make room for others.
func TestMailboxesShareTheirRoom(t *testing.T) {
	var all atomic.Int64
	piece := make([]byte, 4<<20)
	waiting := func(boxes ...*mailbox) (n int) {
		for _, b := range boxes {
			n += len(b.buf)
		}
		return n
	}
	fill := func(b *mailbox) {
		for {
			if _, err := b.Write(piece); err != nil {
				return
			}
		}
	}
	boxes := make([]*mailbox, 8)
	for i := range boxes {
		boxes[i] = newMailbox(&all)
		fill(boxes[i])
	}
	if n := waiting(boxes...); n > maxUnsent+len(boxes)*len(piece) || n < maxUnsent {
		t.Errorf("%d MiB wait", n>>20)
	}
	last := boxes[len(boxes)-1]
	if n := len(last.buf); n != len(piece) {
		t.Errorf("%d bytes wait for the last host, want one message", n)
	}
	fresh := newMailbox(&all)
	for range 4 {
		if _, err := fresh.Write(piece[:maxUnsentSure/4]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fresh.Write(piece[:1]); err == nil {
		t.Error("more than is sure was taken")
	}
	if err := boxes[0].flush(io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Write(piece); err != nil {
		t.Errorf("when there is room: %v", err)
	}
	for _, b := range append(boxes, fresh) {
		b.close(errClosed)
	}
	if n := all.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}
