package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// Next returns the next result in completion order. It blocks until there is one, ctx is
// done, or the run is over and all results were returned (io.EOF). Results that an earlier
// dispatcher returned and nobody acknowledged come first; IsRepeated recognizes them.
func (r *Run) Next(ctx context.Context) (*results.Result, error) {
	result, err := r.d.Next(ctx)
	if err != nil {
		return nil, err
	}
	r.metrics.Add(result)
	if !r.IsRepeated(result) {
		for _, l := range r.jobLogs {
			l.Add(result)
		}
	}
	return result, nil
}

// IsRepeated reports whether an earlier dispatcher has returned this result.
func (r *Run) IsRepeated(result *results.Result) bool { return result.Seq <= r.earlierSeq }

// Consume calls handle for each result until the run is over. It reports whether all results were
// handled. A handle that blocks does not delay shutdown.
func (r *Run) Consume(handle func(*results.Result)) (all bool, err error) {
	var failed error
	all = r.signals.withTimeout(WriteTimeout, r.d.Finished(), func() {
		for {
			result, err := r.Next(context.Background())
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed = err
				}
				break
			}
			handle(result)
		}
		r.acks.flush()
	})
	if !all {
		return false, nil
	}
	return true, failed
}

// Ack records that the consumer has received all results up to the one with this Seq. A later
// dispatcher does not return them again.
func (r *Run) Ack(seq int64) { r.acks.add(seq) }

// Output reads up to limit bytes of the output of an attempt, starting at offset. It also returns
// the size of the whole output.
func (r *Run) Output(ctx context.Context, id jobs.AttemptID, f jobs.File, offset int64,
	limit int) ([]byte, int64, error) {
	return r.d.Output(ctx, id, f, offset, limit)
}

// acks passes acknowledgments to the dispatcher for several results at once, because each costs a
// record in the journal. A result that was printed but not acknowledged before a crash is returned
// again, which "at least once" allows.
type acks struct {
	mu      sync.Mutex
	d       *dispatch.Dispatcher
	seq     int64
	sentSeq int64
	sentAt  time.Time
}

// ackInterval bounds how long results stay unacknowledged while more arrive.
const ackInterval = 50 * time.Millisecond

func (a *acks) add(seq int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq = max(a.seq, seq)
	if now := time.Now(); now.Sub(a.sentAt) >= ackInterval {
		a.sentAt = now
		a.send()
	}
}

func (a *acks) flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.send()
}

func (a *acks) send() {
	if a.seq > a.sentSeq {
		a.sentSeq = a.seq
		a.d.Ack(a.seq)
	}
}

// keepMetricsTimeout bounds the wait at the end for declared metrics that are not stored yet.
const keepMetricsTimeout = 15 * time.Second

// newMetricsKeeper returns a keeper, which stores the declared metrics of outputs that only their
// host has, because nobody queries that host after the run. It returns nil if no metrics are
// declared.
func newMetricsKeeper(run *rundir.Run, d *dispatch.Dispatcher) *metrics.Keeper {
	columns, _ := metrics.Declared(run.Settings) // `results` reports a wrong declaration
	if len(columns) == 0 {
		return nil
	}
	r := metrics.NewReader(run, columns)
	r.Fetch = outputReader(d)
	return metrics.NewKeeper(r)
}

// outputReader returns a function that reads outputs which only their hosts have.
func outputReader(d *dispatch.Dispatcher) func(context.Context, *results.Result, int64) ([]byte, int64, error) {
	return metrics.NewFetch(hosts.MaxChunk, func(ctx context.Context, id jobs.AttemptID, n int) ([]byte, int64, error) {
		return d.Output(ctx, id, jobs.FileOut, -int64(n), n)
	})
}

