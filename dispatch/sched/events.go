package sched

import (
	"errors"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Time is an instant as the core sees it. Mono measures every wait; it is
// CLOCK_MONOTONIC since the dispatcher started, which stands still while the
// machine sleeps, so that a laptop that wakes up does not think that its hosts
// were silent. Wall is only written into records and shown to people.
type Time struct {
	Mono time.Duration
	Wall jobs.Stamp
}

// Event is something that happened or was asked for.
type Event interface{ event() }

// Submit adds jobs to the run. Their ids follow those the core has.
type Submit struct {
	Specs []*jobs.Spec
	Last  bool // no more will come (end of the jobs file or of standard input); also on resume, with no Specs
}

// HostUp reports that a helper answers on the host.
type HostUp struct {
	Host  string
	Hello *hosts.Hello
	At    *hosts.Host // how it was reached; nil: as the core knows the host
}

// HostBeat is a heartbeat with measurements.
type HostBeat struct {
	Host string
	Beat *hosts.Beat
}

// HostDown reports that the host could not be reached (a failed Connect) or that
// its link or helper ended. Every attempt there is now of unknown fate.
type HostDown struct {
	Host string
	Err  error // its hosts.Class counts
}

// HostRefused is a batch of attempts the helper did not take; they never start.
type HostRefused struct {
	Host string
	Msg  *hosts.Refused
}

// AttemptsStarted, AttemptsEnded, AttemptsWithdrawn and AttemptsProbed carry
// what the helper reported of attempts.
type (
	AttemptsStarted struct {
		Host string
		Msg  *hosts.Started
	}
	AttemptsEnded struct {
		Host string
		Msg  *hosts.Exits
	}
	AttemptsWithdrawn struct {
		Host string
		Msg  *hosts.Withdrawn
	}
	AttemptsProbed struct {
		Host string
		Msg  *hosts.Probed
	}
)

// HostLooked is what the shared directory shows of the attempts of Msg.Host, a host
// that cannot be asked itself. Via is who looked: another host, or "", the
// dispatcher on its own mount.
type HostLooked struct {
	Via string
	Msg *hosts.Looked
}

// HostListed is a piece of what a host knows of all attempts of the run.
type HostListed struct {
	Host string
	Msg  *hosts.Listed
}

// Cancel ends jobs, whatever open state they are in; terminal ones are left alone.
type Cancel struct {
	Jobs []jobs.ID // nil with All
	All  bool
	Why  string
}

// Requeue opens a new round for terminal jobs, and for those that are being canceled as
// soon as they are over; other open ones are left alone.
type Requeue struct{ Jobs []jobs.ID }

// SetPriority changes the priority of jobs.
type SetPriority struct {
	Jobs     []jobs.ID
	Priority int
}

// Pause stops launching or lets it continue at the request of a person; running jobs continue. A
// pause is recorded, and applies to the next dispatcher, too, until a person continues.
type Pause struct{ On bool }

// Hold stops launching or lets it continue for a reason of the program itself. A Hold does not
// end a Pause, nor a Pause a Hold; nothing is launched while there is any.
type Hold struct {
	By Holder
	On bool
}

// Holder is the reason of a Hold.
type Holder uint8

const (
	HoldJournal  Holder = 1 << iota // the journal cannot be written
	HoldRequests                    // waiting requests are carried out first, or are all that is done
)

// Drain stops launching, withdraws what is buffered, and finishes when nothing runs
// any more. Stop finishes at once and leaves running jobs running.
type (
	Drain struct{ Why string }
	Stop  struct{ Why string }
)

// EndDrain ends a drain that has not finished yet, so launching continues.
type EndDrain struct {
	Of  string // ends only a drain for this reason; "": any drain
	Why string // for the event log
}

// DrainHost finishes what runs on a host and starts nothing more there; with On
// false the host is used again. With Now its jobs are stopped and queued again. It holds
// until that is taken back, also for later dispatchers.
type DrainHost struct {
	Host string
	On   bool
	Now  bool
}

// Acked reports that results up to Seq have reached the consumer.
type Acked struct{ Seq int64 }

// Tick lets waits that have run out take effect. Whoever drives the core gives one
// when Core.Next asks for it: a gap of more than 6 s between two Steps passes for a
// stall of the dispatcher itself (lost.go).
type Tick struct{}

func (Submit) event()            {}
func (HostUp) event()            {}
func (HostBeat) event()          {}
func (HostDown) event()          {}
func (HostRefused) event()       {}
func (AttemptsStarted) event()   {}
func (AttemptsEnded) event()     {}
func (AttemptsWithdrawn) event() {}
func (AttemptsProbed) event()    {}
func (HostLooked) event()        {}
func (HostListed) event()        {}
func (Cancel) event()            {}
func (Requeue) event()           {}
func (SetPriority) event()       {}
func (Pause) event()             {}
func (Hold) event()              {}
func (EndDrain) event()          {}
func (Drain) event()             {}
func (Stop) event()              {}
func (DrainHost) event()         {}
func (Acked) event()             {}
func (Tick) event()              {}

// Command is something to do after the records of the same Step are durable. The
// commands of a Step for one host are to be carried out in their order: what a host
// must not start (Kill, Withdraw) comes before its leave to start (SetLimit), and that it
// may start nothing at all comes first. To is that host; "" is the dispatcher itself.
type Command interface{ To() string }

// Connect asks for a connection to the host now. Answered by HostUp or HostDown;
// to be ignored while there is one or one is being made.
type Connect struct{ Host string }

// Disconnect cuts the host's link, if there is one; no HostDown follows.
type Disconnect struct{ Host string }

// Launch hands attempts to a host. The engine adds environment and lease.
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
	Mem     int64 // what it may use, in bytes; 0: no limit
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

// Look asks Via (a host that answers, or "" for the dispatcher's own mount) what
// the shared directory shows of the attempts of Host. Answered by HostLooked, or
// not at all.
type Look struct {
	Host     string
	Via      string
	Attempts []jobs.AttemptID
}

// List asks a host for its attempts of these jobs, or, without Jobs, for everything
// that it has of the run. HostListed is the answer.
type List struct {
	Host string
	Jobs jobs.Ranges
}

// Finish reports that the core has nothing left to do, and why. It is given once;
// new work (Submit, Requeue) before the engine has stopped takes it back.
type Finish struct {
	How   Finished
	Why   string
	Epoch int // Fenced: of the dispatcher that owns the run
}

// Finished is how a run came to its end.
type Finished uint8

// The ways to finish. Only AllDone leaves no open job.
const (
	AllDone Finished = iota
	Drained          // asked to drain, or --halt
	Stopped          // asked to stop; jobs may be running
	NoHosts          // no host could be used for --give-up
	Fenced           // another dispatcher owns the run now
)

// String returns the word for the way to finish that is in the journal (jobs.ClosedDone …) and in live.json.
func (f Finished) String() string {
	return [...]string{jobs.ClosedDone, jobs.ClosedDrained, jobs.ClosedStopped, jobs.ClosedNoHosts, "fenced"}[f]
}

// To describes who is to carry the order out.
func (o Connect) To() string    { return o.Host }
func (o Disconnect) To() string { return o.Host }
func (o Launch) To() string     { return o.Host }
func (o SetLimit) To() string   { return o.Host }
func (o SetShare) To() string   { return o.Host }
func (o Withdraw) To() string   { return o.Host }
func (o Kill) To() string       { return o.Host }
func (o Warn) To() string       { return o.Host }
func (o Probe) To() string      { return o.Host }
func (o Look) To() string       { return o.Via }
func (o List) To() string       { return o.Host }
func (Finish) To() string       { return "" }

// FencedBy is the epoch of another dispatcher of which an event tells that it has taken
// the run over; 0: of none.
func FencedBy(ev Event) int {
	switch ev := ev.(type) {
	case HostRefused:
		return ev.Msg.FencedBy
	case HostDown:
		var fenced *hosts.FencedError
		if errors.As(ev.Err, &fenced) {
			return fenced.By
		}
	}
	return 0
}

// outbox gathers what one step wants of a host, so that it leaves in one message
// of each kind.
type outbox struct {
	disconnect, connect bool
	spec                bool // its specification has changed
	limit               bool
	share               bool
	list                bool
	probe               []jobs.AttemptID
	kill                []Kill
	warn                []jobs.AttemptID
	withdraw            []jobs.AttemptID
	launch              []LaunchItem
	urgent              bool // a slot waits for one of launch
}

// collect turns the outboxes into commands, host by host in inventory order. A
// host is told what it must not start, and a limit of zero, before it is allowed to start something
// (SetLimit). A host that is not linked gets only connection commands: its answer to the Probe, when
// it is back, decides what else it is told.
func (c *Core) collect() []Command {
	var commands []Command
	for _, h := range c.hosts {
		o := &h.outbox
		if o.disconnect {
			commands = append(commands, Disconnect{h.spec.Name})
		}
		if o.spec {
			commands = append(commands, Configure{h.spec.Name, h.spec})
		}
		if o.connect {
			commands = append(commands, Connect{h.spec.Name})
		}
		if h.linked {
			if o.share {
				commands = append(commands, SetShare{h.spec.Name, h.sentShare})
			}
			none := o.limit && h.limit == 0
			if none { // or some of what is to come back could start before it is told
				commands = append(commands, SetLimit{h.spec.Name, 0})
			}
			if o.list {
				commands = append(commands, List{h.spec.Name, c.toList()})
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
			if o.limit && !none {
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

// kill asks for the end of an attempt on a host.
func (h *host) kill(id jobs.AttemptID, why string) {
	if !h.linked {
		return
	}
	if n := len(h.outbox.kill); n > 0 && h.outbox.kill[n-1].Why == why {
		h.outbox.kill[n-1].Attempts = append(h.outbox.kill[n-1].Attempts, id)
		return
	}
	h.outbox.kill = append(h.outbox.kill, Kill{h.spec.Name, []jobs.AttemptID{id}, why})
}

// warnAttempts warns what runs on a host that its end is near, each attempt once.
func (h *host) warnAttempts() {
	for f := h.head; f != nil; f = f.next {
		if f.started && !f.killed && !f.warned && h.linked {
			f.warned = true
			h.outbox.warn = append(h.outbox.warn, f.id)
		}
	}
}

// killFlight asks for the end of an open attempt; repeated after a lost link.
func (c *Core) killAttempt(f *inFlight, why string) {
	f.killed = true
	f.host.kill(f.id, why)
}

// withdraw asks a buffered attempt back.
func (h *host) withdraw(f *inFlight) {
	if f.isWaiting() && h.linked {
		f.withdrawn = true
		h.outbox.withdraw = append(h.outbox.withdraw, f.id)
	}
}

// withdrawAll asks back whatever has not started.
func (h *host) withdrawAll() {
	for f := h.head; f != nil; f = f.next {
		h.withdraw(f)
	}
}
