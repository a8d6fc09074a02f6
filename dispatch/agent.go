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
// passes orders on, turns what the helper reports into events, and sends the
// pings that extend the host's lease. It decides nothing.
type agent struct {
	d      *Dispatcher
	host   *hosts.Host
	mail   chan any // orders and requests; bounded, the engine never waits for it
	ctx    context.Context
	cancel context.CancelFunc
	hello  atomic.Pointer[hosts.Hello] // the newest; read by the engine
	choked chan struct{}               // room for one: an order was dropped

	cutOnce sync.Once

	// The fields below belong to the agent's goroutine.
	worker  hosts.Worker // nil while not connected
	reports <-chan hosts.Message
	dial    context.CancelFunc // ends the connection attempt under way, nil if none
	dialed  chan dialed
	greeted bool          // the core has answered HostUp: withdrawals come before the first ping renews the lease
	uptime  time.Duration // host's clock, as last told
	pings   int64
	alive   chan error // answer of the link's own keepalive, nil if none is under way
	reads   map[int64]readRequest
	readID  int64
	bye     bool
}

// dialed is the outcome of a connection attempt.
type dialed struct {
	worker hosts.Worker
	err    error
}

// goodbye tells the agent to take leave of its host and end.
type goodbye struct{ end bool }

const (
	pingEvery      = 3 * time.Second
	keepAliveEvery = 15 * time.Second
	mailbox        = 4096
)

func newAgent(d *Dispatcher, h *hosts.Host) *agent {
	ctx, cancel := context.WithCancel(context.Background())
	return &agent{
		d: d, host: h, mail: make(chan any, mailbox), ctx: ctx, cancel: cancel,
		choked: make(chan struct{}, 1), reads: map[int64]readRequest{},
	}
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
	if h := a.hello.Load(); h != nil && !h.Shared {
		return a.host.Name + ":" + h.Dir
	}
	return runDir
}

func (a *agent) run() {
	ping := time.NewTicker(pingEvery)
	keep := time.NewTicker(keepAliveEvery)
	defer func() {
		ping.Stop()
		keep.Stop()
		a.hangUp()
		a.cut()
		a.d.inputs <- input{call: func(e *engine) { e.gone++ }} // the engine reads until all have gone
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
		case <-a.choked:
			a.down(&hosts.Error{Host: a.host.Name, Class: hosts.Broken,
				Err: fmt.Errorf("more than %d orders wait for it: it takes none", mailbox)})
		case <-ping.C:
			if a.greeted {
				a.ping()
			}
		case <-keep.C:
			a.keepAlive()
		case err := <-a.alive:
			a.alive = nil
			if err != nil && a.worker != nil {
				a.down(&hosts.Error{Host: a.host.Name, Class: hosts.Unreachable,
					Err: fmt.Errorf("no answer to the link's keepalive: %w", err)})
			}
		}
		if a.bye && a.worker == nil {
			return
		}
	}
}

// obey carries out one order.
func (a *agent) obey(o any) {
	switch o := o.(type) {
	case sched.Connect:
		a.connect()
	case sched.Disconnect:
		a.hangUp()
	case sched.Launch:
		a.say(a.launch(o))
	case sched.SetLimit:
		a.say(&hosts.Limit{Slots: o.Slots})
		if !a.greeted {
			a.greeted = true
			a.ping()
		}
	case sched.Withdraw:
		a.say(&hosts.Withdraw{Epoch: a.epoch(), Attempts: o.Attempts})
	case sched.Kill:
		a.say(&hosts.Kill{Epoch: a.epoch(), Attempts: o.Attempts, Why: o.Why})
	case sched.Probe:
		a.say(&hosts.Probe{Epoch: a.epoch(), Attempts: o.Attempts})
	case readRequest:
		a.read(o)
	case goodbye:
		a.bye = true
		if a.dial != nil {
			a.dial()
		}
		a.say(&hosts.Bye{End: o.end})
	}
}

func (a *agent) epoch() int { return a.d.cfg.Open.Epoch }

