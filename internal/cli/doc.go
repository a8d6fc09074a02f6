// Package cli is the command line of dcs-tui: flags, wiring, and printing, one file for
// each command. The packages below it write lines (console) and give the exit codes (exit).
//
// It decides nothing about jobs or hosts (dispatch/sched does), stores nothing (jobs/rundir
// and jobs/journal do), and owns no run (dispatch/run does). Whatever comes from a job or a
// host passes jobs.Clean before it reaches a terminal.
package cli
