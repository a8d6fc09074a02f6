package run

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"dcs-tui/jobs/rundir"
)

// hostLogs are the files hosts/<host>.log of a run: the output of each host's helper and
// the notices about the host. Safe for concurrent use. A goroutine of their own writes
// them, because the run directory may hang, and neither the console nor a link may wait
// for it.
type hostLogs struct {
	run *rundir.Run

	mu      sync.Mutex
	waiting chan hostText // nil before the first text, and again after Close
	done    chan struct{} // closed when everything was written
}

// hostText is a text about a host.
type hostText struct {
	at         time.Time
	host, text string
}

// maxHostTexts bounds the texts that wait to be written. Further texts are dropped: the
// journal has the notices.
const maxHostTexts = 4096

func newHostLogs(run *rundir.Run) *hostLogs { return &hostLogs{run: run} }

// Write adds text to the host's log, with the time before each line. It does not block. A
// log that cannot be written must not stop the run, so errors are ignored.
func (l *hostLogs) Write(host, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		if l.done != nil {
			return // closed
		}
		l.waiting, l.done = make(chan hostText, maxHostTexts), make(chan struct{})
		go l.write(l.waiting, l.done)
	}
	select {
	case l.waiting <- hostText{time.Now(), host, text}:
	default:
	}
}

// write writes texts until there are no more.
func (l *hostLogs) write(texts <-chan hostText, done chan<- struct{}) {
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
				f.Close() // a stale handle does not recover; the next line opens it anew
				delete(out, t.host)
				break
			}
		}
	}
	for _, f := range out {
		f.Close()
	}
}

// Close writes what waits and ends the logs. It waits at most WriteTimeout for a directory
// that hangs.
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
	late := time.NewTimer(WriteTimeout)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}
