// Package sim executes whole runs in a simulated world. The core (dispatch/sched), the commit loop
// (dispatch/commit), the journal and its recovery (jobs/journal over jobs/rundir/memdisk), and the
// claims and sentinels are the production code. Hosts, links, clocks, and disks are simulated and
// fail as the choices decide. Time is virtual, there is one goroutine, and the choices decide
// everything that is random: the same choices give the same world, event by event and byte by byte.
//
// Every step is followed by a check of the invariants, which Invariants lists. They are checked
// against the truth, which is what really happened on the simulated hosts, and against the ledger,
// which is what the journal durably contains. Neither is built with the code under test.
//
// The package is for tests: `make sim SEEDS=n` and the fuzz target. It is not a benchmark. Inside a
// host it simulates only the behavior of helper and supervisor that the dispatcher can notice. The
// tests of hosts/helper/remote and the tests with real faults cover the rest.
package sim
