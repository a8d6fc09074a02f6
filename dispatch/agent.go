package dispatch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// agent is the goroutine that owns one host's link: it connects when told to,
// passes commands on, turns what the helper reports into events, and sends the
// pings that extend the host's lease. It decides nothing.
type agent struct {
	d      *Dispatcher
	name   string
	host   atomic.Pointer[hosts.Host] // by which it connects
	mail   chan any                   // commands and requests; bounded, the engine never waits for it
	ctx    context.Context
	cancel context.CancelFunc
	hello  atomic.Pointer[hosts.Hello] // the newest; read by the engine
	choked chan struct{}               // room for one: an order was dropped
	// uptime is the host's clock as of the newest heartbeat that the core has
	// taken note of while it held the host for linked; written by the engine. Leases
	// are counted from it and from nothing later, so that the core, which knows when
	// it saw that sign, also knows when they have run out.
	uptime atomic.Int64
	delay  atomic.Int64 // the newest round trip over the link, ns; 0: not measured

	disconnects int // Disconnects given to it; of the engine's goroutine

	pieces   chan piece    // for Wants of the host
	brought  chan *bring   // what it returns is here, or will not be
	transfer transfer      // what is being brought from it
	texts    sync.Map      // manifests of which the beginning was asked for, by attempt
	reading  chan struct{} // a token for each read that is under way

	cutOnce sync.Once

	// The fields below belong to the agent's goroutine.
	cuts     int          // Disconnects obeyed
	worker   hosts.Worker // nil while not connected
	reports  <-chan hosts.Message
	dial     context.CancelFunc // ends the connection attempt under way, nil if none
	dialed   chan dialed
	greeted  bool // the core has answered HostUp: withdrawals come before the first ping renews the lease
	pings    int64
	alive    chan alive // answer of the link's own keepalive, nil if none is under way
	reads    map[int64]readRequest
	readID   int64
	serving  int // Wants that are being answered
	version  int // of what every job gets, as the helper was last told
	bringing map[jobs.AttemptID]*bring
	bye      *goodbye // nil until it is time to leave
	again    bool     // leave was taken twice: the first time the helper died over it
	clean    bool     // nothing of the run is left on the host, or nothing was
}

// dialed is the outcome of a connection attempt.
type dialed struct {
	host   *hosts.Host
	worker hosts.Worker
	err    error
}

// alive is the answer to a keepalive, and how long it took.
type alive struct {
	err  error
	took time.Duration
}

// goodbye tells the agent to take leave of its host and end. With end the host
// is cleaned of what jobs left behind; one that was used is looked for once more
// if it is not connected.
type goodbye struct{ end, used bool }

const (
	pingEvery      = 3 * time.Second
	keepAliveEvery = 15 * time.Second
	mailbox        = 1024
)

func newAgent(d *Dispatcher, h *hosts.Host) *agent {
	ctx, cancel := context.WithCancel(context.Background())
	a := &agent{
		d: d, name: h.Name, mail: make(chan any, mailbox), ctx: ctx, cancel: cancel,
		choked: make(chan struct{}, 1), reads: map[int64]readRequest{}, reading: make(chan struct{}, maxHostReads),
		pieces: make(chan piece), brought: make(chan *bring), bringing: map[jobs.AttemptID]*bring{},
	}
	a.host.Store(h)
	return a
}

// give hands over an order without ever waiting. An agent whose mailbox is full
// cannot keep up with its host: false, and its link is cut; what was lost on the
// way is found out by probing when the host is back.
func (a *agent) give(o any) bool {
	select {
	case a.mail <- o:
		return true
	default:
		select {
		case a.choked <- struct{}{}:
		default:
		}
		return false
	}
}

// cut ends the agent at once.
func (a *agent) cut() { a.cutOnce.Do(a.cancel) }

// filesDir returns the directory that holds the attempts of this host: the run
// directory, or "host:dir" when the host does not share it.
func (a *agent) filesDir(runDir string) string {
	switch h := a.hello.Load(); {
	case h == nil && a.d.cfg.HostDirs[a.name] != "":
		return a.d.cfg.HostDirs[a.name]
	case h == nil || h.Shared:
		return runDir
	default:
		return a.name + ":" + h.Dir
	}
}

