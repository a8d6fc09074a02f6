package rundir

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// Text says what is asked and by whom, for people: as it came, not yet clean.
func (q *Request) Text() string {
	what := q.Do + " "
	if q.Do == DoPriority {
		what = fmt.Sprintf("priority %d for ", q.Priority)
	}
	switch {
	case q.Do == DoSubmit:
		if what = "submit 1 job"; strings.Count(q.Specs, "\n") != 1 {
			what = fmt.Sprintf("submit %d jobs", strings.Count(q.Specs, "\n"))
		}
	case q.All:
		what += "all jobs"
	case q.Jobs.Count() == 1:
		what += "job " + q.Jobs.String()
	default:
		what += "jobs " + cut(q.Jobs.String())
	}
	if q.Edit != nil {
		what += ": " + cut(q.Edit.String())
	}
	if q.By != "" {
		what = q.By + " asked: " + what
	}
	if q.Why != "" {
		what += " (" + q.Why + ")"
	}
	return what
}

// wrong says what no dispatcher could carry out; "" when nothing.
func (q *Request) wrong() string {
	switch {
	case q.Do == DoSubmit:
		if len(q.Why) > maxWords || len(q.By) > maxWords {
			return "its texts are too long"
		}
		return q.wrongSubmit()
	case q.Specs != "":
		return "only what submits jobs has jobs"
	case q.Do != DoCancel && q.Do != DoRequeue && q.Do != DoPriority && q.Do != DoEdit:
		return fmt.Sprintf("it asks for %q, which is unknown", cut(q.Do))
	case q.All && (q.Do != DoCancel || len(q.Jobs) > 0):
		return "only a cancel can be of all jobs, and then it names none"
	case !q.All && len(q.Jobs) == 0:
		return "it names no jobs"
	case int(int32(q.Priority)) != q.Priority:
		return "its priority is out of range"
	case len(q.Why) > maxWords || len(q.By) > maxWords:
		return "its texts are too long"
	case !q.sparesRightly():
		return fmt.Sprintf("a %s cannot spare %q", q.Do, cut(q.Spare))
	case q.Do == DoEdit:
		return wrongEdit(q.Edit)
	case q.Edit != nil:
		return "only an edit says what is to be changed"
	}
	return ""
}

func (q *Request) sparesRightly() bool {
	switch q.Spare {
	case "":
		return true
	case SpareSucceeded:
		return q.Do == DoEdit || q.Do == DoRequeue
	case SpareStarted:
		return q.Do == DoCancel && !q.All
	}
	return false
}

func wrongEdit(c *jobs.Change) string {
	if c == nil || c.Empty() {
		return "it does not say what is to be changed"
	}
	if err := c.Check(); err != nil {
		return words(err.Error())
	}
	for _, s := range []*string{c.Command, c.Name} {
		if s != nil && !utf8.ValidString(*s) {
			return "it has a text that is not valid UTF-8, which a request cannot hold"
		}
	}
	return ""
}

// words shortens a text and makes it valid.
func words(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxWords-2*utf8.UTFMax)], "?")
}
