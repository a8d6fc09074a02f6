package cli

import (
	"fmt"
	"os"
	"sort"

	"dcs-tui/dispatch"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// jobLog writes a job log as GNU parallel does. It is written anew at the start
// of a session, from the journal, because what a killed dispatcher had not
// written would be missing from it for ever.
type jobLog struct {
	path string
	f    *os.File
	buf  []byte
	bad  bool // it was said that it cannot be written
}

func openJobLog(path string, run *rundir.Run, t *jobs.Table) (*jobLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the job log: %w", err)
	}
	l := &jobLog{path: path, f: f, buf: []byte(results.JobLogHeader)}
	for _, r := range finished(run, t) {
		l.buf = results.AppendJobLog(l.buf, &r)
	}
	if err := l.flush(); err != nil {
		f.Close()
		return nil, fmt.Errorf("the job log: %w", err)
	}
	return l, nil
}

// Add appends a line. The first failure is an error, further ones are not: the
// journal has everything, and the next session writes the log anew.
func (l *jobLog) Add(r *dispatch.Result) error {
	l.buf = results.AppendJobLog(l.buf[:0], r)
	err := l.flush()
	if err == nil || l.bad {
		return nil
	}
	l.bad = true
	return fmt.Errorf("the job log %s lacks lines: %w; `resume` writes it anew", l.path, err)
}

func (l *jobLog) flush() error {
	_, err := l.f.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// Close closes the file.
func (l *jobLog) Close() error { return l.f.Close() }

// finished returns the results of all terminal jobs in the order in which they
// ended.
func finished(run *rundir.Run, t *jobs.Table) []results.Result {
	var list []results.Result
	where := readPlaces(run)
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.State.Terminal() {
			list = append(list, resultOf(run, where, j))
		}
	}
	sort.SliceStable(list, func(i, k int) bool { return list[i].Seq < list[k].Seq })
	return list
}
