package dispatch

import (
	"context"
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
}

func (w *linkWorker) Hello() *hosts.Hello           { return &hosts.Hello{} }
func (w *linkWorker) Reports() <-chan hosts.Message { return w.reports }
func (w *linkWorker) Close() error                  { return nil }

func (w *linkWorker) Send(ms ...hosts.Message) error {
	for _, m := range ms {
		if p, ok := m.(*hosts.Ping); ok {
			w.pings.Add(1)
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

// heartbeats sends heartbeats for a while.
func (w *linkWorker) heartbeats(n int) {
	for range n {
		time.Sleep(hosts.DefaultHeartbeat)
		select {
		case w.reports <- &hosts.Heartbeat{Seq: w.received.Load()}:
		case <-time.After(time.Minute): // the agent has given the link up
			return
		}
	}
}

// TestIdleLinkCostsFewMessages checks that a host that sends heartbeats gets a ping for two of them and
// a keepalive each minute, and that a link that is dead in one or both directions is given up within 30
// seconds, as with a keepalive each 15 seconds.
func TestIdleLinkCostsFewMessages(t *testing.T) {
	for name, heartbeatsArrive := range map[string]bool{"nothing arrives": false, "pings do not arrive": true} {
		t.Run(name, func(t *testing.T) {
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
				const n = 200 // ten minutes
				w.heartbeats(n)
				synctest.Wait()
				if p, k := w.pings.Load(), w.keepalives.Load(); p > n/2+2 || p < n/2-2 || k > 12 || k < 9 {
					t.Errorf("%d heartbeats caused %d pings and %d keepalives", n, p, k)
				}
				died := time.Now()
				w.receives.Store(false)
				w.linkWorks.Store(false)
				if heartbeatsArrive {
					w.heartbeats(20)
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
