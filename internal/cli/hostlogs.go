package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"dcs-tui/jobs/rundir"
)

// hostLogs are the files hosts/<host>.log of a run: what each host's helper said
// and what was noticed about the host (D9). Safe for concurrent use. They are
// written apart from those who have something to say: the run directory may hang,
// and neither the console nor a host's link is to hang with it.
type hostLogs struct {
	run *rundir.Run

	mu      sync.Mutex
	waiting chan hostWords // nil before the first text, and again after Close
	done    chan struct{}  // closed when everything was written
}

// hostWords is what was said of a host, and when.
type hostWords struct {
	at         time.Time
	host, text string
}

// maxHostTexts bounds what waits to be written. What comes while so much waits is
// dropped: the journal has the notices.
const maxHostTexts = 4096

func newHostLogs(run *rundir.Run) *hostLogs { return &hostLogs{run: run} }

// Write adds text to the host's log, a time before each line. It does not wait. A
// log that cannot be written must not stop the run, so errors are left aside.
func (l *hostLogs) Write(host, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		if l.done != nil {
			return // closed
		}
		l.waiting, l.done = make(chan hostWords, maxHostTexts), make(chan struct{})
		go l.write(l.waiting, l.done)
	}
	select {
	case l.waiting <- hostWords{time.Now(), host, text}:
	default:
	}
}

// write writes texts until there are no more.
func (l *hostLogs) write(texts <-chan hostWords, done chan<- struct{}) {
	defer close(done)
	out := map[string]*os.File{}
	for t := range texts {
		f := out[t.host]
		if f == nil {
			// Host names have neither slashes nor leading dots (hosts.Parse).
			var err error
			f, err = os.OpenFile(l.run.Path(rundir.HostsDir, t.host+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				continue
			}
			out[t.host] = f
		}
		at := t.at.Format("2006-01-02 15:04:05  ")
		for line := range strings.Lines(t.text) {
			if _, err := io.WriteString(f, at+strings.TrimRight(line, "\n")+"\n"); err != nil {
				f.Close() // a stale handle does not heal; the next line opens it anew
				delete(out, t.host)
				break
			}
		}
	}
	for _, f := range out {
		f.Close()
	}
}

// Close ends the logs. It does not wait long for a directory that hangs.
func (l *hostLogs) Close() {
	l.mu.Lock()
	done := l.done
	if l.waiting != nil {
		close(l.waiting)
		l.waiting = nil
	}
	if l.done == nil {
		l.done = make(chan struct{})
	}
	l.mu.Unlock()
	if done == nil {
		return
	}
	late := time.NewTimer(writePatience)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// dispatcherLogFile holds what a dispatcher without a terminal says.
const dispatcherLogFile = "dispatcher.log"

// dispatcherLog opens dispatcher.log of the run, which takes over when the
// terminal is gone.
func dispatcherLog(run *rundir.Run) (*os.File, error) {
	f, err := os.OpenFile(run.Path(dispatcherLogFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the terminal is gone and the log cannot be opened: %w", err)
	}
	return f, nil
}
