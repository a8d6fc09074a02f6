package dispatch

import (
	"dcs-tui/dispatch/commit"
	"dcs-tui/jobs"
)

// writer makes records durable in a goroutine of its own, one batch at a time, so that a hung
// disk does not block the engine.
type writer struct {
	d      *Dispatcher
	work   chan []jobs.Record
	isBusy bool // a batch is being written; owned by the engine goroutine
}

func newWriter(d *Dispatcher) writer {
	w := writer{d: d, work: make(chan []jobs.Record, 1)}
	go func() {
		for batch := range w.work {
			err := commit.Write(d.cfg.Journal, batch)
			// The engine reads until this arrives.
			d.inputs <- input{call: func(e *engine) { e.handleWritten(err) }}
		}
	}()
	return w
}

// write writes a batch. The engine calls it again only after the result has come.
func (w *writer) write(batch []jobs.Record) {
	w.isBusy = true
	w.work <- batch
}

// end ends the goroutine.
func (w *writer) end() { close(w.work) }
