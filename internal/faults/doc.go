// Package faults runs the whole program on a lab of failing machines: four OpenSSH hosts and two
// desks (machines for dispatchers). Each has its own network, process table, mounts, clock, and
// name (Linux namespaces). A bridge and a small shared directory connect them. The tests kill and
// stop processes, cut links, power machines off, and fill the shared directory. Afterwards they
// check the promises against the marks that the jobs wrote and against all remaining processes.
//
// The package has only tests. It needs root. Nothing of it is visible outside the lab's namespaces,
// and everything in them ends with the test.
package faults
