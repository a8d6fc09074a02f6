package hosttest

import (
	"context"
	"errors"
	"sync"
	"time"

	"dcs-tui/hosts"
)

// Worker is the connection to a host that needs no machine: all of a hosts.Worker but
// Send, which is for the test that embeds it. It beats every three seconds until it is
// cut. Say and Cut may be called from any goroutine.
type Worker struct {
	hello    hosts.Hello
	latency  time.Duration
	progress func() map[string]string
	start    time.Time
	gone     chan struct{} // closed when it is cut

	mu      sync.Mutex
	reports chan hosts.Message
	closed  bool
	err     error
}

// NewWorker connects to a host that greets so. latency is what a heartbeat takes;
// progress what jobs say in a heartbeat, nil for nothing.
func NewWorker(hello hosts.Hello, latency time.Duration, progress func() map[string]string) *Worker {
	w := &Worker{hello: hello, latency: latency, progress: progress, start: time.Now(),
		gone: make(chan struct{}), reports: make(chan hosts.Message, 256)}
	go w.beat()
	return w
}

func (w *Worker) beat() {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b := &hosts.Beat{Uptime: time.Since(w.start), MemFree: 1 << 33, DiskFree: -1}
			if w.progress != nil {
				b.Progress = w.progress()
			}
			w.Say(b)
		case <-w.gone:
			return
		}
	}
}

// Say reports something, unless the connection is cut.
func (w *Worker) Say(m hosts.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.reports <- m
	}
}

// Cut ends the connection, with an error or with none. Only the first time counts.
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

// Hello is what the host greeted with.
func (w *Worker) Hello() *hosts.Hello {
	hello := w.hello
	return &hello
}

// Reports delivers what the host says.
func (w *Worker) Reports() <-chan hosts.Message { return w.reports }

// KeepAlive takes the connection's latency.
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
