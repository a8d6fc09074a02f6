package results

import (
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// timeFormat has a fixed width, so that times sort as text.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// AppendJSON adds the result as one line of JSON, version 1, newline included.
// Every key but id and those of the output is always there; what is not known or does not
// apply is null.
// Times are UTC. Bytes that are not UTF-8 become U+FFFD, and control and
// invisible characters are escaped, so that the line may also reach a terminal.
func (r *Result) AppendJSON(b []byte) []byte {
	w := jsonLine{b: append(b, `{"v":1`...)}
	w.text("run", r.Run)
	w.number("job", int64(r.Job))
	w.text("uid", r.UID)
	w.text("name", r.Name)
	w.text("queue", r.Queue)
	w.text("command", r.Command)
	w.params(r.Params)
	w.text("state", r.State.String())
	if code, ok := r.Exit(); ok {
		w.number("exit", int64(code))
	} else {
		w.null("exit")
	}
	w.textOrNull("signal", r.Signal())
	w.number("attempts", int64(r.Attempts))
	w.number("failures", int64(r.Failures))
	w.textOrNull("host", r.Host)
	w.numberOrNull("slot", int64(r.Slot))
	w.time("created", r.Created)
	w.time("started", r.Started())
	w.time("ended", r.Ended())
	if o := r.Outcome; o != nil && o.Started != 0 {
		w.seconds("elapsed_seconds", o.Elapsed())
		w.seconds("cpu_seconds", o.CPU)
		w.number("max_rss_bytes", o.MaxRSSBytes)
	} else {
		w.null("elapsed_seconds")
		w.null("cpu_seconds")
		w.null("max_rss_bytes")
	}
	w.textOrNull("stdout", r.Stdout)
	w.textOrNull("stderr", r.Stderr)
	w.textOrNull("reason", r.Reason)
	w.number("round", int64(r.Round))
	w.number("seq", r.Seq)
	if r.Key != "" {
		w.text("id", r.Key)
	}
	switch {
	case r.Output != nil:
		w.text("output", string(r.Output))
	case r.OutputErr != nil:
		w.text("output_error", r.OutputErr.Error())
	}
	return append(w.b, '}', '\n')
}

// jsonLine writes the members of an object.
type jsonLine struct{ b []byte }

func (w *jsonLine) key(name string) { w.b = append(append(append(w.b, ',', '"'), name...), '"', ':') }

func (w *jsonLine) null(name string) {
	w.key(name)
	w.b = append(w.b, "null"...)
}

func (w *jsonLine) text(name, v string) {
	w.key(name)
	w.b = AppendText(w.b, v)
}

func (w *jsonLine) textOrNull(name, v string) {
	if v == "" {
		w.null(name)
	} else {
		w.text(name, v)
	}
}

func (w *jsonLine) number(name string, v int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *jsonLine) numberOrNull(name string, v int64) {
	if v == 0 {
		w.null(name)
	} else {
		w.number(name, v)
	}
}

func (w *jsonLine) seconds(name string, d time.Duration) {
	w.key(name)
	w.b = strconv.AppendFloat(w.b, d.Seconds(), 'f', -1, 64)
}

func (w *jsonLine) time(name string, t jobs.Stamp) {
	if t == 0 {
		w.null(name)
		return
	}
	w.key(name)
	w.b = append(w.b, '"')
	w.b = t.Time().UTC().AppendFormat(w.b, timeFormat)
	w.b = append(w.b, '"')
}

// params writes an object in the order of the parameters.
func (w *jsonLine) params(list []jobs.Param) {
	w.key("params")
	w.b = append(w.b, '{')
	for i, p := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(AppendText(w.b, p.Name), ':')
		w.b = AppendText(w.b, p.Value)
	}
	w.b = append(w.b, '}')
}

// AppendText adds a JSON string. Bytes that are not UTF-8 become U+FFFD, and control
// and invisible characters are escaped: it may reach a terminal.
func AppendText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s { // gives U+FFFD for what is not UTF-8
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r >= ' ' && r < 0x7f || unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		}
	}
	return append(b, '"')
}