// connect starts an attempt to reach the host; its outcome arrives on dialed.
func (a *agent) connect() {
	if a.worker != nil || a.dial != nil || a.bye {
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	answer := make(chan dialed, 1)
	a.dial, a.dialed = cancel, answer
	open := openFor(a.d.cfg.Open, a.host)
	go func() {
		w, err := a.d.cfg.Connector.Connect(ctx, a.host, open)
		if err == nil && ctx.Err() != nil { // nobody waits for it any more
			w.Close()
			err = ctx.Err()
		}
		answer <- dialed{w, err}
	}()
}

// openFor fills in the host's part of the first message.
func openFor(open hosts.Open, h *hosts.Host) *hosts.Open {
	open.Version = hosts.ProtocolVersion
	open.Host, open.WorkDir, open.Nice = h.Name, h.WorkDir, h.Nice
	open.Slots, open.Less = h.Slots.Fixed, h.Slots.Less
	open.Setup = join(h.Setup, open.Setup)
	return &open
}

// join puts one setup after the other.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

func (a *agent) connected(r dialed) {
	a.dial, a.dialed = nil, nil
	if r.err != nil {
		a.tell(sched.HostDown{Host: a.host.Name, Err: r.err})
		return
	}
	a.worker, a.reports = r.worker, r.worker.Reports()
	hello := r.worker.Hello()
	a.uptime = hello.Uptime
	a.hello.Store(hello)
	for _, w := range hello.Warnings {
		a.notice(w)
	}
	a.greeted = false
	a.tell(sched.HostUp{Host: a.host.Name, Hello: hello})
}

// ended notes that the helper has gone: as asked, or by itself.
func (a *agent) ended(err error) {
	if a.bye && err == nil {
		a.hangUp()
		return
	}
	a.down(err)
}

// down notes that the link or the helper is gone and tells the core.
func (a *agent) down(err error) {
	a.hangUp()
	a.tell(sched.HostDown{Host: a.host.Name, Err: err})
}

// hangUp ends the link or the attempt to make one, without a word to the core.
func (a *agent) hangUp() {
	if a.dial != nil {
		a.dial()
		late := a.dialed
		go func() { // a connection that succeeds all the same is closed by connect
			if r := <-late; r.worker != nil {
				r.worker.Close()
			}
		}()
		a.dial, a.dialed = nil, nil
	}
	if a.worker != nil {
		a.worker.Close()
		a.worker, a.reports, a.alive = nil, nil, nil
	}
	a.dropReads()
}

// say sends messages. An error means that the link is down; its end arrives on
// reports, with the reason.
func (a *agent) say(m hosts.Message) {
	if a.worker != nil {
		_ = a.worker.Send(m)
	}
}

// launch adds to an order what the host must know: everything of the job, and
// until when, in the host's own clock, the batch may be accepted. The core
// gives a silent host up no earlier than that.
func (a *agent) launch(o sched.Launch) *hosts.Launch {
	m := &hosts.Launch{Epoch: a.epoch(), ExpireUptime: a.uptime + a.host.LostAfterOrDefault(),
		Jobs: make([]hosts.LaunchJob, len(o.Jobs))}
	for i, p := range o.Jobs {
		s := p.Spec
		m.Jobs[i] = hosts.LaunchJob{
			Attempt: p.Attempt, Command: s.Command, Cwd: s.Cwd, Env: s.Env, Params: s.Params,
			Timeout: p.Timeout, Slots: s.Slots, GPUs: p.GPUs,
		}
		if s.Setup != "" {
			m.Jobs[i].Setup = join(join(a.host.Setup, a.d.cfg.Open.Setup), s.Setup)
		}
	}
	return m
}

// ping keeps the helper alive and extends the lease to lost_after (or the
// buffer time) after the newest sign of life that we have had.
func (a *agent) ping() {
	a.pings++
	lease := max(a.host.LostAfterOrDefault(), a.d.cfg.Open.Buffer)
	a.say(&hosts.Ping{Seq: a.pings, LeaseUptime: a.uptime + lease})
}

// keepAlive asks the link itself for a sign of life: answered without beats, a
// helper is stuck; unanswered, the host or the link is gone.
func (a *agent) keepAlive() {
	if a.worker == nil || a.alive != nil {
		return
	}
	w, answer := a.worker, make(chan error, 1)
	a.alive = answer
	go func() {
		ctx, cancel := context.WithTimeout(a.ctx, keepAliveEvery)
		defer cancel()
		answer <- w.KeepAlive(ctx)
	}()
}

// report turns what the helper said into an event.
func (a *agent) report(m hosts.Message) {
	name := a.host.Name
	switch m := m.(type) {
	case *hosts.Beat:
		a.uptime = m.Uptime
		a.tell(sched.HostBeat{Host: name, Beat: m})
	case *hosts.Started:
		a.tell(sched.AttemptsStarted{Host: name, Msg: m})
	case *hosts.Exits:
		a.tell(sched.AttemptsEnded{Host: name, Msg: m})
	case *hosts.Withdrawn:
		a.tell(sched.AttemptsWithdrawn{Host: name, Msg: m})
	case *hosts.Refused:
		a.tell(sched.HostRefused{Host: name, Msg: m})
	case *hosts.Probed:
		a.tell(sched.AttemptsProbed{Host: name, Msg: m})
	case *hosts.Trouble:
		a.noticeOf(m.Attempt.Job, m.Text)
	case *hosts.Chunk:
		a.chunk(m)
	}
}

func (a *agent) notice(text string) { a.noticeOf(0, text) }

func (a *agent) noticeOf(job jobs.ID, text string) {
	a.send(input{notice: &Notice{At: time.Now(), Host: a.host.Name, Job: job, Text: text}})
}

func (a *agent) tell(ev sched.Event) { a.send(input{ev: ev}) }

// send waits for the engine, which always reads, until the agent is cut.
func (a *agent) send(in input) {
	select {
	case a.d.inputs <- in:
	case <-a.ctx.Done():
	}
}
