package results

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
)

// JobLogHeader is the first line of a job log as GNU parallel writes it.
const JobLogHeader = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

// AppendJobLog appends the line of one job to b, in the format of GNU parallel --joblog, which
// `parallel --retry-failed` reads. Seq is the job's number. Send and Receive are 0. As in parallel,
// a newline in a command becomes a NUL byte, and a tab stays, because Command is the last column.
// Exitval is -1 for a timeout, and for any other failed job that has neither an exit code nor a
// signal.
//
// As in parallel, a job that never ran has no line: `parallel --resume` runs the jobs that are not
// in the log. A job that ran, but whose end was not observed, has the Exitval -1.
func AppendJobLog(b []byte, r *Result) []byte {
	o := r.Outcome
	if o == nil && r.Attempts == 0 {
		return b
	}
	if o == nil {
		o = &jobs.Outcome{}
	}
	exit, signal := o.Exit, jobs.SignalNumber(o.Signal)
	if o.Signal != "" {
		exit = 0
	}
	if o.TimedOut || exit == 0 && signal == 0 && r.State != jobs.Succeeded {
		exit = -1
	}
	// Integers: a float64 of nanoseconds since 1970 is not exact.
	start, took := max(0, int64(o.Started))/1e6, o.Elapsed().Milliseconds()
	return fmt.Appendf(b, "%d\t%s\t%d.%03d\t%6d.%03d\t0\t0\t%d\t%d\t%s\n", r.Job, r.Host, start/1000, start%1000,
		took/1000, took%1000, exit, signal, strings.ReplaceAll(r.Command, "\n", "\x00"))
}
