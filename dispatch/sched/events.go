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

// FencedBy returns the epoch of another dispatcher that has taken the run over according to an
// event, or 0.
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
