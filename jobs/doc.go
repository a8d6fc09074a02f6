// Package jobs holds the data model of a run: job specifications, identifiers, states, attempts,
// outcomes, the records that the journal stores, and Fold, the only function that changes a state.
//
// The package decides nothing (see dispatch/sched), stores nothing (see jobs/journal), and does no
// communication. It imports no other package of this module. Fold uses no clock, lock, goroutine,
// or channel, so that replaying a journal yields the state of the live run.
package jobs
