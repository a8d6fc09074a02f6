package run

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"syscall"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// jobLog writes a job log as GNU parallel does. Each dispatcher writes it anew from the
// journal, because a killed dispatcher may have left lines out. Lines that the disk refuses
// wait in memory until it accepts them: a job log never ends a run. Safe for concurrent
// use; only whoever adds lines waits for the disk.
type jobLog struct {
	path   string
	report func(err error) // is told of the first of several failures, and of nil when it is over

	mu      sync.Mutex
	f       *os.File // nil after a failure: to be opened again
	begun   bool     // the file has been emptied
	buf     []byte   // lines, or the rest of one, that are not written yet
	failure error    // of the last write
	lost    bool     // lines were dropped because too many waited
	closed  bool
}

// maxJobLogBuffer bounds the bytes that wait for the disk.
const maxJobLogBuffer = 16 << 20

// retryInterval is how often something that a disk refused is tried again.
const retryInterval = time.Second

// openJobLog begins a log. It returns an error if the path is wrong. The log is usable
// nevertheless.
func openJobLog(path string, run *rundir.Run, t *jobs.Table, report func(error)) (*jobLog, error) {
	l := &jobLog{path: path, report: report, buf: []byte(results.JobLogHeader)}
	for _, r := range endedJobs(run, t) {
		l.buf = results.AppendJobLog(l.buf, &r)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flush(); l.failure != nil && !l.begun && !isDiskFault(l.failure) {
		return l, fmt.Errorf("the job log: %w", l.failure)
	}
	return l, nil
}

// isDiskFault reports whether a disk or a file server failed, rather than what was asked
// of it.
func isDiskFault(err error) bool {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.ESTALE, syscall.EIO, syscall.EROFS, syscall.ETIMEDOUT, syscall.EINTR} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// Add appends a line.
func (l *jobLog) Add(r *dispatch.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > maxJobLogBuffer {
		l.lost = true
		return
	}
	l.buf = results.AppendJobLog(l.buf, r)
	if l.failure == nil {
		l.flush()
	}
}

// retry writes again what the disk refused.
func (l *jobLog) retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil && !l.closed {
		l.flush()
	}
}

// flush writes what waits, and plans a retry if that fails. mu is held.
func (l *jobLog) flush() {
	had := l.failure
	l.write()
	if l.failure != nil && !l.closed {
		time.AfterFunc(retryInterval, l.retry)
	}
	if (had == nil) != (l.failure == nil) {
		l.report(l.failure)
	}
}

// write continues where the last write stopped. After a failure it opens the file again,
// because a stale handle does not recover.
func (l *jobLog) write() {
	if l.f == nil {
		flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND | syscall.O_NONBLOCK // a pipe may have lost its reader
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
		l.f.Close() // its error adds nothing to err
		l.f = nil
	}
}

// Close tries a last time, and returns an error if the log lacks lines.
func (l *jobLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.failure != nil {
		l.write()
	}
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
	case l.lost:
		return fmt.Errorf("the job log %s lacks lines that waited too long for the disk; `resume` writes it anew", l.path)
	}
	return nil
}

// openJobLogs opens the job log of the run, and the one that the user asked for.
func (r *Run) openJobLogs() error {
	for _, file := range []string{r.dir.Path(rundir.JobLogFile), r.opts.JobLog} {
		if file == "" {
			continue
		}
		l, err := openJobLog(file, r.dir, r.table, func(err error) {
			if err == nil {
				r.sayText("the job log " + file + " can be written again")
			} else {
				r.sayText("the job log waits until it can be written: " + err.Error())
			}
		})
		if err != nil && file == r.opts.JobLog {
			return err
		}
		r.jobLogs = append(r.jobLogs, l)
	}
	return nil
}

// endedJobs returns the results of all jobs that have ended, in that order.
func endedJobs(run *rundir.Run, t *jobs.Table) []results.Result {
	var list []results.Result
	at := metrics.Locations(run)
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.State.Terminal() {
			list = append(list, at.Result(j))
		}
	}
	sort.SliceStable(list, func(i, k int) bool { return list[i].Seq < list[k].Seq })
	return list
}
