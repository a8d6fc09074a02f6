package dispatch

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
)

// linkWorker is a worker whose heartbeats the test sends.
type linkWorker struct {
	hosts.Worker
	reports             chan hosts.Message
	pings, keepalives   atomic.Int64
	receives, linkWorks atomic.Bool // pings reach the helper; the link answers keepalives
	received            atomic.Int64
	onPing              func(*hosts.Ping) // nil: none
}

func (w *linkWorker) Hello() *hosts.Hello           { return &hosts.Hello{} }
func (w *linkWorker) Reports() <-chan hosts.Message { return w.reports }
func (w *linkWorker) Close() error                  { return nil }

func (w *linkWorker) Send(ms ...hosts.Message) error {
	for _, m := range ms {
		if p, ok := m.(*hosts.Ping); ok {
			w.pings.Add(1)
			if w.onPing != nil {
				w.onPing(p)
			}
			if w.receives.Load() {
				w.received.Store(p.Seq)
			}
		}
	}
	return nil
}

func (w *linkWorker) KeepAlive(ctx context.Context) error {
	w.keepalives.Add(1)
	if !w.linkWorks.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

// heartbeats sends heartbeats at an interval for a while.
func (w *linkWorker) heartbeats(interval, while time.Duration) {
	for range while / interval {
		time.Sleep(interval)
		select {
		case w.reports <- &hosts.Heartbeat{Seq: w.received.Load()}:
		case <-time.After(time.Minute): // the agent has given the link up
			return
		}
	}
}

// TestIdleLinkCostsFewMessages checks that a host that sends heartbeats gets a ping every 5 or 6 seconds and
// a keepalive each minute, and that a link that is dead in one or both directions is given up within 30
// seconds, as with a keepalive each 15 seconds, however often the host sends heartbeats.
func TestIdleLinkCostsFewMessages(t *testing.T) {
	for _, c := range []struct {
		heartbeat        time.Duration
		heartbeatsArrive bool // after the death of the link
	}{{hosts.DefaultHeartbeat, false}, {hosts.DefaultHeartbeat, true}, {time.Second, false}, {time.Second, true}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &linkWorker{reports: make(chan hosts.Message)}
				w.receives.Store(true)
				w.linkWorks.Store(true)
				d := &Dispatcher{inputs: make(chan input)}
				a := newAgent(d, &hosts.Host{Name: "a"})
				var downAt atomic.Pointer[time.Time]
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for in := range d.inputs {
						if _, is := in.ev.(sched.HostDown); is {
							now := time.Now()
							downAt.Store(&now)
						}
						in.release()
						if in.call != nil { // the agent has ended
							return
						}
					}
				}()
				a.dialed = make(chan dialed, 1)
				a.dialed <- dialed{host: a.host.Load(), worker: w}
				go a.run()
				synctest.Wait()
				a.enqueue(sched.SetLimit{Slots: 1})
				w.heartbeats(c.heartbeat, 10*time.Minute)
				synctest.Wait()
				if p, k := w.pings.Load(), w.keepalives.Load(); p > 600/5+2 || p < 600/6-2 || k > 12 || k < 9 {
					t.Errorf("in ten minutes there were %d pings and %d keepalives", p, k)
				}
				died := time.Now()
				w.receives.Store(false)
				w.linkWorks.Store(false)
				if c.heartbeatsArrive {
					w.heartbeats(c.heartbeat, time.Minute)
				}
				time.Sleep(time.Minute)
				if at := downAt.Load(); at == nil || at.Sub(died) > 30*time.Second {
					t.Errorf("the link that died at %v was given up at %v", died, at)
				}
				a.cancel()
				<-ended
			})
		})
	}
}

// TestLeaseNeverRunsOutOnAHealthyLink checks that each ping arrives before the lease of the one before
// has run out, with the shortest settings that are allowed and a round trip of a second.
func TestLeaseNeverRunsOutOnAHealthyLink(t *testing.T) {
	for _, c := range []struct{ heartbeat, lostAfter time.Duration }{{1, 6}, {2, 6}, {3, 6}, {3, 7}, {5, 10}, {3, 10},
		{3, 20}, {10, 20}, {3, 60}, {30, 60}, {30, 600}} {
		heartbeat, lostAfter := c.heartbeat*time.Second, c.lostAfter*time.Second
		t.Run(fmt.Sprint(heartbeat, lostAfter), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := &linkWorker{reports: make(chan hosts.Message)}
				w.receives.Store(true)
				w.linkWorks.Store(true)
				d := &Dispatcher{inputs: make(chan input)}
				h := &hosts.Host{Name: "a", Heartbeat: heartbeat, LostAfter: lostAfter}
				a := newAgent(d, h)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for in := range d.inputs {
						if h, is := in.ev.(sched.HostHeartbeat); is {
							a.uptime.Store(int64(h.Heartbeat.Uptime))
						}
						in.release()
						if in.call != nil { // the agent has ended
							return
						}
					}
				}()
				var lease time.Duration
				w.onPing = func(p *hosts.Ping) {
					if at := time.Since(began) + time.Second/2; lease > 0 && at > lease {
						t.Errorf("a ping arrives at %v, after the end of the lease at %v", at, lease)
					}
					lease = max(lease, p.LeaseUptime)
				}
				a.dialed = make(chan dialed, 1)
				a.dialed <- dialed{host: h, worker: w}
				go a.run()
				synctest.Wait()
				a.enqueue(sched.SetLimit{Slots: 1})
				for range 100 {
					uptime := time.Since(began)
					time.Sleep(time.Second / 2)
					w.reports <- &hosts.Heartbeat{Seq: w.received.Load(), Uptime: uptime}
					time.Sleep(heartbeat - time.Second/2)
				}
				a.cancel()
				<-ended
			})
		})
	}
}
