package run

import (
	"fmt"
	"sync"
	"time"

	"dcs-tui/dispatch"
)

// Printer shows a person how a run goes. Its methods are called by one goroutine of the
// run and may block: nothing else waits for them.
type Printer interface {
	Line(text string)              // a message; it may contain text of other programs
	Notice(n dispatch.Notice)      // an event of a host or a job
	Progress(s *dispatch.Snapshot) // how the run stands, every Interval
	Interval() time.Duration       // between two calls of Progress
}

// maxMessages bounds the messages that wait to be printed. A terminal that somebody has
// stopped with Ctrl-S must neither delay the dispatcher nor fill its memory.
const maxMessages = 4096

// message is a notice, or a text that is made when it is printed.
type message struct {
	notice dispatch.Notice
	text   func() string // nil: the notice
}

// messages is the queue of what is to be printed. Adding does not block. Safe for
// concurrent use.
type messages struct {
	mu      sync.Mutex
	list    []message
	dropped int
	added   chan struct{} // has room for one
}

func newMessages() *messages { return &messages{added: make(chan struct{}, 1)} }

func (q *messages) add(m message) {
	q.mu.Lock()
	if len(q.list) < maxMessages {
		q.list = append(q.list, m)
	} else {
		q.dropped++
	}
	q.mu.Unlock()
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// notice implements dispatch.Config.Notify.
func (q *messages) notice(n dispatch.Notice) { q.add(message{notice: n}) }

// take empties the queue. It adds a message that counts the dropped ones.
func (q *messages) take() []message {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	if q.dropped > 0 {
		list = append(list, message{notice: dispatch.Notice{Text: fmt.Sprintf("%d further notices were dropped; the journal has them", q.dropped)}})
	}
	q.list, q.dropped = nil, 0
	return list
}

// say queues a text that may depend on how the run stands when it is printed.
func (r *Run) say(text func() string) { r.messages.add(message{text: text}) }

// sayText queues a text.
func (r *Run) sayText(text string) { r.say(func() string { return text }) }

// flushMessages prints what is queued.
func (r *Run) flushMessages() {
	for _, m := range r.messages.take() {
		if m.text != nil {
			if text := m.text(); text != "" {
				r.printer.Line(text)
			}
			continue
		}
		r.printer.Notice(m.notice)
		if m.notice.Host != "" {
			r.hostLogs.Write(m.notice.Host, m.notice.Text)
		}
	}
}

// report prints messages and the progress until the run is over.
func (r *Run) report() {
	every := time.NewTicker(r.printer.Interval())
	defer every.Stop()
	for {
		select {
		case <-r.over:
			r.flushMessages()
			return
		case <-r.messages.added:
			r.flushMessages()
			continue
		case <-every.C:
		}
		r.acks.flush()
		if snap := r.sample(); snap != nil {
			r.printer.Progress(snap)
		}
	}
}

// sample looks at the run and keeps what it sees; nil after its end.
func (r *Run) sample() *dispatch.Snapshot {
	snap := r.d.Snapshot()
	if snap != nil {
		r.slots.add(time.Now(), snap, r.opts.Policy.MaxSlots)
		r.last.Store(snap)
	}
	return snap
}

// noPrinter discards everything.
type noPrinter struct{}

func (noPrinter) Line(string)                 {}
func (noPrinter) Notice(dispatch.Notice)      {}
func (noPrinter) Progress(*dispatch.Snapshot) {}
func (noPrinter) Interval() time.Duration     { return 2 * time.Second }
