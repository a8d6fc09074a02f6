package control

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A person's keys never wait; a client that asks without end gets 200 answers a second.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		begun := time.Now()
		for range burst {
			p.wait(t.Context())
		}
		if d := time.Since(begun); d != 0 {
			t.Errorf("a burst took %v", d)
		}
		for range 1000 {
			p.wait(t.Context())
		}
		if d := time.Since(begun); d != 1000*callEvery {
			t.Errorf("1000 more took %v", d)
		}
		time.Sleep(time.Minute)
		begun = time.Now()
		for range 100 { // a key that is held for three seconds
			p.wait(t.Context())
			time.Sleep(30 * time.Millisecond)
		}
		if d := time.Since(begun); d != 3*time.Second {
			t.Errorf("a held key waited %v", d-3*time.Second)
		}
		for range 2 * burst {
			p.wait(t.Context())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if p.wait(ctx) {
			t.Error("it waits for a client that has gone")
		}
	})
}
