package dispatch

import "dcs-tui/jobs"

// writer makes records durable apart from the engine, one batch at a time: a disk
// that hangs must not keep the engine from hearing its hosts and its user.
type writer struct {
	d    *Dispatcher
	work chan []jobs.Record
	busy bool // the engine's alone: a batch is under way
}

func newWriter(d *Dispatcher) writer {
	w := writer{d: d, work: make(chan []jobs.Record, 1)}
	go func() {
		for batch := range w.work {
			var err error
			if len(batch) > 0 {
				err = d.cfg.Journal.Append(batch)
			}
			if err == nil {
				err = d.cfg.Journal.Sync()
			}
			d.inputs <- input{call: func(e *engine) { e.written(err) }} // the engine reads until it has heard
		}
	}()
	return w
}

// write hands a batch over; the engine gives the next one only after the answer.
func (w *writer) write(batch []jobs.Record) {
	w.busy = true
	w.work <- batch
}

// end lets the goroutine go.
func (w *writer) end() { close(w.work) }
