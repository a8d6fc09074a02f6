// Package runview is what everybody sees of a run who does not dispatch it: the screen
// and the commands that observe. Source is the interface that they use.
//
// It keeps a short row of each job (list.go) and computes outside the goroutine that owns
// the table what people ask of a list: phases, orders, filters (filter.go), failures by
// cause. Whole rows, details and attempts are made for the jobs that are shown.
//
// It decides nothing (sched does) and draws nothing (tui does). Texts are as they came
// from jobs and hosts: whoever shows them cleans them.
package runview
