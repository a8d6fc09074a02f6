package runview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// MaxEvents bounds the events of each kind that are shown; twice as many are kept.
const MaxEvents = 5000

// eventLog keeps the newest records and, separately, the newest notable ones.
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
	if IsNotable(r) {
		e.notable.add(e.n, r)
	}
}

func (e *eventList) add(n uint64, r *jobs.Record) {
	if len(e.lines) == 2*MaxEvents {
		e.lines, e.cut = append(e.lines[:0], e.lines[MaxEvents:]...), true
	}
	e.lines = append(e.lines, eventLine{seq: n, rec: *r})
}

// newest returns the lines that are shown, and whether there are more.
func (e *eventList) newest() (lines []eventLine, cut bool) {
	over := max(0, len(e.lines)-MaxEvents)
	return e.lines[over:], e.cut || over > 0
}

func (l *eventLine) sentence() string {
	if l.text == "" {
		l.text = Text(&l.rec)
	}
	return l.text
}

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
	for i := len(list) - 1; i >= 0; i-- {
		l := &list[i]
		if !fits(l) || l.sentence() == "" {
			continue
		}
		v.Total++
		if len(v.Lines) < w.Rows {
			v.Lines = append(v.Lines, Event{Seq: l.seq, At: l.rec.At.Time(), Host: l.rec.Host, Job: jobOf(&l.rec),
				Text: l.text, Bad: IsFailure(&l.rec)})
		}
	}
	slices.Reverse(v.Lines)
	return v
}

// jobOf returns the job that a record is about, or 0 if it is about none or several.
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
	return query.Compile(q, query.Fields[*eventLine](eventField), func(text string) func(*eventLine) bool {
		has := query.Contains(text)
		return func(l *eventLine) bool { return has(l.sentence()) || has(l.rec.Host) }
	})
}

func eventField(name string) (*query.Field[*eventLine], error) {
	name = strings.ToLower(name)
	switch name {
	case "host":
		return &query.Field[*eventLine]{Name: name, Type: query.TextType, Fact: true,
			Value: func(l *eventLine) query.Value { return query.TextValue(l.rec.Host) }}, nil
	case "job", "id":
		return &query.Field[*eventLine]{Name: name, Type: query.NumberType, Fact: true,
			Value: func(l *eventLine) query.Value { return optional(jobOf(&l.rec) != 0, float64(jobOf(&l.rec))) }}, nil
	}
	return nil, fmt.Errorf("%w; quotes make it a text", query.Unknown("column", name, []string{"host", "job"}))
}

// IsNotable reports whether a record is shown by default. Notable are changes of hosts and of the
// run, losses, failures, retries, and refused requests. Not notable are successes, changes of very
// many jobs at once, and requests that were carried out, because an event describes those.
func IsNotable(r *jobs.Record) bool {
	switch r.Kind {
	case jobs.KindEpoch, jobs.KindEnded, jobs.KindDamaged, jobs.KindLost, jobs.KindForgiven:
		return true
	case jobs.KindEvent, jobs.KindRequest: // only refused requests
		return r.Reason != ""
	case jobs.KindClosed:
		return r.How != jobs.ClosedDone // a KindEnded follows otherwise
	case jobs.KindExited:
		return r.Next != jobs.Succeeded && r.Outcome != nil && !r.Outcome.OK()
	case jobs.KindJob:
		return r.Next == jobs.Failed
	case jobs.KindRunning:
		return r.Reason != "" // it had been given up as lost
	}
	return false
}

