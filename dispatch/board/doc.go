// Package board is what a screen looks at: a dispatch/view.Source over a live
// dispatcher, or over the table of a run whose dispatcher has gone.
//
// It keeps a short row of each job (row.go), fetched from the engine when it has
// changed and only while somebody looks, and works out outside the engine's goroutine
// what people ask of a list: phases, orders, filters (filter.go), failures by cause.
// Whole rows, details and attempts are fetched for the jobs that are shown. One visit
// to the engine takes at most about a millisecond, whatever the number of jobs.
//
// It decides nothing (sched does), draws nothing (tui does), and opens no socket
// (dispatch/control does).
package board
