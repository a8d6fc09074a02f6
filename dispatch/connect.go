package dispatch

import (
	"context"
	"fmt"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
)

// connect starts an attempt to reach the host. Its outcome arrives on a.dialed.
func (a *agent) connect() {
	if a.worker != nil || a.dial != nil {
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	answer := make(chan dialed, 1)
	a.dial, a.dialed = cancel, answer
	h := a.host.Load()
	open := openMessage(a.d.cfg.Open, h)
	go func() {
		w, err := a.d.cfg.Connector.Connect(ctx, h, open)
		if err == nil && ctx.Err() != nil { // the attempt was canceled
			w.Close()
			err = ctx.Err()
		}
		answer <- dialed{h, w, err}
	}()
}

// openMessage completes the first message for the host.
func openMessage(open hosts.Open, h *hosts.Host) *hosts.Open {
	open.Version = hosts.ProtocolVersion
	open.Host, open.WorkDir, open.ShareDir, open.Nice = h.Name, h.WorkDir, h.ShareDir, h.Nice
	open.Pin, open.Owner, open.OwnerIdle, open.Heartbeat = h.Pin, h.Owner, h.OwnerIdle, h.Heartbeat
	open.Slots, open.Less = h.Slots.Fixed, h.Slots.Less
	open.Setup = hosts.JoinSetups(open.Shell, h.Setup, open.Setup)
	open.Sends = open.Sends || len(h.Send) > 0
	return &open
}

func (a *agent) handleConnected(r dialed) {
	a.dial, a.dialed = nil, nil
	if r.err != nil {
		if a.goodbye == nil {
			a.sendEvent(sched.HostDown{Host: a.name, Err: a.checkedFence(r.err)})
		}
		return
	}
	a.worker, a.reports, a.heartbeat = r.worker, r.worker.Reports(), r.host.HeartbeatOrDefault()
	a.reads.Store(hosts.NewPendingReads(a.name, r.worker))
	hello := r.worker.Hello()
	a.hello.Store(hello)
	for _, w := range hello.Warnings {
		a.sendNotice(w)
	}
	a.upHandled, a.answeredAt = false, time.Now()
	if a.goodbye != nil {
		a.sendHost(a.goodbye.message())
		return
	}
	a.sendEvent(sched.HostUp{Host: a.name, Hello: hello, Spec: r.host})
	a.keepAlive()
}

// handleEnd handles the end of the helper, on request or by itself.
func (a *agent) handleEnd(err error) {
	if a.goodbye == nil {
		a.handleLinkDown(err)
		return
	}
	a.clean = a.clean || err == nil
	a.hangUp()
	if !a.clean && a.goodbye.connectOnce && !a.isSecondGoodbye { // it died during cleanup: try once more
		a.isSecondGoodbye = true
		a.connect()
	}
}

// leaveHost leaves the host and ends the agent.
func (a *agent) leaveHost(g *goodbye) {
	a.goodbye = g
	a.clean = !g.connectOnce
	switch {
	case a.worker != nil:
		a.sendHost(g.message())
	case g.connectOnce:
		a.connect() // unless a connection attempt is in progress
	case a.dial != nil:
		a.hangUp()
	}
}

// handleLinkDown handles the end of the link or of the helper.
func (a *agent) handleLinkDown(err error) {
	a.hangUp()
	a.sendEvent(sched.HostDown{Host: a.name, Err: err})
}

// hangUp ends the link or the connection attempt without an event.
func (a *agent) hangUp() {
	if a.dial != nil {
		a.dial()
		late := a.dialed
		go func() { // if the connection succeeds nevertheless, connect closes it
			if r := <-late; r.worker != nil {
				r.worker.Close()
			}
		}()
		a.dial, a.dialed = nil, nil
	}
	for _, b := range a.fetches {
		b.cancel() // before what it reads fails
	}
	if a.worker != nil {
		a.worker.Close()
		a.worker, a.reports, a.keepalives = nil, nil, nil
		a.delay.Store(0)
	}
	if reads := a.reads.Swap(nil); reads != nil {
		reads.End(fmt.Errorf("the link to %s was lost while its output was being read", a.name))
	}
}
