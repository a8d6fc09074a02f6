package results

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// timeFormat has a fixed width, so that times sort as text.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// AppendJSON appends the result as one line of JSON, version 1, with its newline. Every key except
// id and those of the output is always present. Unknown and inapplicable values are null. Times are
// UTC. Bytes that are not UTF-8 become U+FFFD, and control and invisible characters are escaped, so
// that the line can be written to a terminal.
func (r *Result) AppendJSON(b []byte) []byte {
	w := jsonLine{b: append(b, `{"v":1`...)}
	exit, exited := r.Exit()
	o, ran := r.Outcome, r.Outcome != nil && r.Outcome.Started != 0
	if !ran {
		o = &jobs.Outcome{}
	}
	w.text("run", r.Run, true)
	w.number("job", int64(r.Job), true)
	w.text("uid", r.UID, true)
	w.text("name", r.Name, true)
	w.text("queue", r.Queue, true)
	w.text("command", r.Command, true)
	w.params(r.Params)
	w.text("state", r.State.String(), true)
	w.number("exit", int64(exit), exited)
	w.text("signal", r.Signal(), false)
	w.number("attempts", int64(r.Attempts), true)
	w.number("failures", int64(r.Failures), true)
	w.value("attempt", `"`+r.Attempt.String()+`"`, r.Attempt.N != 0)
	w.text("host", r.Host, false)
	w.number("slot", int64(r.Slot), r.Slot != 0)
	w.time("created", r.Created)
	w.time("started", r.Started())
	w.time("ended", r.Ended())
	w.value("elapsed_seconds", strconv.FormatFloat(o.Elapsed().Seconds(), 'f', -1, 64), ran)
	w.value("cpu_seconds", strconv.FormatFloat(o.CPU.Seconds(), 'f', -1, 64), ran)
	w.number("max_rss_bytes", o.MaxRSSBytes, ran)
	w.text("stdout", r.Stdout, false)
	w.text("stderr", r.Stderr, false)
	w.text("reason", r.Reason, false)
	w.number("round", int64(r.Round), true)
	w.number("seq", r.Seq, true)
	if r.Key != "" {
		w.text("id", r.Key, true)
	}
	switch {
	case r.Output != nil:
		w.text("output", string(r.Output), true)
	case r.OutputErr != nil:
		w.text("output_error", r.OutputErr.Error(), true)
		if r.OutputBytes > 0 {
			w.number("output_bytes", r.OutputBytes, true)
		}
	}
	return append(w.b, '}', '\n')
}

// jsonLine writes the members of an object. Unknown values are null.
type jsonLine struct{ b []byte }

func (w *jsonLine) value(name, v string, known bool) {
	if !known {
		v = "null"
	}
	w.b = append(append(append(append(w.b, ',', '"'), name...), '"', ':'), v...)
}

// text writes a text. An empty one is null unless always is set.
func (w *jsonLine) text(name, v string, always bool) {
	w.value(name, "", always || v != "")
	if always || v != "" {
		w.b = AppendText(w.b, v)
	}
}

func (w *jsonLine) number(name string, v int64, known bool) {
	w.value(name, "", known)
	if known {
		w.b = strconv.AppendInt(w.b, v, 10)
	}
}

func (w *jsonLine) time(name string, t jobs.Stamp) {
	w.value(name, "", t != 0)
	if t != 0 {
		w.b = t.Time().UTC().AppendFormat(w.b, `"`+timeFormat+`"`)
	}
}

// params writes an object in the order of the parameters.
func (w *jsonLine) params(list []jobs.Param) {
	w.value("params", "{", true)
	for i, p := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = AppendText(append(AppendText(w.b, p.Name), ':'), p.Value)
	}
	w.b = append(w.b, '}')
}

// AppendText appends a JSON string. Bytes that are not UTF-8 become U+FFFD, and control and
// invisible characters are escaped, so that the string can be written to a terminal.
func AppendText(b []byte, s string) []byte {
	b = append(b, '"')
	if isPlain(s) {
		return append(append(b, s...), '"')
	}
	start := len(b)
	for _, r := range s { // range yields U+FFFD for bytes that are not UTF-8
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(append(b[:start], text.EscapeJSON(b[start:])...), '"')
}

// isPlain reports whether a JSON string holds s as it is: most texts.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

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
	if r.Outcome == nil && r.Attempts == 0 {
		return b
	}
	o := r.outcome()
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
