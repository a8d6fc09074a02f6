// Package commit implements the commit loop. An event goes into the core, its records go into the
// journal, and its effects are released only when the records are durable. These effects are
// launches, results, and the end of the run. A Loop has one method for each part of a turn: Step
// passes events to the core, Flush returns the records to write, Flushed takes the result, and an
// Out holds the commands that are released.
//
// The package has no goroutine, no clock, and no lock. The dispatcher's engine drives it with real
// time, hosts, and disks; dispatch/sim drives it with simulated ones. Thus the code that guarantees
// "no start before its durable record" is the code that is simulated. The package makes no
// decisions about jobs, which dispatch/sched does, and carries out no commands.
package commit
