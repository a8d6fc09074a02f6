package cli

import (
	"fmt"
	"os"
	"sort"
	"sync"
	"syscall"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/places"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// jobLog writes a job log as GNU parallel does. It is written anew at the start
// of a session, from the journal, because what a killed dispatcher had not
// written would be missing from it for ever. Lines that the disk refuses wait in
// memory until it takes them: a job log never ends a run. Safe for concurrent use.
type jobLog struct {
	path string

	mu      sync.Mutex
	f       *os.File // nil after a failure: to be opened again
	begun   bool     // the file has been emptied
	buf     []byte   // lines, or the rest of one, that are not written yet
	failure error    // why not, nil if all is well
	lacks   bool     // too much waited: lines were given up
}

// maxHeld bounds the lines that wait for the disk.
const maxHeld = 16 << 20

// openJobLog begins a log. An error means that the path is wrong, and that the log is
// tried again all the same; trouble with the disk is told by Retry.
func openJobLog(path string, run *rundir.Run, t *jobs.Table) (*jobLog, error) {
	l := &jobLog{path: path, buf: []byte(results.JobLogHeader)}
	for _, r := range finished(run, t) {
		l.buf = results.AppendJobLog(l.buf, &r)
	}
	if l.flush(); l.failure != nil && !l.begun && !diskTrouble(l.failure) {
		return l, fmt.Errorf("the job log: %w", l.failure)
	}
	return l, nil
}

// Add appends a line.
func (l *jobLog) Add(r *dispatch.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > maxHeld {
		l.lacks = true
		return
	}
	l.buf = results.AppendJobLog(l.buf, r)
	if l.failure == nil {
		l.flush()
	}
}

// Retry tries again what the disk refused, and returns what still keeps it.
func (l *jobLog) Retry() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		l.flush()
	}
	return l.failure
}

// flush writes what waits. After a failure it goes on where it stopped, in a file
// opened anew: a stale handle does not heal.
func (l *jobLog) flush() {
	if l.f == nil {
		flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND | syscall.O_NONBLOCK // a pipe may have no reader any more
		if !l.begun {
			flags = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
		}
		if l.f, l.failure = os.OpenFile(l.path, flags, 0o600); l.failure != nil {
			l.f = nil
			return
		}
		l.begun = true
	}
	n, err := l.f.Write(l.buf)
	if l.buf = l.buf[:copy(l.buf, l.buf[n:])]; cap(l.buf) > 1<<20 && len(l.buf) == 0 {
		l.buf = nil
	}
	if l.failure = err; err != nil {
		l.f.Close() // says nothing that the write has not said
		l.f = nil
	}
}

// Close gives the disk its last chance and says what the log lacks.
func (l *jobLog) Close() error {
	l.Retry()
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.failure
	if l.f != nil {
		if cerr := l.f.Close(); err == nil {
			err = cerr
		}
		l.f = nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("the job log %s lacks lines: %w; `resume` writes it anew", l.path, err)
	case l.lacks:
		return fmt.Errorf("the job log %s lacks lines that waited too long for the disk; `resume` writes it anew", l.path)
	}
	return nil
}

// keepJobLogs tries again what the disk refused of the job logs, and says so once.
// Only this goroutine, and whoever adds lines, wait for that disk.
func (s *session) keepJobLogs(over <-chan struct{}) {
	every := time.NewTicker(retryEvery)
	defer every.Stop()
	said := make([]bool, len(s.joblogs))
	for {
		select {
		case <-over:
			return
		case <-every.C:
		}
		for i, l := range s.joblogs {
			err := l.Retry()
			if (err != nil) == said[i] {
				continue
			}
			said[i] = err != nil
			s.say(func() string {
				if err == nil {
					return "the job log " + console.CleanLine(l.path) + " can be written again"
				}
				return "the job log waits until it can be written: " + console.CleanLine(err.Error())
			})
		}
	}
}

// finished returns the results of all terminal jobs in the order in which they
// ended.
func finished(run *rundir.Run, t *jobs.Table) []results.Result {
	var list []results.Result
	at := places.Of(run)
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.State.Terminal() {
			list = append(list, at.Result(j))
		}
	}
	sort.SliceStable(list, func(i, k int) bool { return list[i].Seq < list[k].Seq })
	return list
}
