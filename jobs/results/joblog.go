package results

import (
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// JobLogHeader is the first line of a job log as GNU parallel writes it.
const JobLogHeader = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

// AppendJobLog adds the line of one job to b, in the format of GNU parallel
// --joblog, so that its readers and `parallel --retry-failed` understand it:
// Seq is the job's number, Send and Receive are 0, a newline in a command becomes
// a NUL byte and a tab stays, as parallel does (Command is the last column).
// Exitval is -1 for a timeout, and for any other job that did not succeed though
// it has neither an exit code nor a signal to show for it.
//
// A job that never ran has no line, as there: `parallel --resume` runs what is
// not in the log. One that ran and whose end nobody saw has Exitval -1.
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
	b = strconv.AppendInt(b, int64(r.Job), 10)
	b = append(b, '\t')
	b = append(b, r.Host...)
	b = append(b, '\t')
	b = appendMillis(b, time.Duration(max(0, o.Started)), 0)
	b = append(b, '\t')
	b = appendMillis(b, o.Elapsed(), 10)
	b = append(b, "\t0\t0\t"...)
	b = strconv.AppendInt(b, int64(exit), 10)
	b = append(b, '\t')
	b = strconv.AppendInt(b, int64(signal), 10)
	b = append(b, '\t')
	b = append(b, strings.ReplaceAll(r.Command, "\n", "\x00")...)
	return append(b, '\n')
}

// appendMillis writes seconds with three decimals, cut and not rounded, right
// aligned in a field of that width; integers, because a float64 of nanoseconds
// since 1970 is not exact.
func appendMillis(b []byte, d time.Duration, width int) []byte {
	ms := int64(d / time.Millisecond)
	whole := strconv.FormatInt(ms/1000, 10)
	for range width - len(whole) - 4 {
		b = append(b, ' ')
	}
	b = append(append(b, whole...), '.')
	return append(b, byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10))
}
