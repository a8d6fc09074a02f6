// Package dispatch runs the commit loop. One goroutine, the engine, owns the core (sched.Core). It
// takes events, steps the core, appends the records to the journal, and fsyncs once. Only then does
// it release the commands to the host agents, which are one goroutine per host.
//
// A Dispatcher is a completion service: Start it with a Config, Submit jobs, and take their results
// with Next in the order in which they complete. Submitting does not wait for results.
//
//	d, err := dispatch.Start(cfg)
//	err = d.Submit(specs, true)
//	for {
//		r, err := d.Next(ctx) // io.EOF: the run is over
//		…
//		d.Ack(r.Seq)
//	}
//	finish, err := d.Close()
//
// The package uses hosts only through the interfaces of package hosts, and never ssh. Package sched
// makes the decisions, and packages tui and internal/cli show the state.
package dispatch
