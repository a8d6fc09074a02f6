package action

import "fmt"

// Effect is what becomes of a request. The Table declares it for each kind of request.
type Effect uint8

// The effects. Nothing is written for a request that IsRefused or IsFulfilled.
const (
	// The dispatcher carries the request out. Without one, the program that makes the request takes
	// the run over to do that.
	IsCarriedOut Effect = iota
	IsLeft              // it waits in the run directory for the next resume
	IsFulfilled         // what it asks for is so already
	IsRefused           // it could do nothing
)

// Target is the state of the run that a request is for.
type Target struct {
	IsDispatched bool // somebody dispatches the run
	// Nobody does, all jobs have ended, and neither the input nor a waiting request adds more.
	IsFinished bool
}

// EffectOn returns what becomes of the request.
func (q *Request) EffectOn(t Target) Effect {
	k := Table[q.Do]
	switch {
	case t.IsDispatched, q.Do == Resume:
		return IsCarriedOut
	case t.IsFinished:
		return k.finished
	case q.Do == Slots && q.Relative: // the number of slots is known only when the host is connected
		return IsRefused
	case q.Do == Cancel && q.Spare == SpareStarted: // without a dispatcher nobody knows which have started
		return IsLeft
	}
	return k.stopped
}

// WhyRefused returns why a request that IsRefused could do nothing.
func (q *Request) WhyRefused(t Target) string {
	k := Table[q.Do]
	switch {
	case k.stopped == IsRefused:
		return k.whyStopped
	case t.IsFinished:
		return fmt.Sprintf("all jobs of the run have ended: %q would have no effect", k.text(q))
	}
	return fmt.Sprintf("nobody dispatches the run, so the slots of %s are not known; ask for a number instead", q.Host)
}

// AddsJobs reports whether a request may give a finished run jobs to run.
func (q *Request) AddsJobs() bool { return Table[q.Do].addsJobs }
