package sched

import (
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Time is an instant. Mono measures every wait. It is CLOCK_MONOTONIC since the dispatcher
// started, which stands still while the machine sleeps, so a laptop that wakes up does not
// consider its hosts silent. Wall is only written into records and shown to people.
type Time struct {
	Mono time.Duration
	Wall jobs.Stamp
}

// Event is something that happened or was requested. Its apply method is declared in the file of
// the policy that it concerns.
type Event interface{ apply(c *Core) }

// Submit adds jobs to the run. Their ids follow those that the core has.
type Submit struct {
	Specs []*jobs.Spec
	// No more will follow (end of the jobs file or of standard input); also on resume, without
	// Specs.
	Last bool
}

// HostUp reports that a helper responds on the host.
type HostUp struct {
	Host  string
	Hello *hosts.Hello
	Spec  *hosts.Host // how it was reached; nil: by the core's specification
	// The dispatcher may have lost the run, so no lease of the host can begin (OwnershipTime).
	Unowned bool
}

// HostHeartbeat is a heartbeat of a host, with measurements.
type HostHeartbeat struct {
	Host      string
	Heartbeat *hosts.Heartbeat
	Unowned   bool // as in HostUp
}

// HostDown reports that a Connect failed, or that the link or the helper ended. The fate of every
// attempt there is unknown from then on.
type HostDown struct {
	Host string
	Err  error // its hosts.Class matters
}

// HostRefused reports attempts that the helper has refused. They never start.
type HostRefused struct {
	Host string
	Msg  *hosts.Refused
}

// AttemptsStarted, AttemptsEnded, AttemptsWithdrawn, and AttemptsProbed contain what a helper
// reported about attempts.
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

// HostInspected reports what the shared directory contains about the attempts of Msg.Host, a host
// that cannot be queried itself. Via is the inspector: another host, or "" for the dispatcher's own
// mount.
type HostInspected struct {
	Via string
	Msg *hosts.Inspected
}

// HostListed is a part of a host's answer to List.
type HostListed struct {
	Host string
	Msg  *hosts.Listed
}

// Cancel ends jobs in any open state. It leaves finished jobs alone.
type Cancel struct {
	Jobs       []jobs.ID // nil if All is set
	All        bool
	Why        string
	ReasonKind jobs.ReasonKind
}

// Requeue opens a new round for finished jobs, and for jobs that are being canceled as soon as
// they have ended. It leaves other open jobs alone.
type Requeue struct{ Jobs []jobs.ID }

// SetPriority sets the priority of jobs to Priority, or adds Priority to it if Relative.
type SetPriority struct {
	Jobs     []jobs.ID
	Priority int
	Relative bool
}

// Pause stops or continues launching at a person's request. Running jobs continue. A pause is
// recorded, and also applies to later dispatchers, until a person continues.
type Pause struct{ On bool }

// Hold stops or continues launching for a reason of the program itself. Nothing is launched while
// there is a Hold or a Pause. Neither ends the other.
type Hold struct {
	By Holder
	On bool
}

// Holder is the reason of a Hold.
type Holder uint8

const (
	HoldJournal Holder = 1 << iota // the journal cannot be written
	// Pending requests must be carried out first, or are the only work.
	HoldRequests
	// Files of attempts that have ended must be packed first. Unlike the others, it is no pause: hosts start
	// the jobs that they have already.
	HoldFiles
)

// Drain stops launching, withdraws buffered jobs, and finishes when no job runs any more. Stop
// finishes immediately and leaves running jobs running.
type (
	Drain struct {
		Why   string
		Cause DrainCause
	}
	Stop struct{ Why string }
)

// DrainCause is what asked for a Drain.
type DrainCause uint8

// The causes of a drain.
const (
	DrainAsked     DrainCause = iota // a person
	DrainByFile                      // a STOP file
	DrainHalted                      // results, as Config.Halt requires
	DrainNoCommand                   // attempts that did not find their commands
)

// EndDrain ends a drain that has not finished yet, so launching continues.
type EndDrain struct {
	OnlyByFile bool   // ends only a drain that a STOP file asked for
	Why        string // for the event log
}

// DrainHost takes a host out of use: its running jobs finish, and no more start. If On is false,
// the host is used again. If Now is set, its jobs are stopped and queued again. The request remains
// in effect until it is withdrawn, even under later dispatchers.
type DrainHost struct {
	Host string
	On   bool
	Now  bool
}

// Acked reports that results up to Seq have reached the consumer.
type Acked struct{ Seq int64 }

// Tick makes expired waits take effect. The driver of the core sends one at the time that Core.Next
// returns. A gap of more than 6 s between two Steps is treated as a stall of the dispatcher
// (outage.go).
type Tick struct{}

func (Tick) apply(*Core) {}

func (e Acked) apply(c *Core) {
	if e.Seq > c.table.Acked && e.Seq <= c.table.Seq {
		c.emit(jobs.Record{Kind: jobs.KindAcked, Seq: e.Seq})
	}
}

// Log is an event for people about the run as a whole.
type Log struct{ Text string }

func (e Log) apply(c *Core) { c.logf("", 0, "%s", e.Text) }

func (e Hold) apply(c *Core) {
	c.holders &^= e.By
	if e.On {
		c.holders |= e.By
	}
}
