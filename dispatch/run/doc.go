// Package run owns a run from its start to its end. It takes over the run, feeds it jobs, handles
// signals, stop files, requests, and attached screens, delivers results, keeps the job log and the
// logs of hosts, and closes everything. Create makes the directory of a run, Take takes ownership
// of it as an Owned, and Start begins to dispatch it as a Run.
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
// The package parses no command line and prints nothing: a Printer shows messages to people.
// Package dispatch/sched decides which job runs where.
package run
