package control

import (
	"context"
	"time"
)

// A screen that asks without end, out of order or by design, must not keep the engine
// busy: its calls wait here, in their order, as soon as there are more than a person's
// keys can make.
const (
	callEvery = 5 * time.Millisecond
	burst     = 200
)

// pace is when the calls of one connection so far would be over, were each to take callEvery.
type pace struct{ until time.Time }

// wait waits until a call may be made; false when ctx has ended.
func (p *pace) wait(ctx context.Context) bool {
	now := time.Now()
	if p.until.Before(now) {
		p.until = now
	}
	p.until = p.until.Add(callEvery)
	ahead := p.until.Sub(now) - burst*callEvery
	if ahead <= 0 {
		return true
	}
	t := time.NewTimer(ahead)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