// resultsOnHosts returns the results whose outputs are only on these hosts, as far as the run
// directory shows. An earlier dispatcher may have died before it stored their metrics. Without declared
// metrics there are none: a million would take much memory.
func (o *Owned) resultsOnHosts(hs []*hosts.Host) (list []results.Result) {
	at, known := metrics.Locations(o.Run), map[string]bool{}
	if columns, _ := metrics.Declared(o.Run.Settings); len(columns) == 0 || len(at.HostDirs) == 0 {
		return nil
	}
	for _, h := range hs {
		known[h.Name] = true
	}
	for j := range o.Table.RowsWithOptions() {
		if a := j.CountedAttempt(); j.State.Terminal() && a != nil && at.HostDirs[a.Host] != "" &&
			known[a.Host] {
			list = append(list, at.Result(new(jobs.RowReader).Job(o.Table, j.Spec.ID)))
		}
	}
	return list
}

// awaitMetricsTimeout bounds how long a run without further jobs waits for hosts with metrics that
// an earlier dispatcher has not stored.
const awaitMetricsTimeout = 30 * time.Second

// awaitMetrics waits until the hosts that have such outputs are up and have been queried.
func (r *Run) awaitMetrics(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, awaitMetricsTimeout)
	defer cancel()
	said := false
	for names := r.metrics.MissingHosts(ctx); len(names) > 0 && ctx.Err() == nil; {
		if snap := r.d.Snapshot(); snap != nil && haveComeUp(snap.Hosts, names) {
			r.metrics.Retry()
			r.metrics.MissingHosts(ctx)
			return
		}
		if !said {
			said = true
			r.publisher.SetMetricsOf(names[:min(len(names), live.MaxAwaited)])
			defer r.publisher.SetMetricsOf(nil)
			r.printText("waiting for " + text.Shorten(strings.Join(names, ", ")) +
				": metrics of earlier jobs are not stored yet")
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// haveComeUp reports whether all of these hosts have come up. Until the dispatcher has handled
// that, reads fail because there is no link.
func haveComeUp(views []sched.HostView, names []string) bool {
	up := 0
	for _, v := range views {
		if v.Hello != nil && v.Hello.Error == "" && slices.Contains(names, v.Name) {
			up++
		}
	}
	return up == len(names)
}

// jobLog writes a job log in the format of GNU parallel. A killed dispatcher may have omitted lines,
// so each dispatcher compares the log with the journal, and rewrites it from the first difference
// on. Lines that cannot be written wait in memory, so a job log never ends a run. It is safe for
// concurrent use. Only callers that add lines wait for the disk.
type jobLog struct {
	path string
	open func(flag int) (*os.File, error)
	// Called with the first of several failures, and with nil when writing works again.
	report func(err error)

	mu           sync.Mutex
	f            *os.File // nil after a failure: must be opened again
	isTruncated  bool     // the file has been truncated
	kept         int64    // bytes at the beginning of the file that were right
	lacksKept    bool     // the file was replaced, so it lacks them
	buf          []byte   // lines, or a part of one, that are not written yet
	failure      error    // error of the last write
	hasLostLines bool     // lines were dropped because too many waited
	closed       bool
}

// maxJobLogBuffer bounds the number of bytes that wait for the disk.
const maxJobLogBuffer = 16 << 20

// retryInterval is the time between attempts to write to a disk that fails.
const retryInterval = time.Second

// openJobLog opens a log and writes the earlier results that it lacks. If it returns an error, the
// path is wrong, but the log can be used.
func openJobLog(path string, open func(flag int) (*os.File, error), run *rundir.Run, t *jobs.Table,
	report func(error)) (*jobLog, error) {
	l := &jobLog{path: path, open: open, report: report}
	l.mu.Lock()
	defer l.mu.Unlock()
	had := l.read()
	defer had.Close()
	old := bufio.NewReaderSize(had, 1<<20)
	add := func(line []byte) {
		if old != nil {
			if same, _ := old.Peek(len(line)); bytes.Equal(same, line) {
				_, _ = old.Discard(len(line)) // has been peeked
				l.kept += int64(len(line))
				return
			}
			old = nil
		}
		l.buf = append(l.buf, line...)
		if len(l.buf) > 1<<20 && l.failure == nil {
			l.flush()
		}
	}
	add([]byte(results.JobLogHeader))
	rows := metrics.Locations(run).Rows(t, jobs.JobState.Terminal)
	rows.SortBySeq()
	var line []byte
	for i := range rows.Len() {
		line = results.AppendJobLog(line[:0], rows.Facts(i))
		add(line)
	}
	if l.failure == nil { // otherwise a retry is due
		l.flush()
	}
	if l.failure != nil && !l.isTruncated && !dispatch.IsDiskFault(l.failure) {
		return l, fmt.Errorf("the job log: %w", l.failure)
	}
	return l, nil
}

// read opens an existing log for reading. A file that is not regular, such as a pipe, is not
// read.
func (l *jobLog) read() io.ReadCloser {
	info, err := os.Stat(l.path)
	if err == nil && info.Mode().IsRegular() {
		if f, err := l.open(os.O_RDONLY | syscall.O_NONBLOCK); err == nil {
			return f
		}
	}
	return io.NopCloser(strings.NewReader(""))
}

// Add appends a line.
func (l *jobLog) Add(r *dispatch.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > maxJobLogBuffer {
		l.hasLostLines = true
		return
	}
	l.buf = results.AppendJobLog(l.buf, r)
	if l.failure == nil {
		l.flush()
	}
}

// retry writes again after a failure.
func (l *jobLog) retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil && !l.closed {
		l.flush()
	}
}

// flush writes the buffer, and schedules a retry if that fails. mu is held.
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
		// A pipe may have lost its reader.
		flags := os.O_APPEND | syscall.O_NONBLOCK
		if !l.isTruncated && l.kept == 0 {
			flags = os.O_TRUNC
		}
		l.f, l.failure = l.open(os.O_CREATE | os.O_WRONLY | flags)
		if l.failure == nil && !l.isTruncated && l.kept > 0 {
			l.failure = l.truncate()
		}
		if l.failure != nil {
			l.f = nil
			return
		}
		l.isTruncated = true
	}
	n, err := l.f.Write(l.buf)
	l.buf = l.buf[:copy(l.buf, l.buf[n:])]
	if cap(l.buf) > 1<<20 && len(l.buf) == 0 {
		l.buf = nil
	}
	l.failure = err
	if err != nil {
		l.f.Close() // its error adds nothing to err
		l.f = nil
	}
}

