package board

import (
	"fmt"
	"strconv"
	"strings"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/view"
	"dcs-tui/jobs"
	"dcs-tui/jobs/events"
	"dcs-tui/jobs/results/sheet"
)

// maxLines bounds the events of each kind that are kept.
const maxLines = 5000

// eventLog keeps the newest records, and apart from them the newest notable ones.
type eventLog struct {
	all     []eventLine
	notable []eventLine
	older   uint64 // records of before the board was made, so far
}

type eventLine struct {
	seq  uint64
	rec  jobs.Record
	text string // made when it is first needed
}

// ownFrom is above every number of an older record.
const ownFrom = 1 << 32

func (e *eventLog) add(older []jobs.Record, all, notable []dispatch.Seen) {
	if len(older) > 0 {
		var lines, told []eventLine
		for _, r := range older {
			e.older++
			l := eventLine{seq: e.older, rec: r}
			lines = append(lines, l)
			if events.Notable(&r) {
				told = append(told, l)
			}
		}
		e.all, e.notable = before(e.all, lines), before(e.notable, told)
	}
	for _, s := range all {
		e.all = append(e.all, eventLine{seq: ownFrom + s.N, rec: s.Record})
	}
	for _, s := range notable {
		e.notable = append(e.notable, eventLine{seq: ownFrom + s.N, rec: s.Record})
	}
	e.all, e.notable = bounded(e.all), bounded(e.notable)
}

// before puts older lines where they belong: behind other older ones.
func before(list, older []eventLine) []eventLine {
	n := 0
	for n < len(list) && list[n].seq < ownFrom {
		n++
	}
	return append(append(append(make([]eventLine, 0, len(list)+len(older)), list[:n]...), older...), list[n:]...)
}

func bounded(list []eventLine) []eventLine {
	if n := len(list) - maxLines; n > maxLines/5 {
		return append([]eventLine(nil), list[n:]...)
	}
	return list
}

func (l *eventLine) say() string {
	if l.text == "" {
		l.text = events.Text(&l.rec)
	}
	return l.text
}

// window returns a piece of the log.
func (e *eventLog) window(w *view.EventsWindow) *view.Events {
	v := new(view.Events)
	fits, err := parseEvents(w.Filter)
	if err != nil {
		v.Wrong = err.Error()
		return v
	}
	list := e.notable
	if w.All {
		list = e.all
	}
	list = list[max(0, len(list)-maxLines):]
	rows := min(max(w.Rows, 0), view.MaxRows)
	back := max(w.Back, 0)
	var lines []view.Event
	for i := len(list) - 1; i >= 0; i-- {
		l := &list[i]
		if !fits(l) || l.say() == "" {
			continue
		}
		if v.Total++; v.Total > back && len(lines) < rows {
			lines = append(lines, view.Event{Seq: l.seq, At: l.rec.At.Time(), Host: l.rec.Host, Job: jobOf(&l.rec), Text: l.text, Bad: events.Bad(&l.rec)})
		}
	}
	if v.Total < back+rows && v.Total > rows { // Back goes beyond the oldest: the oldest are shown
		return e.window(&view.EventsWindow{Filter: w.Filter, All: w.All, Back: v.Total - rows, Rows: rows})
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

// parseEvents reads the filter of the event log, in the language of that of jobs: text,
// host:ws01, job:17, and comparisons of host and job.
func parseEvents(s string) (func(*eventLine) bool, error) {
	f, err := parseSearch(s)
	if err != nil || f == nil {
		return func(*eventLine) bool { return true }, err
	}
	return sheet.Compile(f, sheet.Rows[*eventLine]{Word: eventWord, Cells: eventCells})
}

func eventWord(w sheet.Word) (func(*eventLine) bool, error) {
	key, value, ok := strings.Cut(w.Text, ":")
	switch {
	case ok && !w.Quoted && key == "host":
		g, err := newGlob("host", value)
		return func(l *eventLine) bool { return g.fits(l.rec.Host) }, err
	case ok && !w.Quoted && (key == "job" || key == "id"):
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("job:%s: the number of a job is wanted, such as job:17", jobs.Clean(value, 40))
		}
		return func(l *eventLine) bool { return jobOf(&l.rec) == jobs.ID(n) }, nil
	}
	n := newNeedle(w.Text)
	return func(l *eventLine) bool { return n.in(l.say()) || n.in(l.rec.Host) }, nil
}

func eventCells(name string) (sheet.Cells[*eventLine], error) {
	c := sheet.Cells[*eventLine]{Column: sheet.Column{Name: name, Role: sheet.Fact}}
	switch name {
	case "host":
		c.Value = func(l *eventLine) sheet.Value { return sheet.TextValue(l.rec.Host) }
	case "job", "id":
		c.Value = func(l *eventLine) sheet.Value {
			if id := jobOf(&l.rec); id != 0 {
				return sheet.NumberValue(float64(id))
			}
			return sheet.Value{}
		}
	default:
		return c, fmt.Errorf("events have host and job to compare, not %s; quotes make it text", jobs.Clean(name, 40))
	}
	return c, nil
}
