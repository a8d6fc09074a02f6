package dispatch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
)

// agent is the goroutine that owns one host's link. On request it connects. It passes commands on,
// turns host reports into events, and sends the pings that extend the host's lease. It makes no
// decisions.
type agent struct {
	d          *Dispatcher
	name       string
	host       atomic.Pointer[hosts.Host] // specification for the next connection
	commands   chan any                   // bounded: the engine never waits for it
	overflowed chan struct{}              // holds a signal if a command did not fit
	ctx        context.Context
	cancel     context.CancelFunc          // ends the agent at once
	hello      atomic.Pointer[hosts.Hello] // the newest hello; the engine reads it
	// uptime is the host's clock, in nanoseconds, at the newest heartbeat that the core has handled
	// while it considered the host linked. The engine writes it. Leases start at this time and
	// never later, so the core knows when they have expired.
	uptime atomic.Int64
	delay  atomic.Int64 // newest round trip over the link, in ns; 0: not measured
	// Weight of the host's events that the engine has not handled yet, and a signal that it has
	// handled one.
	unhandled atomic.Int64
	handled   chan struct{}

	numDisconnects int // number of Disconnects sent to it; owned by the engine goroutine

	numServing atomic.Int32                       // Wants that are being answered
	reads      atomic.Pointer[hosts.PendingReads] // nil while not connected
	fetched    chan *fetch                        // fetches that have ended
	transfers  files.Transfers                    // of files that attempts return
	manifests  sync.Map                           // manifests whose beginning was requested, by attempt
	// fetchTokens holds a token for each attempt whose files are being returned, and space is what
	// they reserve. Each host has its own, so a host that announces too much holds up only itself.
	fetchTokens chan struct{}
	space       files.Space

	// The fields below are owned by the agent's goroutine.
	numDisconnected int          // Disconnects carried out
	worker          hosts.Worker // nil while not connected
	reports         <-chan hosts.Message
	heartbeat       time.Duration      // interval of the worker's heartbeats
	dial            context.CancelFunc // ends the connection attempt in flight; nil: there is none
	dialed          chan dialed
	// The core has handled HostUp; before the first ping, because withdrawals must precede it.
	upHandled       bool
	pings           int64
	pingTimer       *time.Timer // expires after pingTimeout without a ping
	pingedAt        time.Time
	answered        int64                // number of the newest ping that the host has received
	answeredAt      time.Time            // time of the last heartbeat of a host that receives pings
	keptAt          time.Time            // time of the last keepalive
	keepalives      chan keepaliveAnswer // answer to the link's keepalive; nil: none is in flight
	filesVersion    int                  // version of the files that every job gets, as last sent to the helper
	fetches         map[jobs.AttemptID]*fetch
	goodbye         *goodbye // nil until it is time to leave
	isSecondGoodbye bool     // the helper died during the first goodbye, and goodbye is the second one
	clean           bool     // the host has no data of the run any more, or never had
}

// dialed is the outcome of a connection attempt.
type dialed struct {
	host   *hosts.Host
	worker hosts.Worker
	err    error
}

// keepaliveAnswer is the answer to a keepalive, and how long it took.
type keepaliveAnswer struct {
	err  error
	took time.Duration
}

// goodbye makes the agent leave its host and end. With endRun, the host ends processes that jobs left
// behind, and with pack it packs the files that it keeps. With connectOnce, an agent that is not
// connected connects once more to do so.
type goodbye struct{ endRun, pack, connectOnce bool }

func (g goodbye) message() hosts.Message { return &hosts.Bye{End: g.endRun, Pack: g.endRun && g.pack} }

// A heartbeat causes a ping if one is due, because the agent is awake then: with 1,000 hosts, waking
// up costs more CPU time than a ping. A heartbeat has the number of the newest ping, so an idle link
// needs no keepalive.
const (
	minPingInterval = 3 * time.Second
	maxPingInterval = 6 * time.Second // a helper leaves after 30 s without a message
	lateHeartbeat   = 2 * time.Second // how long a ping that is due waits for a heartbeat

	keepAliveInterval = time.Minute     // measures the round trip
	minKeepAlive      = 6 * time.Second // minimum between two keepalives
	maxUnanswered     = 5 * time.Second // of pings, before a keepalive is sent
	keepAliveTimeout  = 15 * time.Second

	maxCommands = 1024 // commands that wait for an agent
)

func newAgent(d *Dispatcher, h *hosts.Host) *agent {
	ctx, cancel := context.WithCancel(context.Background())
	a := &agent{
		handled: make(chan struct{}, 1),
		d:       d, name: h.Name, commands: make(chan any, maxCommands), overflowed: make(chan struct{}, 1), ctx: ctx,
		cancel:      cancel,
		fetchTokens: make(chan struct{}, maxHostFetches), space: files.Space{Dir: d.cfg.Files.BaseDir},
		fetched: make(chan *fetch), fetches: map[jobs.AttemptID]*fetch{},
	}
	a.host.Store(h)
	return a
}

