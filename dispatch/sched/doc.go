// Package sched is the core: it decides which job runs where and when, and what its outcome means.
// New makes a Core from a folded jobs.Table. Core.Step takes an instant and Events, and returns the
// records to make durable and then the Commands to carry out. Core.Next returns when the next Tick
// is due. Why, Hosts, and similar methods describe the state to users.
//
// The package is pure. Each policy has its own file, or its own package below this directory if it
// needs nothing of the core but its inputs. No code starts a goroutine, reads a clock,
// takes a lock, sends on a channel, or iterates over a map where the order could have an effect.
// Jitter comes from a seeded source in the Core. A test of the syntax trees enforces this. Package
// dispatch contains the goroutine around the core, and connects it to the journal and the hosts.
package sched
