package runview

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// maxLines bounds the events of each kind that are shown; twice as many are kept.
const maxLines = 5000

// eventLog keeps the newest records, and apart from them the newest notable ones.
type eventLog struct {
	all, notable eventList
	n            uint64 // records
}

// eventList is the newest of some records.
type eventList struct {
	lines []eventLine
	cut   bool // there were more
}

type eventLine struct {
	seq  uint64
	rec  jobs.Record
	text string // made when it is first needed
}

func (e *eventLog) add(r *jobs.Record) {
	e.n++
	e.all.add(e.n, r)
	if Notable(r) {
		e.notable.add(e.n, r)
	}
}

func (e *eventList) add(n uint64, r *jobs.Record) {
	if len(e.lines) == 2*maxLines {
		e.lines, e.cut = append(e.lines[:0], e.lines[maxLines:]...), true
	}
	e.lines = append(e.lines, eventLine{seq: n, rec: *r})
}

// newest are those that are shown; cut: there were more.
func (e *eventList) newest() (lines []eventLine, cut bool) {
	over := max(0, len(e.lines)-maxLines)
	return e.lines[over:], e.cut || over > 0
}

func (l *eventLine) say() string {
	if l.text == "" {
		l.text = Text(&l.rec)
	}
	return l.text
}

// window returns a piece of the log.
func (e *eventLog) window(w *EventsWindow) *Events {
	v := new(Events)
	fits, err := parseEvents(w.Filter)
	if err != nil {
		v.Wrong = err.Error()
		return v
	}
	of := &e.notable
	if w.All {
		of = &e.all
	}
	list, cut := of.newest()
	v.Cut = cut
	rows := min(max(w.Rows, 0), MaxRows)
	back := max(w.Back, 0)
	var lines []Event
	for i := len(list) - 1; i >= 0; i-- {
		l := &list[i]
		if !fits(l) || l.say() == "" {
			continue
		}
		if v.Total++; v.Total > back && len(lines) < rows {
			lines = append(lines, Event{Seq: l.seq, At: l.rec.At.Time(), Host: l.rec.Host, Job: jobOf(&l.rec), Text: l.text, Bad: Bad(&l.rec)})
		}
	}
	if v.Total < back+rows && v.Total > rows { // Back goes beyond the oldest: the oldest are shown
		return e.window(&EventsWindow{Filter: w.Filter, All: w.All, Back: v.Total - rows, Rows: rows})
	}
	v.Back = min(back, max(0, v.Total-len(lines)))
	for i := range lines {
		v.Lines = append(v.Lines, lines[len(lines)-1-i])
	}
	return v
}

// jobOf is the job that a record is about, 0 when it is about several or none.
func jobOf(r *jobs.Record) jobs.ID {
	if r.Kind == jobs.KindAccepted {
		return 0
	}
	return r.Job
}

// parseEvents reads the filter of the event log. Words are searched for in the text and
// the name of the host.
func parseEvents(s string) (func(*eventLine) bool, error) {
	q, err := parseSearch(s)
	if err != nil || q == nil {
		return func(*eventLine) bool { return true }, err
	}
	return query.Compile(q, query.Lookup[*eventLine](eventField), func(text string) func(*eventLine) bool {
		has := query.Contains(text)
		return func(l *eventLine) bool { return has(l.say()) || has(l.rec.Host) }
	})
}

func eventField(name string) (*query.Field[*eventLine], error) {
	switch name = strings.ToLower(name); name {
	case "host":
		return &query.Field[*eventLine]{Name: name, Type: query.TextType, Fact: true,
			Value: func(l *eventLine) query.Value { return query.TextValue(l.rec.Host) }}, nil
	case "job", "id":
		return &query.Field[*eventLine]{Name: name, Type: query.NumberType, Fact: true,
			Value: func(l *eventLine) query.Value { return optional(jobOf(&l.rec) != 0, float64(jobOf(&l.rec))) }}, nil
	}
	return nil, fmt.Errorf("%w; quotes make it a text", query.Unknown("column", name, []string{"host", "job"}))
}

// Notable says whether a person wants to hear of a record without asking: what
// happened to hosts and the run, losses, failures, retries, what people asked for. What
// goes well, and what is done to each of very many jobs, is not notable; nor that a
// request was carried out, which an event announced in words. One that was refused is.
func Notable(r *jobs.Record) bool {
	switch r.Kind {
	case jobs.KindEpoch, jobs.KindEnded, jobs.KindDamaged, jobs.KindLost, jobs.KindForgiven:
		return true
	case jobs.KindEvent, jobs.KindRequest: // of requests, those that were refused
		return r.Reason != ""
	case jobs.KindClosed:
		return r.How != jobs.ClosedDone // else KindEnded says it
	case jobs.KindExited:
		return r.Next != jobs.Succeeded && r.Outcome != nil && !r.Outcome.OK()
	case jobs.KindJob:
		return r.Next == jobs.Failed
	case jobs.KindRunning:
		return r.Reason != "" // it had been given up as lost
	}
	return false
}

// Bad says whether a record is of a failure or a loss: worth a warning sign.
func Bad(r *jobs.Record) bool {
	switch r.Kind {
	case jobs.KindLost, jobs.KindDamaged:
		return true
	case jobs.KindExited:
		return r.Outcome != nil && !r.Outcome.OK() && !r.Outcome.Stopped
	case jobs.KindJob:
		return r.Next == jobs.Failed
	case jobs.KindEnded, jobs.KindRequest:
		return r.Reason != ""
	case jobs.KindClosed:
		return r.How == jobs.ClosedNoHosts
	}
	return false
}
