// Package cli is the face of dcs-tui on the command line: one file a command, a
// dispatcher's session as its user sees it, the following of a run for a screen, and
// signals. How lines are written (console), how a run stands (standing), the exit codes
// (exit) are packages below it. dispatch/run owns a run that this process dispatches.
//
// It wires the rooms together and shows what they say; it decides nothing about
// jobs or hosts (dispatch/sched does) and stores nothing itself (jobs/rundir and
// jobs/journal do). Whatever comes from a job or a host passes jobs.Clean
// before it reaches a terminal.
package cli
