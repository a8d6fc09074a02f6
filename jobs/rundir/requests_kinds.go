package rundir

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// The kinds of request. The fields that each uses are in the variable kinds.
const (
	DoCancel   = "cancel"   // end jobs in any open state
	DoRequeue  = "requeue"  // start a new round of finished jobs
	DoPriority = "priority" // change the priority of jobs
	DoSubmit   = "submit"   // add jobs to the run
	// Change jobs that are queued or finished; finished ones begin a new round.
	DoEdit = "edit"

	DoPause     = "pause"      // launch nothing
	DoContinue  = "continue"   // end a pause and a drain of the run
	DoDrainHost = "drain-host" // let the attempts on Host finish and launch no more there
	// End the attempts on Host, requeue their jobs, and launch no more there.
	DoStopHost = "stop-host"
	DoUseHost  = "use-host" // end drain-host or stop-host
	DoSlots    = "slots"    // give Host Number slots; 0 restores the number from its rule

	// Use Host with Options, overriding the inventory file, also after a reload and a resume.
	DoAddHost = "add-host"
	// Let the attempts on Host finish and stop using it, overriding the inventory file.
	DoRemoveHost  = "remove-host"
	DoReloadHosts = "reload-hosts" // read the inventory file now

	// No more jobs will be submitted: a run that is kept open ends with its last job.
	DoEndInput = "end-input"

	DoDrain = "drain" // let running attempts finish, launch nothing more, then end the dispatcher
	DoStop  = "stop"  // end the dispatcher; attempts continue, and the next dispatcher adopts them
)

// kind describes a kind of request. dispatch/inbox maps it to an event of the core.
type kind struct {
	// JSON names of the fields that it may have, in addition to those of every kind.
	takes string
	needs string                  // one of these fields is required; "": none
	check func(q *Request) string // returns what else is wrong with the fields; nil: nothing can be
	text  func(q *Request) string // describes what is requested

	// What becomes of it while nobody dispatches the run: with jobs left, and after all have ended.
	stopped, finished Effect
	addsJobs          bool   // it may give a finished run jobs to run
	whyStopped        string // why it IsRefused also with jobs left
}

const whyUndispatched = "nobody dispatches the run"

var kinds = map[string]kind{
	DoCancel: {takes: "jobs all spare", needs: "jobs all", check: checkCancel, text: textJobs("cancel"),
		stopped: IsCarriedOut, finished: IsFulfilled},
	DoRequeue: {takes: "jobs spare", needs: "jobs", check: checkSpareSucceeded, text: textJobs("requeue"),
		stopped: IsLeft, finished: IsLeft, addsJobs: true},
	DoEdit: {takes: "jobs spare edit", needs: "jobs", check: checkEdit, text: textEdit, stopped: IsLeft,
		finished: IsLeft, addsJobs: true},
	DoPriority: {takes: "jobs priority relative", needs: "jobs", check: checkPriority, text: textPriority,
		stopped: IsLeft, finished: IsRefused},
	DoSubmit: {takes: "specs", check: checkSubmit, text: textSubmit, stopped: IsLeft, finished: IsLeft, addsJobs: true},

	DoPause:    {text: constantText("pause launching"), stopped: IsLeft, finished: IsRefused},
	DoContinue: {text: constantText("continue launching"), stopped: IsLeft, finished: IsRefused},
	DoDrainHost: {takes: "host", needs: "host", check: checkHost, text: textHost("drain host %s"),
		stopped: IsLeft, finished: IsRefused},
	DoStopHost: {takes: "host", needs: "host", check: checkHost, text: textHost("stop host %s"),
		stopped: IsLeft, finished: IsRefused},
	DoUseHost: {takes: "host", needs: "host", check: checkHost, text: textHost("use host %s again"),
		stopped: IsLeft, finished: IsRefused},
	DoSlots: {takes: "host number relative", needs: "host", check: checkSlots, text: textSlots,
		stopped: IsLeft, finished: IsRefused},
	DoAddHost: {takes: "host options", needs: "host", check: checkHost, text: textAddHost,
		stopped: IsLeft, finished: IsRefused},
	DoRemoveHost: {takes: "host", needs: "host", check: checkHost, text: textHost("remove host %s from the run"),
		stopped: IsLeft, finished: IsRefused},
	DoReloadHosts: {text: constantText("read the inventory file again"), stopped: IsRefused, finished: IsRefused,
		whyStopped: whyUndispatched + "; the next resume reads the inventory file"},

	DoEndInput: {text: constantText("end the input"), stopped: IsLeft, finished: IsRefused},
	DoDrain: {takes: "epoch", needs: "epoch", check: checkEpoch, text: constantText("drain the run"),
		stopped: IsRefused, finished: IsRefused, whyStopped: whyUndispatched},
	DoStop: {takes: "epoch", needs: "epoch", check: checkEpoch, text: constantText("stop the dispatcher"),
		stopped: IsRefused, finished: IsRefused, whyStopped: whyUndispatched},
}

// fields returns the JSON names of the fields that are set and are not for every kind.
func (q *Request) fields() (set []string) {
	v := reflect.ValueOf(q).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 ||
			slices.Contains([]string{"v", "do", "why", "by", "at"}, name) {
			continue
		}
		set = append(set, name)
	}
	return set
}