func (a *agent) run() {
	ping := time.NewTicker(pingEvery)
	keep := time.NewTicker(keepAliveEvery)
	defer func() {
		ping.Stop()
		keep.Stop()
		a.hangUp()
		a.cut()
		a.d.inputs <- input{call: func(e *engine) { e.left(a, a.clean) }} // the engine reads until all have gone
	}()
	for {
		select {
		case <-a.ctx.Done():
			return
		case o := <-a.mail:
			a.obey(o)
		case r := <-a.dialed:
			a.connected(r)
		case m, ok := <-a.reports:
			if !ok {
				a.ended(a.worker.Err())
				break
			}
			a.report(m)
		case p := <-a.pieces:
			a.serving--
			if p.to == a.worker {
				a.say(p.msg)
			}
		case b := <-a.brought:
			a.returned(b)
		case <-a.choked:
			a.down(&hosts.Error{Host: a.name, Class: hosts.Broken,
				Err: fmt.Errorf("it does not accept commands: more than %d are waiting", mailbox)})
		case <-ping.C:
			if a.greeted {
				a.ping()
			}
		case <-keep.C:
			a.keepAlive()
		case is := <-a.alive:
			a.alive = nil
			if is.err == nil && a.worker != nil {
				a.delay.Store(max(1, int64(is.took)))
			}
			if err := is.err; err != nil && a.worker != nil {
				a.down(&hosts.Error{Host: a.name, Class: hosts.Unreachable,
					Err: fmt.Errorf("no answer to the link's keepalive: %w", err)})
			}
		}
		if a.bye != nil && a.worker == nil && a.dial == nil {
			return
		}
	}
}

// obey carries out one order.
func (a *agent) obey(o any) {
	switch o := o.(type) {
	case sched.Connect:
		if a.bye == nil {
			a.connect()
		}
	case sched.Disconnect:
		a.cuts++
		a.hangUp()
	case sched.Launch:
		for _, m := range a.launches(o) {
			a.say(m)
		}
	case sched.SetLimit:
		a.say(&hosts.Limit{Slots: o.Slots})
		if !a.greeted {
			a.greeted = true
			a.ping()
		}
	case sched.SetShare:
		a.say(&o.Share)
	case sched.Withdraw:
		a.say(&hosts.Withdraw{Epoch: a.epoch(), Attempts: o.Attempts})
	case sched.Kill:
		a.endBringing(o.Attempts)
		a.say(&hosts.Kill{Epoch: a.epoch(), Attempts: o.Attempts, Why: o.Why})
	case sched.Warn:
		a.say(&hosts.Kill{Epoch: a.epoch(), Attempts: o.Attempts, Warn: true})
	case sched.Probe:
		a.say(&hosts.Probe{Epoch: a.epoch(), Attempts: o.Attempts})
	case sched.List:
		a.say(&hosts.List{Epoch: a.epoch(), Jobs: o.Jobs})
	case sched.Look:
		a.say(&hosts.Look{Host: o.Host, Attempts: o.Attempts})
	case hosts.Returned:
		a.say(&o)
	case readRequest:
		a.read(o)
	case goodbye:
		a.leave(&o)
	}
}

// clock is the host's own, as the core knows it.
func (a *agent) clock() time.Duration { return time.Duration(a.uptime.Load()) }

func (a *agent) epoch() int { return a.d.cfg.Open.Epoch }

// say sends a message. An error means that the link is down; its end arrives on
// reports, with the reason. What could not be sent on a link that stays up is
// said: the core finds out by probing.
func (a *agent) say(m hosts.Message) {
	if a.worker == nil {
		return
	}
	if err := a.worker.Send(m); err != nil && a.worker.Err() == nil {
		a.notice(fmt.Sprintf("%s could not be sent: %v", m.Word(), err))
	}
}

// ping keeps the helper alive and extends the lease to lost_after (or the
// buffer time) after the newest heartbeat that we have had.
func (a *agent) ping() {
	a.pings++
	lease := a.clock()
	if lease > 0 { // otherwise nothing is known of its clock that leases could be counted from
		lease += a.d.cfg.Sched.Lease(a.host.Load().LostAfterOrDefault())
	}
	a.tellChanges()
	a.say(&hosts.Ping{Seq: a.pings, LeaseUptime: lease})
}

// keepAlive asks the link itself for a heartbeat: answered without heartbeats, a
// helper is stuck; unanswered, the host or the link is gone.
func (a *agent) keepAlive() {
	if a.worker == nil || a.alive != nil {
		return
	}
	w, answer := a.worker, make(chan alive, 1)
	a.alive = answer
	go func() {
		ctx, cancel := context.WithTimeout(a.ctx, keepAliveEvery)
		defer cancel()
		sent := time.Now()
		err := w.KeepAlive(ctx)
		answer <- alive{err, time.Since(sent)}
	}()
}

func (a *agent) notice(text string) { a.noticeOf(0, text) }

func (a *agent) noticeOf(job jobs.ID, text string) {
	a.send(input{notice: &Notice{At: time.Now(), Host: a.name, Job: job, Text: text}})
}

func (a *agent) tell(ev sched.Event) { a.send(input{ev: ev, from: a, cuts: a.cuts}) }

// send waits for the engine, which always reads, until the agent is cut.
func (a *agent) send(in input) {
	select {
	case a.d.inputs <- in:
	case <-a.ctx.Done():
	}
}
