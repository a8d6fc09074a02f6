// Package dispatch runs the commit loop: one goroutine owns the core (sched.Core) and
// takes events, steps the core, appends the records to the journal, fsyncs once,
// and only then releases the commands to the host agents, one goroutine per host.
//
// It is a completion service: Submit jobs, take results with Next in the
// order in which they complete. Producing is decoupled from consuming.
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
// It knows hosts only through the interfaces of package hosts, never ssh; it
// decides nothing (sched does) and shows nothing (tui and internal/cli do).
package dispatch