// truncate removes what follows the first l.kept bytes, which are right. If the file was replaced
// since they were read, it may lack them. On an error, truncate closes the file.
func (l *jobLog) truncate() error {
	info, err := l.f.Stat()
	if err == nil && info.Size() > l.kept {
		err = l.f.Truncate(l.kept)
	}
	l.lacksKept = err == nil && info.Size() < l.kept
	if err != nil {
		l.f.Close() // its error adds nothing to err
	}
	return err
}

// Close tries a last time to write, and returns an error if the log is incomplete.
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
	case l.lacksKept:
		return fmt.Errorf("the job log %s lacks its first lines, because it was replaced; `resume` writes it anew",
			l.path)
	case l.hasLostLines:
		return fmt.Errorf("the job log %s lacks lines that waited too long for the disk; `resume` writes it anew",
			l.path)
	}
	return nil
}

// openUserFile returns a function that opens a file of the user, which may be a link or a pipe.
func openUserFile(path string) func(flag int) (*os.File, error) {
	return func(flag int) (*os.File, error) { return os.OpenFile(path, flag, 0o600) }
}

// openJobLogs opens the job log of the run, and the one that the user asked for.
func (r *Run) openJobLogs() error {
	for _, log := range []struct {
		file string
		open func(flag int) (*os.File, error)
	}{
		{r.dir.Path(rundir.JobLogFile), func(flag int) (*os.File, error) {
			return r.dir.OpenFile(flag, rundir.JobLogFile)
		}},
		{r.opts.JobLog, openUserFile(r.opts.JobLog)},
	} {
		file := log.file
		if file == "" {
			continue
		}
		l, err := openJobLog(file, log.open, r.dir, r.table, func(err error) {
			if err == nil {
				r.printText("the job log " + file + " can be written again")
			} else {
				r.printText("the job log waits until it can be written: " + err.Error())
			}
		})
		if err != nil && file == r.opts.JobLog {
			return err
		}
		r.jobLogs = append(r.jobLogs, l)
	}
	return nil
}
