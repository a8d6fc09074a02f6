package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/jobs/rundir"
)

// Printer shows the progress of a run. One goroutine of the run calls its methods, which may block
// without delaying anything else.
type Printer interface {
	Line(text string)              // a message; it may contain text of other programs
	Warning(text string)           // the same for a warning
	Notice(n dispatch.Notice)      // an event of a host or a job
	Progress(s *dispatch.Snapshot) // the state of the run, every Interval
	Interval() time.Duration       // between two calls of Progress
}

// maxMessages bounds the number of messages that wait to be printed, because a terminal may be
// stopped with Ctrl-S.
const maxMessages = 4096

// message is a notice, or a text that is computed when it is printed.
type message struct {
	notice dispatch.Notice
	text   func() string // nil: print the notice

	isWarning bool // of text
}

// messages is the queue of messages to print. Adding does not block. It is safe for concurrent use.
type messages struct {
	mu         sync.Mutex
	list       []message
	numDropped int
	added      chan struct{} // holds a signal after an addition
}

func newMessages() *messages { return &messages{added: make(chan struct{}, 1)} }

func (q *messages) add(m message) {
	q.mu.Lock()
	if len(q.list) < maxMessages {
		q.list = append(q.list, m)
	} else {
		q.numDropped++
	}
	q.mu.Unlock()
	dispatch.Signal(q.added)
}

// notice implements dispatch.Config.Notify.
func (q *messages) notice(n dispatch.Notice) { q.add(message{notice: n}) }

// takeAll empties the queue. It adds a message that counts the dropped ones.
func (q *messages) takeAll() []message {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	if q.numDropped > 0 {
		list = append(list, message{notice: dispatch.Notice{Text: fmt.Sprintf("%d further notices were dropped; "+
			"the journal has them", q.numDropped)}})
	}
	q.list, q.numDropped = nil, 0
	return list
}

// printLater queues a text that may depend on the state of the run when it is printed.
func (r *Run) printLater(text func() string) { r.messages.add(message{text: text}) }

// printText queues a text.
func (r *Run) printText(text string) { r.printLater(func() string { return text }) }

// printWarning queues a warning.
func (r *Run) printWarning(text string) {
	r.messages.add(message{text: func() string { return text }, isWarning: true})
}

// flushMessages prints the queued messages.
func (r *Run) flushMessages() {
	for _, m := range r.messages.takeAll() {
		if m.text != nil {
			switch text := m.text(); {
			case text == "":
			case m.isWarning:
				r.printer.Warning(text)
			default:
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

// sample takes and stores a snapshot. It returns nil after the end of the run.
func (r *Run) sample() *dispatch.Snapshot {
	snap := r.d.Snapshot()
	if snap != nil {
		r.slotTime.add(time.Now(), snap, r.opts.Policy.MaxSlots)
		r.snapshot.Store(snap)
	}
	return snap
}

// noPrinter discards everything.
type noPrinter struct{}

func (noPrinter) Line(string)                 {}
func (noPrinter) Warning(string)              {}
func (noPrinter) Notice(dispatch.Notice)      {}
func (noPrinter) Progress(*dispatch.Snapshot) {}
func (noPrinter) Interval() time.Duration     { return 2 * time.Second }

// hostLogs writes the files hosts/<host>.log: the output of each host's helper and the notices
// about the host. A goroutine writes them, because the run directory may hang. It is safe for
// concurrent use.
type hostLogs struct {
	open func(flag int, elem ...string) (*os.File, error) // Run.OpenFile, except in tests

	mu     sync.Mutex
	texts  chan hostText // nil before the first text
	closed bool
	done   chan struct{} // closed when everything was written
}

// hostText is a text about a host.
type hostText struct {
	at         time.Time
	host, text string
}

// maxHostTexts bounds the number of texts that wait to be written. Further texts are dropped,
// because the journal contains the notices.
const maxHostTexts = 4096

func newHostLogs(run *rundir.Run) *hostLogs { return &hostLogs{open: run.OpenFile} }

// Write adds text to the host's log, with the time before each line. It does not block. A log
// that cannot be written must not stop the run, so errors are ignored.
func (l *hostLogs) Write(host, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.texts == nil {
		l.texts, l.done = make(chan hostText, maxHostTexts), make(chan struct{})
		go l.write()
	}
	select {
	case l.texts <- hostText{time.Now(), host, text}:
	default:
	}
}

// write writes texts until there are no more.
func (l *hostLogs) write() {
	defer close(l.done)
	out := map[string]*os.File{}
	for t := range l.texts {
		f := out[t.host]
		if f == nil {
			// Host names have neither slashes nor leading dots (hosts.Parse).
			var err error
			f, err = l.open(rundir.AppendFlags, rundir.HostsDir, t.host+".log")
			if err != nil {
				continue
			}
			out[t.host] = f
		}
		at := t.at.Format("2006-01-02 15:04:05  ")
		for line := range strings.Lines(t.text) {
			if _, err := io.WriteString(f, at+strings.TrimRight(line, "\n")+"\n"); err != nil {
				f.Close() // a stale handle does not recover; the next line opens the file again
				delete(out, t.host)
				break
			}
		}
	}
	for _, f := range out {
		f.Close()
	}
}

// Close writes the waiting texts and ends the logs. If the run directory hangs, it returns after
// WriteTimeout.
func (l *hostLogs) Close() {
	l.mu.Lock()
	if l.texts != nil && !l.closed {
		close(l.texts)
	}
	l.closed = true
	done := l.done
	l.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(WriteTimeout):
	}
}