// problem returns why no dispatcher can carry the request out; "" if one can.
func (q *Request) problem() string {
	k, ok := kinds[q.Do]
	if !ok {
		return fmt.Sprintf("it asks for %q, which is unknown", text.Shorten(q.Do))
	}
	takes, needs := strings.Fields(k.takes), strings.Fields(k.needs)
	has := len(needs) == 0
	var extra []string
	for _, f := range q.fields() {
		has = has || slices.Contains(needs, f)
		if !slices.Contains(takes, f) {
			extra = append(extra, f)
		}
	}
	switch {
	case len(extra) > 0:
		return fmt.Sprintf("%q does not accept %s", q.Do, strings.Join(extra, ", "))
	case !has:
		return fmt.Sprintf("%q needs %s", q.Do, strings.Join(needs, " or "))
	case len(q.Why) > maxText || len(q.By) > maxText:
		return "its texts are too long"
	case k.check != nil:
		return k.check(q)
	}
	return ""
}

func checkCancel(q *Request) string {
	switch {
	case q.All && len(q.Jobs) > 0:
		return "a cancel of all jobs names none"
	case q.Spare != "" && (q.Spare != SpareStarted || q.All):
		return fmt.Sprintf("unknown jobs %q to spare from a cancel", text.Shorten(q.Spare))
	}
	return ""
}

func checkSpareSucceeded(q *Request) string {
	if q.Spare != "" && q.Spare != SpareSucceeded {
		return fmt.Sprintf("%q spares no jobs, but names %q", q.Do, text.Shorten(q.Spare))
	}
	return ""
}

func checkEdit(q *Request) string {
	c := q.Edit
	if c == nil || c.Empty() {
		return "it does not say what is to be changed"
	}
	if err := c.Check(); err != nil {
		return shorten(err.Error())
	}
	for _, s := range []*string{c.Command, c.Name} {
		if s != nil && !utf8.ValidString(*s) {
			return "it has a text that is not valid UTF-8, which a request cannot hold"
		}
	}
	return checkSpareSucceeded(q)
}

func checkPriority(q *Request) string {
	if int(int32(q.Priority)) != q.Priority {
		return "its priority is out of range"
	}
	return ""
}

func checkHost(q *Request) string {
	if len(q.Host) > maxText || len(q.Options) > maxText {
		return "the name of its host or its options are too long"
	}
	return ""
}

func checkSlots(q *Request) string {
	if q.Relative && (q.Number == 0 || max(q.Number, -q.Number) > jobs.MaxSlots) {
		return fmt.Sprintf("a change of slots is 1 to %d, more or less", jobs.MaxSlots)
	}
	if !q.Relative && (q.Number < 0 || q.Number > jobs.MaxSlots) {
		return fmt.Sprintf("a host has 1 to %d slots, or 0 for those of the inventory", jobs.MaxSlots)
	}
	return checkHost(q)
}

func checkEpoch(q *Request) string {
	if q.Epoch < 0 {
		return "its epoch is out of range"
	}
	return ""
}

// Text describes what is requested and by whom. It is not sanitized.
func (q *Request) Text() string {
	what := q.Do
	if k, ok := kinds[q.Do]; ok {
		what = k.text(q)
	}
	if q.By != "" {
		what = q.By + " asked: " + what
	}
	if q.Why != "" {
		what += " (" + q.Why + ")"
	}
	return what
}

func constantText(what string) func(*Request) string { return func(*Request) string { return what } }

func textHost(format string) func(*Request) string {
	return func(q *Request) string { return fmt.Sprintf(format, q.Host) }
}

// textJobs returns a function that describes a request for jobs: "cancel job 3".
func textJobs(what string) func(*Request) string {
	return func(q *Request) string {
		switch {
		case q.All:
			return what + " all jobs"
		case q.Jobs.Count() == 1:
			return what + " job " + q.Jobs.String()
		}
		return what + " jobs " + text.Shorten(q.Jobs.String())
	}
}

func textPriority(q *Request) string {
	if q.Relative {
		return textJobs(fmt.Sprintf("add %d to the priority of", q.Priority))(q)
	}
	return textJobs(fmt.Sprintf("priority %d for", q.Priority))(q)
}

func textEdit(q *Request) string {
	what := textJobs("edit")(q)
	if q.Edit != nil {
		what += ": " + text.Shorten(q.Edit.String())
	}
	return what
}

func textSubmit(q *Request) string {
	return "submit " + text.Plural(strings.Count(q.Specs, "\n"), "job")
}

func textAddHost(q *Request) string {
	if q.Options == "" {
		return "add host " + q.Host
	}
	return "add host " + q.Host + " with " + q.Options
}

func textSlots(q *Request) string {
	switch {
	case q.Relative && q.Number < 0:
		return "give host " + q.Host + " " + text.Plural(-q.Number, "slot") + " fewer"
	case q.Relative:
		return "give host " + q.Host + " " + text.Plural(q.Number, "slot") + " more"
	case q.Number == 0:
		return "give host " + q.Host + " the slots of the inventory again"
	}
	return "give host " + q.Host + " " + text.Plural(q.Number, "slot")
}

// shorten cuts a text to maxText bytes and makes it valid UTF-8.
func shorten(s string) string {
	return strings.ToValidUTF8(text.ShortenBytes(s, maxText), "?")
}