// IsFailure reports whether a record is about a failure or a loss.
func IsFailure(r *jobs.Record) bool {
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

// Text describes a record in a sentence, which is not cleaned. It is "" for records that do not
// concern people.
func Text(r *jobs.Record) string {
	switch r.Kind {
	case jobs.KindEpoch:
		return fmt.Sprintf("%s dispatches the run (epoch %d)", cmp.Or(r.Owner, "a dispatcher"), r.Epoch)
	case jobs.KindAccepted:
		if r.Count == 1 {
			return fmt.Sprintf("job %d is part of the run", r.Job)
		}
		return fmt.Sprintf("%d jobs are part of the run: %d-%d", r.Count, r.Job, int(r.Job)+r.Count-1)
	case jobs.KindLaunching:
		return fmt.Sprintf("%s is sent to %s", r.Attempt(), r.Host)
	case jobs.KindRunning:
		text := fmt.Sprintf("%s has started on %s", r.Attempt(), cmp.Or(r.Host, "its host"))
		if r.Slot != 0 {
			text += fmt.Sprintf(", slot %d", r.Slot)
		}
		return text + because(r.Reason)
	case jobs.KindExited:
		return endText(r, "has ended", "has ended on "+cmp.Or(r.Host, "its host")) + becameText(r)
	case jobs.KindLost:
		return fmt.Sprintf("%s is lost%s", r.Attempt(), because(r.Reason)) + becameText(r)
	case jobs.KindSuperseded:
		return endText(r, "has ended, too late to count", "does not run") + becameText(r)
	case jobs.KindCanceled:
		return endText(r, "was ended", "was taken back") + becameText(r)
	case jobs.KindJob:
		return fmt.Sprintf("job %d %s%s", r.Job, stateText(r.Next), because(r.Reason))
	case jobs.KindCanceling:
		if r.How == jobs.ThenRequeue {
			return fmt.Sprintf("job %d is requeued when it has ended", r.Job)
		}
		return fmt.Sprintf("job %d is being ended%s", r.Job, because(r.Reason))
	case jobs.KindRequest:
		return requestText(r)
	case jobs.KindRound:
		return fmt.Sprintf("job %d begins a new round%s", r.Job, because(r.Reason))
	case jobs.KindEdited:
		text := fmt.Sprintf("job %d is changed", r.Job)
		if r.Spec != nil {
			text += ": " + r.Spec.Title()
		}
		return text
	case jobs.KindPriority:
		return fmt.Sprintf("job %d has priority %d", r.Job, r.Priority)
	case jobs.KindForgiven:
		return fmt.Sprintf("%s does not count as a try after all%s", r.Attempt(), because(r.Reason))
	case jobs.KindEvent:
		return r.Reason
	case jobs.KindHost:
		return hostText(r)
	case jobs.KindMachine:
		return r.Host + " is the machine " + r.Reason
	case jobs.KindInventory:
		return inventoryText(r)
	case jobs.KindPause:
		if r.N == 1 {
			return "the results for --halt are counted from zero"
		}
		if r.Count == 0 {
			return "launching continues"
		}
		return "launching is paused until a person continues it"
	case jobs.KindInstance:
		return r.InstanceText()
	case jobs.KindEnded:
		return "the run is over" + because(r.Reason)
	case jobs.KindClosed:
		return closedText(jobs.Closing{How: r.Closed(), Reason: r.Reason})
	case jobs.KindDamaged:
		return "records of the journal are missing" + because(r.Reason)
	case jobs.KindAcked:
		return ""
	}
	return string(r.Kind) + because(r.Reason)
}

// inventoryText returns how a person changed the set of hosts.
func inventoryText(r *jobs.Record) string {
	switch r.Count {
	case jobs.HostAdded:
		if r.Reason != "" {
			return fmt.Sprintf("%s (%s) is added to the hosts of the run on request", r.Host, r.Reason)
		}
		return r.Host + " is added to the hosts of the run on request"
	case jobs.HostRemoved:
		return r.Host + " is removed from the hosts of the run on request"
	}
	return r.Host + " is part of the run if the inventory file says so"
}

// requestText describes how a request was answered. An event before it names the request.
func requestText(r *jobs.Record) string {
	switch {
	case r.Reason != "":
		return "the request is refused: " + r.Reason
	case r.N > 0:
		return fmt.Sprintf("the request is carried out, except for %s that it did not apply to",
			text.Plural(r.N, "job"))
	}
	return "the request is carried out"
}

// closedText returns how a dispatcher ended, and why.
func closedText(c jobs.Closing) string {
	how := "has ended"
	switch c.How {
	case jobs.ClosedDrained:
		how = "has drained the run and ended"
	case jobs.ClosedReached:
		how = "has ended the run, as --halt asks"
	case jobs.ClosedStopped:
		how = "was stopped"
	case jobs.ClosedNoHosts:
		how = "gave up because no host could be used"
	}
	return "the dispatcher " + how + because(c.Reason)
}

// hostText describes what a person asked of a host.
func hostText(r *jobs.Record) string {
	msg := "is in use"
	switch jobs.HostUse(r.Count) {
	case jobs.HostDrained:
		msg = "is drained"
	case jobs.HostStopped:
		msg = "is stopped"
	}
	msg += text.If(r.Slot > 0, ", with "+text.Plural(r.Slot, "slot"))
	return fmt.Sprintf("%s %s from now on, as a person asked", r.Host, msg)
}

// endText describes how an attempt ended. Without an outcome, it is what follows its name in other.
func endText(r *jobs.Record, verb, other string) string {
	o := r.Outcome
	if o == nil {
		return r.Attempt().String() + " " + other + because(r.Reason)
	}
	msg := fmt.Sprintf("%s %s on %s", r.Attempt(), verb, cmp.Or(r.Host, "its host"))
	msg += text.If(o.Started != 0, " after "+text.Duration(o.Elapsed()))
	msg += ": " + results.Cause(jobs.Failed, "", o) + ExitMeaning(o) + text.If(o.LastLine != "", ", “"+o.LastLine+"”")
	return msg + text.If(o.LeftChildren > 0, ", "+text.Plural(int(o.LeftChildren), "process")+" left behind")
}

// becameText describes the state that the end of an attempt gave its job.
func becameText(r *jobs.Record) string {
	why := ""
	if r.Outcome != nil {
		why = because(r.Reason) // otherwise the reason was given already
	}
	switch {
	case r.Seq != 0:
		return fmt.Sprintf("; job %d %s%s", r.Job, stateText(r.Next), why)
	case r.Next == jobs.Running:
		return "; another attempt of the job continues" + why
	case r.Next != jobs.Queued:
		return why // its job was over before
	}
	msg := "; the job is queued again" + why + text.If(r.Charged, ", a try is used up")
	if wait := r.Retry.Sub(r.At); r.Retry > 0 && wait > 0 {
		msg += ", next in " + text.Duration(wait)
	}
	return msg
}

// stateText describes what happened to a job, to follow its name.
func stateText(s jobs.JobState) string {
	switch s {
	case jobs.Succeeded, jobs.Failed:
		return "has " + s.String()
	case jobs.TimedOut:
		return "has timed out"
	case jobs.Queued:
		return "is queued again"
	case jobs.Running:
		return "runs"
	}
	return "is " + s.String()
}

func because(why string) string {
	return text.If(why != "", ": "+why)
}

// ExitMeaning explains the exit codes that a POSIX shell itself returns (sh(1), 2.8.2), such as
// " (command not found)" for 127. For a job that exceeded its memory limit, it returns how much
// the job used. It is "" for others.
func ExitMeaning(o *jobs.Outcome) string {
	if o != nil && o.Memory == jobs.MemoryLimit {
		return " (it used " + text.Size(o.MaxRSSBytes) + ")"
	}
	if o == nil || o.Memory != 0 || o.Signal != "" || o.Error != "" || o.TimedOut || o.Stopped {
		return ""
	}
	switch {
	case o.Exit == 126:
		return " (not executable)"
	case o.Exit == 127:
		return " (command not found)"
	case o.Exit > 128:
		if name := jobs.SignalName(o.Exit - 128); name != "" {
			return " (" + name + " in its shell)"
		}
	}
	return ""
}

// EventJSON is a record as `events --json` prints it. Text is for people and not cleaned,
// because JSON quotes it.
type EventJSON struct {
	V       int            `json:"v"`
	At      time.Time      `json:"at"`
	Epoch   int            `json:"epoch"` // the dispatcher that recorded it
	Kind    jobs.Kind      `json:"kind"`
	Job     jobs.ID        `json:"job,omitempty"`
	Attempt string         `json:"attempt,omitempty"`
	Host    string         `json:"host,omitempty"`
	State   *jobs.JobState `json:"state,omitempty"`   // what the job became
	Count   int            `json:"count,omitempty"`   // jobs, of kinds accepted and request
	Request string         `json:"request,omitempty"` // name of the request that caused it
	Refused string         `json:"refused,omitempty"` // why that request was not carried out
	Text    string         `json:"text"`
}

// EventOf returns the event of a record that the dispatcher epoch wrote.
func EventOf(epoch int, r *jobs.Record) *EventJSON {
	e := &EventJSON{V: 1, At: r.At.Time().UTC(), Epoch: epoch, Kind: r.Kind, Job: r.Job, Host: r.Host, Count: r.Count,
		Request: r.Request, Text: Text(r)}
	if r.Kind == jobs.KindRequest {
		e.Refused = r.Reason
	}
	switch r.Kind {
	case jobs.KindLaunching, jobs.KindRunning:
		e.State, e.Attempt = new(jobs.Running), r.Attempt().String()
		if r.Next.Terminal() { // the job has its result, and keeps it
			e.State = &r.Next
		}
	case jobs.KindForgiven:
		e.Attempt = r.Attempt().String()
	case jobs.KindExited, jobs.KindLost, jobs.KindSuperseded, jobs.KindCanceled:
		e.State, e.Attempt = &r.Next, r.Attempt().String()
	case jobs.KindJob:
		e.State = &r.Next
	case jobs.KindRound, jobs.KindEdited:
		e.State = new(jobs.Queued)
	}
	return e
}
