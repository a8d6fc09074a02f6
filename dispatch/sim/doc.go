// Package sim runs whole runs in a simulated world: the real core (dispatch/sched),
// the real turn (dispatch/commit), the real journal and its recovery (jobs/journal over
// jobs/rundir/memdisk), the real claims and sentinels, against hosts, links, clocks
// and disks that fail as their choices says. Time is virtual, there is one goroutine,
// and everything that is chosen is drawn from the choices: the same choices gives the same
// world, event by event and byte by byte.
//
// After every step the invariants are checked (Invariants names them): against the
// truth, which is what really happened on the simulated hosts, and against the
// ledger, which is what the journal durably says. Neither uses the code that is
// tested to find out.
//
// It is for tests: `make sim SEEDS=n`, and the fuzz target. It is no benchmark, and
// it does not simulate what helper and supervisor do inside a host beyond what the
// dispatcher can notice: the tests of hosts/helper/remote and those with real faults
// are about that.
package sim
