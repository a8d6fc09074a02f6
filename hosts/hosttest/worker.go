package hosttest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/hosts"
)

// Worker is a hosts.Worker without a machine. The test that embeds it adds hosts.Worker.Send. It
// reports a heartbeat every 3 s until Cut. Say and Cut are safe for concurrent use.
type Worker struct {
	hello   hosts.Hello
	latency time.Duration
	change  func(*hosts.Heartbeat)
	start   time.Time
	gone    chan struct{} // closed when it is cut
	ping    atomic.Int64  // number of the newest ping

	mu      sync.Mutex
	reports chan hosts.Message
	closed  bool
	err     error
}

// NewWorker returns a connected Worker. latency is the duration of KeepAlive. change changes
// each heartbeat before it is reported; nil: none is changed.
func NewWorker(hello hosts.Hello, latency time.Duration, change func(*hosts.Heartbeat)) *Worker {
	w := &Worker{hello: hello, latency: latency, change: change, start: time.Now(),
		gone: make(chan struct{}), reports: make(chan hosts.Message, 256)}
	go w.heartbeat()
	return w
}

func (w *Worker) heartbeat() {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b := &hosts.Heartbeat{Seq: w.ping.Load(), Uptime: time.Since(w.start), MemFree: 1 << 33, DiskFree: -1}
			if w.change != nil {
				w.change(b)
			}
			w.Say(b)
		case <-w.gone:
			return
		}
	}
}

// Answer makes the next heartbeats answer a ping. Without it the agent sends keepalives instead.
func (w *Worker) Answer(m *hosts.Ping) { w.ping.Store(m.Seq) }

// Say reports a message unless the connection is cut.
func (w *Worker) Say(m hosts.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.reports <- m
	}
}

// Cut ends the connection. Err returns err, which may be nil. Only the first call counts.
func (w *Worker) Cut(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed, w.err = true, err
		close(w.gone)
		close(w.reports)
	}
}

// Gone is closed when the connection is cut.
func (w *Worker) Gone() <-chan struct{} { return w.gone }

// Hello returns a copy of the hello.
func (w *Worker) Hello() *hosts.Hello {
	hello := w.hello
	return &hello
}

// Reports delivers the messages of Say and the heartbeats.
func (w *Worker) Reports() <-chan hosts.Message { return w.reports }

// KeepAlive waits for the connection's latency.
func (w *Worker) KeepAlive(context.Context) error {
	if w.latency > 0 {
		select {
		case <-time.After(w.latency):
		case <-w.gone:
		}
	}
	return nil
}

// Err returns why the connection was cut.
func (w *Worker) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close cuts the connection.
func (w *Worker) Close() error {
	w.Cut(errors.New("closed"))
	return nil
}
