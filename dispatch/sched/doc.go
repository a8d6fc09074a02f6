// Package sched is the pure core: it decides what runs where and when, and what its
// outcome means. Core.Step takes an instant and an event and returns the records
// to make durable and the commands to carry out afterwards, in that order.
//
// Each policy has a file of its own. Nothing here starts a goroutine, reads a clock,
// locks, sends on a channel, or ranges over a map where the order could be seen.
// Jitter comes from a seeded source in the Core. A test over the syntax trees
// enforces this. The goroutine around the core, the journal, and the hosts are in
// package dispatch.
package sched
