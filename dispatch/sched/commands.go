package sched

import (
	"slices"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Command is something to do after the records of the same Step are durable. The commands
// for one host are carried out in their order: Kill and Withdraw come before a SetLimit that
// allows the host to start something, and a SetLimit of zero comes first. To returns that
// host, or "" for the dispatcher itself.
type Command interface{ To() string }

// Connect makes a connection to the host. It is answered by HostUp or HostDown, and ignored
// while there is a connection or one is being made.
type Connect struct{ Host string }

// Disconnect cuts the host's link, if there is one. No HostDown follows.
type Disconnect struct{ Host string }

// Launch sends attempts to a host. The engine adds the environment and the lease.
type Launch struct {
	Host   string
	Jobs   []LaunchItem
	Urgent bool // a slot of the host waits for one of the jobs
}

// LaunchItem is one attempt of a Launch.
type LaunchItem struct {
	Attempt jobs.AttemptID
	Spec    *jobs.Spec
	Timeout time.Duration
	Mem     int64 // memory limit in bytes; 0: none
	GPUs    []int
	Restart int // how many attempts of the job ran before it in this round
}

// SetLimit, SetShare, Withdraw, Kill and Probe are sent to the host as they are.
type (
	SetLimit struct {
		Host  string
		Slots int
	}
	SetShare struct {
		Host  string
		Share hosts.Share
	}
	Withdraw struct {
		Host     string
		Attempts []jobs.AttemptID
	}
	Kill struct {
		Host     string
		Attempts []jobs.AttemptID
		Why      string
	}
	Warn struct { // of their end, by the run's warning signal
		Host     string
		Attempts []jobs.AttemptID
	}
	Probe struct {
		Host     string
		Attempts []jobs.AttemptID
	}
)

// Inspect reads the attempts of Host from the shared directory. Via is a host that answers, or
// "" for the dispatcher's own mount. It is answered by HostInspected, or not at all.
type Inspect struct {
	Host     string
	Via      string
	Attempts []jobs.AttemptID
}

// List asks a host for its attempts of these jobs, or for all its attempts of the run if Jobs
// is nil. It is answered by HostListed.
type List struct {
	Host string
	Jobs jobs.Ranges
}

// RereadInventory asks for the inventory to be read again, because a host cannot be reached: its
// address may have changed.
type RereadInventory struct{}

// Finish reports that the core has nothing left to do, and why. It is returned once. New work
// (Submit, Requeue) that arrives before the engine has stopped cancels it.
type Finish struct {
	How   Finished
	Why   string
	Epoch int // Fenced: epoch of the dispatcher that owns the run
}

// Finished is how a run ended.
type Finished uint8

// The ways to finish. Only AllDone leaves no open job.
const (
	AllDone Finished = iota
	Drained          // asked to drain, or halted by failures
	Reached          // halted by the results for which the user gave --halt
	Stopped          // asked to stop; jobs may be running
	NoHosts          // nothing was possible for Config.GiveUpAfter
	Fenced           // another dispatcher owns the run now
)

// IsIdle reports whether no attempt is alive after this end, as far as the core knows.
func (f Finished) IsIdle() bool { return f == AllDone || f == Drained || f == Reached }

// String returns the name of the way to finish, as in the journal (jobs.ClosedDone …) and in
// live.json.
func (f Finished) String() string { return finishedNames[f] }

var finishedNames = [...]string{jobs.ClosedDone, jobs.ClosedDrained, jobs.ClosedReached, jobs.ClosedStopped,
	jobs.ClosedNoHosts, "fenced"}

// ParseFinished returns the way to finish with this name. ok is false if there is none.
func ParseFinished(name string) (f Finished, ok bool) {
	i := slices.Index(finishedNames[:], name)
	return Finished(max(i, 0)), i >= 0
}

// To returns the host.
func (c Connect) To() string    { return c.Host }
func (c Disconnect) To() string { return c.Host }
func (c Launch) To() string     { return c.Host }
func (c SetLimit) To() string   { return c.Host }
func (c SetShare) To() string   { return c.Host }
func (c Withdraw) To() string   { return c.Host }
func (c Kill) To() string       { return c.Host }
func (c Warn) To() string       { return c.Host }
func (c Probe) To() string      { return c.Host }
func (c Inspect) To() string    { return c.Via }
func (c List) To() string       { return c.Host }
func (Finish) To() string       { return "" }

// To returns "".
func (RereadInventory) To() string { return "" }

// outbox gathers the commands of one Step for a host, so that each kind needs only one message.
type outbox struct {
	disconnect, connect bool
	configure           bool // its specification has changed
	setLimit            bool
	setShare            bool
	list                bool
	probe               []jobs.AttemptID
	kill                []Kill
	warn                []jobs.AttemptID
	withdraw            []jobs.AttemptID
	launch              []LaunchItem
	urgent              bool // a slot waits for one of launch
}

// collectCommands turns the outboxes into commands, in the order of the inventory. Withdrawals and
// a limit of zero come before anything that lets the host start a job (SetLimit). A host that is
// not linked gets only commands about its connection. When it is back, its answer to a Probe
// determines the other commands.
func (c *Core) collectCommands() []Command {
	var commands []Command
	for h := range c.visits() {
		o := &h.outbox
		if o.disconnect {
			commands = append(commands, Disconnect{h.spec.Name})
		}
		if o.configure {
			commands = append(commands, Configure{h.spec.Name, h.spec})
		}
		if o.connect {
			commands = append(commands, Connect{h.spec.Name})
		}
		if h.linked {
			if o.setShare {
				commands = append(commands, SetShare{h.spec.Name, h.sentShare})
			}
			none := o.setLimit && h.limit == 0
			if none { // first, or a job that is being withdrawn could start
				commands = append(commands, SetLimit{h.spec.Name, 0})
			}
			if o.list {
				h.listsAwaited++
				commands = append(commands, List{h.spec.Name, c.rangesToList()})
			}
			if len(o.probe) > 0 {
				commands = append(commands, Probe{h.spec.Name, o.probe})
			}
			if len(o.warn) > 0 {
				commands = append(commands, Warn{h.spec.Name, o.warn})
			}
			for _, k := range o.kill {
				commands = append(commands, k)
			}
			if len(o.withdraw) > 0 {
				commands = append(commands, Withdraw{h.spec.Name, o.withdraw})
			}
			if o.setLimit && !none {
				commands = append(commands, SetLimit{h.spec.Name, h.limit})
			}
			if len(o.launch) > 0 {
				commands = append(commands, Launch{h.spec.Name, o.launch, o.urgent})
			}
		}
		h.outbox = outbox{}
	}
	return commands
}

// kill ends an attempt on a host that is linked.
func (h *host) kill(id jobs.AttemptID, why string) {
	if !h.linked {
		return
	}
	h.touch()
	if n := len(h.outbox.kill); n > 0 && h.outbox.kill[n-1].Why == why {
		h.outbox.kill[n-1].Attempts = append(h.outbox.kill[n-1].Attempts, id)
		return
	}
	h.outbox.kill = append(h.outbox.kill, Kill{h.spec.Name, []jobs.AttemptID{id}, why})
}

// warnAttempts warns the running attempts of a host of their end, each once.
func (h *host) warnAttempts() {
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if f.started && !f.killed && !f.warned && h.linked {
			f.warned = true
			h.touch()
			h.outbox.warn = append(h.outbox.warn, f.id)
		}
	}
}

// killAttempt ends an open attempt. The command is repeated after a lost link.
func (c *Core) killAttempt(f *inFlight, why string) {
	f.killed = true
	f.host.kill(f.id, why)
}

// withdraw withdraws an attempt that has not started. Without a link, or after one that is cut, that is done when
// the host is back and still has the attempt waiting.
func (h *host) withdraw(f *inFlight) {
	if f.isWaiting() {
		f.withdrawn = true
		h.sendWithdrawal(f)
	}
}

// sendWithdrawal asks a host that is linked for an attempt that is withdrawn.
func (h *host) sendWithdrawal(f *inFlight) {
	h.touch()
	if h.linked {
		h.outbox.withdraw = append(h.outbox.withdraw, f.id)
	}
}

// withdrawAll withdraws everything that has not started.
func (h *host) withdrawAll() { h.withdrawKinds(^blame.Kinds(0)) }

// withdrawKinds withdraws the jobs of some kinds that have not started.
func (h *host) withdrawKinds(kinds blame.Kinds) {
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if f.kind&kinds != 0 {
			h.withdraw(f)
		}
	}
}
