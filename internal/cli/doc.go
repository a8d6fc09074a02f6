// Package cli is the face of dcs-tui on the command line: one file a command,
// the headless screen (lines, progress, summary), and signals.
//
// It wires the rooms together and shows what they say; it decides nothing about
// jobs or hosts (dispatch/sched does) and stores nothing itself (jobs/rundir and
// jobs/journal do). Whatever comes from a job or a host passes jobs.Clean
// before it reaches a terminal.
package cli
