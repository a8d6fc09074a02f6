package runview

import (
	"context"
	"time"

	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
)

// dialInterval is between attempts to connect to a dispatcher.
const dialInterval = 2 * time.Second

// link is the connection of a View to the dispatcher and what came over it. View.mu
// guards it.
type link struct {
	conn    Conn // nil: there is none
	token   string
	dialing bool
	after   time.Time // no attempt to connect before
	lost    bool      // it has been lost: who dispatches the run is to be read at once
	follows bool      // the dispatcher pushes over it

	durable live.Durable
	state   *live.State
}

// keepLink connects to the dispatcher, and leaves one that has lost the run. mu is held.
func (v *View) keepLink() {
	l, owner := &v.link, v.facts.owner
	if l.conn != nil && (owner == nil || owner.Token != l.token) {
		v.unlink()
	}
	if v.opt.Socket == nil || l.conn != nil || l.dialing || v.closed || !v.facts.dispatched || owner.Socket == "" || time.Now().Before(l.after) {
		return
	}
	l.dialing = true
	v.all.Go(func() { v.dial(owner) })
}

// unlink forgets the connection; dial closes it. mu is held.
func (v *View) unlink() {
	v.link.conn, v.link.follows, v.link.durable, v.link.state = nil, false, live.Durable{}, nil
}

// dial connects, and stays until the connection has ended or is not wanted any more.
func (v *View) dial(owner *journal.Owner) {
	conn, err := v.opt.Socket(v.ctx, owner)
	if err == nil {
		v.mu.Lock()
		v.link.conn, v.link.token = conn, owner.Token
		v.mu.Unlock()
		err = conn.Follow(v.ctx, func(d live.Durable) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.link.conn == conn {
				v.link.durable = d
				v.poke()
			}
		}, func(s *live.State) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.link.conn == conn && s.Token == owner.Token && s.Epoch == owner.Epoch {
				v.link.state = s
				if v.facts.dispatched && v.facts.owner.Token == owner.Token {
					v.setState(s)
					v.changed()
				}
			}
		})
	}
	if err == nil {
		v.mu.Lock()
		v.link.follows = v.link.conn == conn
		v.changed()
		v.mu.Unlock()
		v.await(conn)
	}
	if conn != nil {
		conn.Close()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	l := &v.link
	l.dialing, l.after = false, time.Now().Add(dialInterval)
	defer v.changed()
	if conn != nil && l.conn == conn {
		v.unlink()
		l.lost, l.after = true, time.Time{}
		v.poke()
	}
}

// await waits until conn has ended or is not the connection of the View any more.
func (v *View) await(conn Conn) {
	for {
		v.mu.Lock()
		is, news := v.link.conn == conn && !v.closed, v.news
		v.mu.Unlock()
		if !is {
			return
		}
		select {
		case <-conn.Done():
			return
		case <-v.ctx.Done():
			return
		case <-news:
		}
	}
}

// dispatcher returns the connection; nil: there is none.
func (v *View) dispatcher() Conn {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.link.conn
}

// call makes a call to the dispatcher that a Look waits for.
func call[T any](ctx context.Context, conn Conn, do func(context.Context, Conn) (T, error)) (T, bool) {
	var none T
	if conn == nil {
		return none, false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	is, err := do(ctx, conn)
	return is, err == nil
}

// Connect waits until the View is connected to the dispatcher, if there is one to connect
// to, and shows what that knows; or until that has failed or takes too long.
func (v *View) Connect(ctx context.Context) {
	soon, cancel := context.WithTimeout(ctx, dialInterval)
	defer cancel()
	for {
		v.mu.Lock()
		l := &v.link
		pushed := l.follows && l.state != nil
		waits := !pushed && v.facts.dispatched && v.opt.Socket != nil && v.facts.owner.Socket != "" && l.after.IsZero()
		news := v.news
		v.mu.Unlock()
		if !waits {
			break
		}
		select {
		case <-news:
		case <-soon.Done():
			return
		case <-v.ctx.Done():
			return
		}
	}
	v.refresh(ctx)
}
