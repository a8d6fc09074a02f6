// Package sched is the pure core: it decides what runs where and when, and what
// becomes of it. Core.Step takes an instant and an event and returns the records
// to make durable and the commands to carry out afterwards, in that order.
//
// One policy stands in one file, as plain functions. Nothing here starts a
// goroutine, reads a clock, locks, sends on a channel, or ranges over a map where
// the order could be seen; jitter comes from a seeded source that the Core holds.
// A test over the syntax trees holds the package to that. The goroutine around
// it, the journal and the hosts are in package dispatch.
package sched
