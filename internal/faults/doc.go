// Package faults runs the whole program on a lab of real machines that fail: four OpenSSH hosts and two
// dispatchers' machines, each with a network, a process table, mounts, a clock and a name of its own (Linux
// namespaces), joined by a bridge and by one small shared directory. Processes are killed and stopped,
// links are cut, machines lose their power, the shared directory fills up; afterwards the promises
// are checked against what the jobs themselves wrote down and against every process that is left.
//
// It is tests only and has no code to use. It needs root; nothing of it is seen outside the lab's
// namespaces, and everything in them ends with the test.
package faults
