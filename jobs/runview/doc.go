// Package runview is the reader behind the screen and the commands that observe a run.
//
// It keeps a short row of each job (row.go) and computes what people ask of a list:
// phases, orders, filters (filter.go), failures by cause. Whole rows, details and
// attempts are made for the jobs that are shown. Texts are as they came from jobs and
// hosts: whoever shows them cleans them. The package decides nothing (sched does) and
// draws nothing (tui does).
package runview
