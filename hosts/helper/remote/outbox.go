//go:build linux

package remote

import (
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
)

// outbox sends messages in order without making anybody wait: a link may be
// slow. What gathers while one write is under way goes out together in the next.
type outbox struct {
	w      *wire.Writer
	broken chan error // gets the first error

	mu      sync.Mutex
	cond    *sync.Cond
	queue   []hosts.Message
	beats   int  // beats in the queue: a newer one makes an older useless
	writing bool // a write is under way
	failed  bool
}

func newOutbox(w *wire.Writer) *outbox {
	o := &outbox{w: w, broken: make(chan error, 1)}
	o.cond = sync.NewCond(&o.mu)
	go o.run()
	return o
}

func (o *outbox) send(msgs ...hosts.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range msgs {
		if _, ok := m.(*hosts.Beat); ok {
			if o.beats > 0 {
				continue
			}
			o.beats++
		}
		o.queue = append(o.queue, m)
	}
	o.cond.Broadcast()
}

func (o *outbox) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.queue) == 0 {
			o.cond.Wait()
		}
		msgs := o.queue
		o.queue, o.beats, o.writing = nil, 0, true
		o.mu.Unlock()
		err := o.w.Write(msgs...)
		o.mu.Lock()
		o.writing = false
		if err != nil {
			o.failed, o.queue = true, nil
			o.broken <- err
			o.cond.Broadcast()
			return
		}
		o.cond.Broadcast()
	}
}

// flushTime bounds how long the end of a helper waits for a link that is stuck.
const flushTime = 5 * time.Second

// flush waits until everything is written or the link has failed, not for ever.
func (o *outbox) flush() {
	late := false
	timer := time.AfterFunc(flushTime, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		late = true
		o.cond.Broadcast()
	})
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !late && !o.failed && (len(o.queue) > 0 || o.writing) {
		o.cond.Wait()
	}
}
