package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
)

// maxReports is how many reports may wait to be taken by the dispatcher. A host
// that has more to say waits.
const maxReports = 256

// worker is a helper that has said hello. Two goroutines of its own read and
// write; both end when the link is closed.
type worker struct {
	host   string
	link   hosts.Link
	stream hosts.Stream
	words  *lastWords
	in     *wire.Reader
	out    *wire.Writer // writes into box
	box    *mailbox
	first  *hosts.Hello
	early  []hosts.Message // came before the hello

	reports chan hosts.Message
	stop    chan struct{} // closed when the link is being closed

	mu     sync.Mutex
	err    error
	closed bool
	bye    bool // Bye was sent: the helper's end is no failure
}

var _ hosts.Worker = (*worker)(nil)

func newWorker(s *session) *worker {
	w := &worker{
		host: s.host.Name, link: s.link, stream: s.stream, words: s.words,
		in: wire.NewReader(s.answers.r), box: newMailbox(&s.c.unsent),
		reports: make(chan hosts.Message, maxReports), stop: make(chan struct{}),
	}
	w.out = wire.NewWriter(w.box)
	return w
}

func (w *worker) start() {
	go w.read()
	go w.write()
}

// Hello returns what the helper said when it started.
func (w *worker) Hello() *hosts.Hello { return w.first }

// Send hands messages over; it never waits for the host. A message that is too
// large (wire.ErrTooLarge) fails by itself and sends nothing of this call; any
// other error means that the worker is closed.
func (w *worker) Send(msgs ...hosts.Message) error {
	w.mu.Lock()
	for _, m := range msgs {
		if m != nil && m.Word() == (hosts.Bye{}).Word() {
			w.bye = true
		}
	}
	w.mu.Unlock()
	err := w.out.Write(msgs...)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wire.ErrTooLarge), errors.Is(err, wire.ErrWord):
		return &hosts.Error{Host: w.host, Class: hosts.Misconfigured, Err: err}
	}
	w.end(&hosts.Error{Host: w.host, Class: hosts.Unreachable, Err: err})
	return w.Err()
}

// Reports delivers what the host says; see hosts.Worker.
func (w *worker) Reports() <-chan hosts.Message { return w.reports }

// KeepAlive asks the link for a sign of life.
func (w *worker) KeepAlive(ctx context.Context) error { return w.link.KeepAlive(ctx) }

// Err says why the worker ended: nil before it has, and when the helper left
// because Bye had been sent.
func (w *worker) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close cuts the link. Reports not yet taken are still in the channel.
func (w *worker) Close() error {
	w.end(&hosts.Error{Host: w.host, Class: hosts.Unreachable, Err: errClosed})
	return nil
}

// end closes everything, once; err is why, nil for an orderly end.
func (w *worker) end(err error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed, w.err = true, err
	w.mu.Unlock()
	close(w.stop)
	w.box.close(errClosed)
	w.link.Close()
}

// read delivers reports until the stream ends.
func (w *worker) read() {
	defer close(w.reports)
	for _, m := range w.early {
		if !w.deliver(m) {
			return
		}
	}
	w.early = nil
	for {
		m, err := w.in.Read()
		if err != nil {
			w.end(w.whyEnded(err))
			return
		}
		if !w.deliver(m) {
			return
		}
	}
}

func (w *worker) deliver(m hosts.Message) bool {
	select {
	case w.reports <- m:
		return true
	case <-w.stop:
		return false
	}
}

// whyEnded explains the end of the helper's stream.
func (w *worker) whyEnded(err error) error {
	select {
	case <-w.stop: // we closed it
		return err
	default:
	}
	err = howEnded(w.host, "the helper", w.stream, w.words, err)
	w.mu.Lock()
	bye := w.bye
	w.mu.Unlock()
	var exit *hosts.ExitError
	if bye && errors.As(err, &exit) && *exit == (hosts.ExitError{}) {
		return nil
	}
	return err
}

// write hands over what Send left in the mailbox. When that fails the reader
// usually learns the reason; it gets a moment to do so.
func (w *worker) write() {
	err := w.box.run(w.stream.Stdin(), w.stop)
	if err == nil {
		return
	}
	err = fmt.Errorf("cannot write to the helper: %w", err)
	w.box.close(err)
	moment := time.NewTimer(2 * lastWait)
	defer moment.Stop()
	select {
	case <-w.stop:
	case <-moment.C:
		w.end(&hosts.Error{Host: w.host, Class: hosts.Unreachable, Err: err})
	}
}
