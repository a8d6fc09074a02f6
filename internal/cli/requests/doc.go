// Package requests takes in what people leave in the directory of a run for its
// dispatcher, each request once by its name and in order: it gives them to the core, and
// removes their files when the journal has them for good.
//
// It asks for nothing itself (the commands do), and decides nothing about jobs (dispatch/sched does).
package requests
