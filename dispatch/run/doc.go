// Package run owns a run from its start to its end: it takes the run over, feeds it jobs,
// handles signals, stop files, requests and attached screens, hands out results, keeps the
// job log and the logs of hosts, and closes everything.
//
//	r, err := run.Start(ctx, owned, run.Options{…})
//	r.Submit(ctx, specs...)
//	r.CloseInput()
//	for {
//		result, err := r.Next(ctx) // io.EOF: all jobs have ended
//		…
//	}
//	outcome, err := r.Close()
//
// It parses no command line and prints nothing: a Printer shows messages to a person.
// Which job runs where is decided by dispatch/sched.
package run