// enqueue sends a command to the agent without waiting. It returns false if too many commands wait.
// The agent then cuts its link, and probing finds out what was lost.
func (a *agent) enqueue(command any) bool {
	select {
	case a.commands <- command:
		return true
	default:
		Signal(a.overflowed)
		return false
	}
}

func (a *agent) run() {
	a.pingTimer = time.NewTimer(a.pingTimeout())
	defer func() {
		a.pingTimer.Stop()
		a.hangUp()
		a.cancel()
		// The engine reads until all agents have ended.
		a.d.inputs <- input{call: func(e *engine) { e.agentEnded(a, a.clean) }}
	}()
	for {
		select {
		case <-a.ctx.Done():
			return
		case c := <-a.commands:
			a.handle(c)
		case r := <-a.dialed:
			a.handleConnected(r)
		case m, ok := <-a.reports:
			if !ok {
				a.handleEnd(a.worker.Err())
				break
			}
			a.handleReport(m)
		case f := <-a.fetched:
			a.handleFetched(f)
		case <-a.overflowed:
			a.handleLinkDown(&hosts.Error{Host: a.name, Class: hosts.Broken,
				Err: fmt.Errorf("it does not accept commands: more than %d are waiting", maxCommands)})
		case <-a.pingTimer.C:
			a.pingTimer.Reset(a.pingTimeout())
			if a.upHandled {
				a.ping()
			}
			a.keepAliveIfDue()
		case is := <-a.keepalives:
			a.keepalives = nil
			if is.err == nil && a.worker != nil {
				a.delay.Store(max(1, int64(is.took)))
			}
			if err := is.err; err != nil && a.worker != nil {
				a.handleLinkDown(&hosts.Error{Host: a.name, Class: hosts.Unreachable,
					Err: fmt.Errorf("no answer to the link's keepalive: %w", err)})
			}
		}
		if a.goodbye != nil && a.worker == nil && a.dial == nil {
			return
		}
	}
}

// handle carries out a command.
func (a *agent) handle(command any) {
	switch o := command.(type) {
	case sched.Connect:
		if a.goodbye == nil {
			a.connect()
		}
	case sched.Disconnect:
		a.numDisconnected++
		a.hangUp()
	case sched.Launch:
		for _, m := range a.launchMessages(o) {
			a.sendHost(m)
		}
	case sched.SetLimit:
		a.sendHost(&hosts.Limit{Slots: o.Slots})
		if !a.upHandled {
			a.upHandled = true
			a.ping()
		}
	case sched.SetShare:
		a.sendHost(&o.Share)
	case sched.Withdraw:
		a.sendHost(&hosts.Withdraw{Epoch: a.epoch(), Attempts: o.Attempts})
	case sched.Kill:
		a.cancelFetches(o.Attempts)
		a.sendHost(&hosts.Kill{Epoch: a.epoch(), Attempts: o.Attempts, Why: o.Why})
	case sched.Warn:
		a.sendHost(&hosts.Kill{Epoch: a.epoch(), Attempts: o.Attempts, Warn: true})
	case sched.Probe:
		a.sendHost(&hosts.Probe{Epoch: a.epoch(), Attempts: o.Attempts})
	case sched.List:
		a.sendHost(&hosts.List{Epoch: a.epoch(), Jobs: o.Jobs})
	case sched.Inspect:
		a.sendHost(&hosts.Inspect{Host: o.Host, Attempts: o.Attempts})
	case hosts.Returned:
		a.sendHost(&o)
	case hosts.Pack:
		a.sendHost(&o)
	case goodbye:
		a.leaveHost(&o)
	}
}

// hostClock returns the host's own clock, as far as the core knows it.
func (a *agent) hostClock() time.Duration { return time.Duration(a.uptime.Load()) }

func (a *agent) epoch() int { return a.d.cfg.Open.Epoch }

// sendHost sends a message to the helper. If the link is down, its end arrives on reports, with the
// reason. If a message cannot be sent although the link stays up, the user is notified, and the
// core finds out by probing.
func (a *agent) sendHost(m hosts.Message) {
	if a.worker == nil {
		return
	}
	if err := a.worker.Send(m); err != nil && a.worker.Err() == nil {
		a.sendNotice(fmt.Sprintf("%s could not be sent: %v", m.Kind(), err))
	}
}

// ping keeps the helper alive and extends the lease after the newest heartbeat that the core has
// handled.
func (a *agent) ping() {
	a.pings++
	a.pingedAt = time.Now()
	a.pingTimer.Reset(a.pingTimeout())
	lease := a.hostClock()
	if lease > 0 { // otherwise the host's clock is unknown
		lease += a.lease()
	}
	a.sendChanges()
	a.sendHost(&hosts.Ping{Seq: a.pings, LeaseUptime: lease})
}

