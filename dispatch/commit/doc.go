// Package commit is one turn of the commit loop: an event goes into the core, its
// records go into the journal, and only when they are durable may what follows
// from them leave: launches, results, the end of the run.
//
// It has no goroutine, no clock and no lock: the dispatcher's engine drives it with
// real time, hosts and disks, dispatch/sim with simulated ones, so that the code
// which promises "no start before its durable record" is the code that is simulated.
// It decides nothing about jobs (dispatch/sched does) and carries nothing out.
package commit
