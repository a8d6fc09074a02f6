// Package jobs holds the data model of a run: job
// specifications, identifiers, states, attempts, outcomes, the records that the
// journal stores, and Fold, the one place where a record changes a state.
//
// Use it to say what a job is and what happened to it. It decides nothing (see
// dispatch/sched), stores nothing (see jobs/journal) and talks to nobody. It
// imports no other package of ours, and Fold uses no clock, lock, goroutine or
// channel, so that replaying a journal gives what the live run had.
package jobs