// lease returns the length of a lease: lost_after or the buffer time.
func (a *agent) lease() time.Duration {
	return a.d.cfg.Sched.Lease(a.host.Load().LostAfterOrDefault(), a.heartbeat)
}

// pingInterval returns the interval at which pings extend the lease.
func (a *agent) pingInterval() time.Duration {
	return min(max(minPingInterval, a.lease()/10), maxPingInterval)
}

// pingTimeout returns how long after a ping the next one is sent if no heartbeat causes it. A ping that a
// heartbeat causes extends the lease after the heartbeat before, which the core has handled, so that much
// of a short lease has passed by then.
func (a *agent) pingTimeout() time.Duration {
	return max(time.Second, min(a.pingInterval()+lateHeartbeat, (a.lease()-a.heartbeat)/2))
}

// handleHeartbeat does what is due when a heartbeat arrives. ping is the number that it has.
func (a *agent) handleHeartbeat(ping int64) {
	now := time.Now()
	if ping >= a.pings || ping > a.answered { // newer ones may be on their way
		a.answered, a.answeredAt = ping, now
	}
	switch {
	case !a.upHandled:
	case now.Sub(a.pingedAt) >= a.pingInterval()-minPingInterval/2:
		a.ping()
	default:
		a.sendChanges()
	}
	a.keepAliveIfDue()
}

// keepAliveIfDue sends a keepalive if the host does not answer pings, or to measure the round trip.
func (a *agent) keepAliveIfDue() {
	now := time.Now()
	kept := now.Sub(a.keptAt)
	if kept >= keepAliveInterval || kept >= minKeepAlive && now.Sub(a.answeredAt) >= maxUnanswered {
		a.keepAlive()
	}
}

// keepAlive requests an answer from the link itself. If the link answers but no heartbeats arrive,
// the helper is stuck. If it does not answer, the host or the link is gone.
func (a *agent) keepAlive() {
	if a.worker == nil || a.keepalives != nil {
		return
	}
	w, answer := a.worker, make(chan keepaliveAnswer, 1)
	a.keepalives, a.keptAt = answer, time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(a.ctx, keepAliveTimeout)
		defer cancel()
		sent := time.Now()
		err := w.KeepAlive(ctx)
		answer <- keepaliveAnswer{err, time.Since(sent)}
	}()
}

func (a *agent) sendNotice(text string) { a.sendJobNotice(0, text) }

func (a *agent) sendJobNotice(job jobs.ID, text string) {
	a.sendInput(input{notice: &Notice{At: time.Now(), Host: a.name, Job: job, Text: text}})
}

// sendTrouble sends a notice of the host itself, about an attempt if the host has it.
func (a *agent) sendTrouble(id jobs.AttemptID, text string) {
	n := Notice{At: time.Now(), Host: a.name, Text: text}
	a.sendInput(input{call: func(e *engine) {
		if e.core.IsAssigned(a.name, id) {
			n.Job = id.Job
		}
		e.recordNotice(n)
	}})
}

// maxUnhandled bounds the events of a host that wait for the engine, by their weight. One event of
// any weight may always wait.
const maxUnhandled = 4096

// sendEvent sends an event to the engine. Only the agent's goroutine calls it.
func (a *agent) sendEvent(ev sched.Event) {
	for a.unhandled.Load() > maxUnhandled {
		select {
		case <-a.handled:
		case <-a.ctx.Done():
			return
		}
	}
	in := input{ev: ev, from: a, numDisconnects: a.numDisconnected, weight: weight(ev)}
	a.unhandled.Add(int64(in.weight))
	a.sendInput(in)
}

// weight returns the number of elements of an event, at least 1.
func weight(ev sched.Event) int {
	switch ev := ev.(type) {
	case sched.AttemptsStarted:
		return 1 + len(ev.Msg.Jobs)
	case sched.AttemptsEnded:
		return 1 + len(ev.Msg.Jobs)
	case sched.AttemptsProbed:
		return 1 + len(ev.Msg.Jobs)
	case sched.HostListed:
		return 1 + len(ev.Msg.Jobs)
	case sched.AttemptsWithdrawn:
		return 1 + len(ev.Msg.Attempts)
	case sched.HostRefused:
		return 1 + len(ev.Msg.Attempts)
	case sched.HostInspected:
		return 1 + len(ev.Msg.Jobs) + len(ev.Msg.Runs) + len(ev.Msg.Never)
	case sched.HostHeartbeat:
		return 1 + len(ev.Heartbeat.Progress) + len(ev.Heartbeat.Cores) + len(ev.Heartbeat.Reports)
	}
	return 1
}

// release records that the engine has handled an input.
func (in *input) release() {
	if in.from != nil {
		in.from.unhandled.Add(-int64(in.weight))
		Signal(in.from.handled)
	}
}

// sendInput waits until the engine, which always reads, takes the input, or the agent is canceled.
func (a *agent) sendInput(in input) {
	select {
	case a.d.inputs <- in:
	case <-a.ctx.Done():
	}
}
