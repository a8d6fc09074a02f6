// Package sched is the core: it decides which job runs where and when, and what its outcome means.
// New makes a Core from a folded jobs.Table. Core.Step takes an instant and Events, and returns the
// records to make durable and then the Commands to carry out. Core.Next returns when the next Tick
// is due. Why, Hosts, and similar methods describe the state to users.
//
// A policy that needs nothing of the core but its inputs is a package below this one: after, blame,
// fairshare, forecast, halt, and hardness. The other policies have a file each here, because they
// read and change hosts and attempts within a Step. Pools and reservations compare the classes of
// ready jobs. Probation and verdicts about jobs pause hosts, withdraw attempts, and ask which hosts
// could take a job. Backoff is one function of the Core's seeded source.
//
// The package is pure. No code starts a goroutine, reads a clock, takes a lock, sends on a channel,
// or iterates over a map where the order could have an effect. Jitter comes from a seeded source in
// the Core. A test of the syntax trees enforces this. Package dispatch contains the goroutine around
// the core, and connects it to the journal and the hosts.
package sched
