package action

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Name is the name of an action, also in the files of requests.
type Name string

// The actions. All holds their declarations.
const (
	Cancel   Name = "cancel"   // end jobs in any open state
	Requeue  Name = "requeue"  // start a new round of finished jobs
	Priority Name = "priority" // change the priority of jobs
	Submit   Name = "submit"   // add jobs to the run
	// Change jobs that are queued or finished; finished ones begin a new round.
	Edit Name = "edit"

	Pause     Name = "pause"      // launch nothing
	Continue  Name = "continue"   // end a pause and a drain of the run
	DrainHost Name = "drain-host" // let the attempts on Host finish and launch no more there
	// End the attempts on Host, requeue their jobs, and launch no more there.
	StopHost Name = "stop-host"
	UseHost  Name = "use-host" // end DrainHost or StopHost
	Slots    Name = "slots"    // give Host Number slots; 0 restores the number from its rule

	// Use Host with Options, overriding the inventory file, also after a reload and a resume.
	AddHost Name = "add-host"
	// Let the attempts on Host finish and stop using it, overriding the inventory file.
	RemoveHost  Name = "remove-host"
	ReloadHosts Name = "reload-hosts" // read the inventory file now

	// No more jobs will be submitted: a run that is kept open ends with its last job.
	EndInput Name = "end-input"

	DrainRun Name = "drain" // let running attempts finish, launch nothing more, then end the dispatcher
	StopRun  Name = "stop"  // end the dispatcher; attempts continue, and the next dispatcher adopts them

	// Start a dispatcher for a run that has none. It is the only action without a declaration, because
	// nobody could carry out a request for it.
	Resume Name = "resume"
)

// Action is the declaration of an action. The commands and the screen take their texts from it.
// CONTRIBUTING.md lists what a new action needs.
type Action struct {
	Name Name
	// JSON names of the fields that its requests may have, in addition to those of every request.
	takes string
	needs string                  // one of these fields is required; "": none
	check func(q *Request) string // returns what else is wrong with the fields; nil: nothing can be
	text  func(q *Request) string // describes what is requested

	// What becomes of a request while nobody dispatches the run: with jobs left, and after all have
	// ended.
	stopped, finished Effect
	addsJobs          bool   // it may give a finished run jobs to run
	whyStopped        string // why it IsRefused also with jobs left

	// Answers; %s is the number of jobs or the host.
	done string
	none string // it is on jobs, and had no effect on any
	left string // follows the number of jobs that it left alone
	// In place of done: nothing runs on the host, or the host cannot be reached.
	doneIdle, doneAway string

	Command Command
	Screen  ScreenCommand
	// The question that the command asks first; %s is the hosts. The screen has a question of its own,
	// because it knows their state. "": none.
	Question string
	// Asked by the screen before it ends the dispatcher: what its running and its queued jobs do.
	Running, Queued string
}

// Command describes the command for an action in the shell. Actions whose command does more than make
// a request have none here; they have files of their own in package cli.
type Command struct {
	Use                  string // "hosts drain RUN HOST..."
	Short, Long, Example string
}

// ScreenCommand describes the command for an action in the command line of the screen.
type ScreenCommand struct{ Name, Args, Help string }

const whyUndispatched = "nobody dispatches the run"

// All has the declaration of each action, in the order of the screen's help. dispatch/sched carries the
// actions out.
var All = []*Action{
	{Name: Cancel, takes: "jobs all spare", needs: "jobs all", check: checkCancel, text: textJobs("cancel"),
		stopped: IsCarriedOut, finished: IsFulfilled,
		done: "%s canceled", none: "nothing to cancel", left: "had already finished"},
	{Name: Requeue, takes: "jobs spare", needs: "jobs", check: checkSpareSucceeded, text: textJobs("requeue"),
		stopped: IsLeft, finished: IsLeft, addsJobs: true,
		done: "%s queued again", none: "nothing to requeue", left: "had not finished"},
	{Name: Edit, takes: "jobs spare edit", needs: "jobs", check: checkEdit, text: textEdit,
		stopped: IsLeft, finished: IsLeft, addsJobs: true,
		done: "%s changed", none: "nothing was changed", left: "cannot be edited now"},
	{Name: Priority, takes: "jobs priority relative", needs: "jobs", check: checkPriority, text: textPriority,
		stopped: IsLeft, finished: IsRefused,
		done: "the priority of %s is changed", none: "nothing was changed", left: "had already finished",
		Command: Command{"priority RUN N [JOBS...]", "Set the priority of jobs",
			`Set the priority of unfinished jobs to N. Jobs with a smaller N start first; the default is 0. Put --
before a negative N. JOBS are numbers and ranges, such as 3 9-17.`, `dcs-tui priority sweep-20260314-1502 10 3 9-17
dcs-tui priority --where 'name=big*' sweep-20260314-1502 -- -1`}},
	{
		Name:     Submit,
		takes:    "specs",
		check:    checkSubmit,
		text:     textSubmit,
		stopped:  IsLeft,
		finished: IsLeft,
		addsJobs: true,
	},

	{Name: Pause, text: constantText("pause launching"), stopped: IsLeft, finished: IsRefused,
		done: "launching is paused",
		Command: Command{"pause RUN", "Pause a run: launch no more jobs for now",
			`Launch no more jobs until dcs-tui continue. Running jobs are not affected. The pause is part of the run and
stays when the dispatcher ends.`, "dcs-tui pause sweep-20260314-1502"},
		Screen: ScreenCommand{"pause", "", "launch nothing more; running jobs continue"}},
	{Name: Continue, text: constantText("continue launching"), stopped: IsLeft, finished: IsRefused,
		done: "launching continues",
		Command: Command{"continue RUN", "Launch jobs again after a pause or a drain",
			`Launch jobs again after a pause, or after a drain that has not ended the dispatcher yet.`,
			"dcs-tui continue sweep-20260314-1502"},
		Screen: ScreenCommand{"continue", "", "launch again: ends a pause and a drain"}},
	{Name: DrainHost, takes: "host", needs: "host", check: checkHost, text: textHost("drain host %s"),
		stopped: IsLeft, finished: IsRefused,
		done: "%s finishes what runs there and starts nothing more",
		Command: Command{"hosts drain RUN HOST...", "Start no more jobs on hosts of a run",
			`Start no more jobs of the run on these hosts. Jobs that run there finish.`,
			"dcs-tui hosts drain sweep-20260314-1502 ws03 ws04"},
		Screen: ScreenCommand{"drain", "HOST", "what runs on the host finishes, nothing more starts there"}},
	{Name: StopHost, takes: "host", needs: "host", check: checkHost, text: textHost("stop host %s"),
		stopped: IsLeft, finished: IsRefused,
		done:     "%s is stopped: what ran there is ended and queued again",
		doneIdle: "%s is stopped; nothing ran there",
		doneAway: "%s is stopped, but cannot be reached: " +
			"what ran there may still run; dcs-tui status says when its jobs are queued again",
		Command: Command{"hosts stop RUN HOST...", "End the jobs on hosts of a run, and queue them again",
			`End the jobs of the run that run on these hosts, queue them again for other hosts, and start no more jobs
on these hosts.`, "dcs-tui hosts stop --yes sweep-20260314-1502 ws03"},
		Screen:   ScreenCommand{"stop", "HOST", "end the host's jobs and queue them again (asks)"},
		Question: "end the jobs on %s and queue them again"},
	{Name: UseHost, takes: "host", needs: "host", check: checkHost, text: textHost("use host %s again"),
		stopped: IsLeft, finished: IsRefused, done: "%s is used again",
		Command: Command{"hosts use RUN HOST...", "Use hosts of a run again after drain or stop",
			`Start jobs of the run on these hosts again after dcs-tui hosts drain or dcs-tui hosts stop.`,
			"dcs-tui hosts use sweep-20260314-1502 ws03"},
		Screen: ScreenCommand{"use", "HOST", "use a host again"}},
	{Name: Slots, takes: "host number relative", needs: "host", check: checkSlots, text: textSlots,
		stopped: IsLeft, finished: IsRefused, done: "the slots of %s are changed",
		Command: Command{"hosts slots RUN HOST N", "Set the number of slots of a host",
			`Use at most N slots of a host of the run. 0 restores the number in the inventory. If more jobs are
running there, they finish.`, "dcs-tui hosts slots sweep-20260314-1502 ws03 4"},
		Screen: ScreenCommand{"slots", "HOST N", "how many jobs run there at once; +N more, -N fewer"}},
	{Name: AddHost, takes: "host options", needs: "host", check: checkHost, text: textAddHost,
		stopped: IsLeft, finished: IsRefused, done: "%s is added to the hosts of the run",
		Command: Command{"hosts add RUN HOST... [KEY=VALUE...]", "Add hosts to a run",
			`Add hosts to the run in addition to those in the inventory file. HOST is a name that ssh can reach.
KEY=VALUE sets a key of [[host]] for all of them; other keys have the values in [defaults] of the inventory file.
The hosts stay in the run when the inventory file is read again and when the run is resumed, until
dcs-tui hosts remove.`, `dcs-tui hosts add sweep-20260314-1502 ws07 ws08
dcs-tui hosts add sweep-20260314-1502 gpu2 slots=4 tags=gpu address=10.0.0.7,gpu2.lab`},
		Screen: ScreenCommand{"add", "HOST [KEY=VALUE...]", "add a host to the run: add ws07 slots=4 tags=gpu"}},
	{Name: RemoveHost, takes: "host", needs: "host", check: checkHost, text: textHost("remove host %s from the run"),
		stopped: IsLeft, finished: IsRefused,
		done:     "%s is removed: what runs there finishes, then it leaves the run",
		doneIdle: "%s is removed from the run",
		doneAway: "%s is removed, but cannot be reached: " +
			"what ran there may still run; dcs-tui status says when its jobs are queued again",
		Command: Command{"hosts remove RUN HOST...", "Remove hosts from a run",
			`Remove hosts from the run, even if the inventory file has them. Jobs that run there finish first.
dcs-tui hosts add brings the hosts back.`, "dcs-tui hosts remove sweep-20260314-1502 ws07"},
		Screen: ScreenCommand{"remove", "HOST", "what runs on the host finishes, then it leaves the run"}},
	{Name: ReloadHosts, text: constantText("read the inventory file again"), stopped: IsRefused, finished: IsRefused,
		whyStopped: whyUndispatched + "; the next resume reads the inventory file",
		done:       "the inventory file was read again",
		Command: Command{"hosts reload RUN", "Read the inventory file of a run again",
			`Read the inventory file of the run again now. A dispatcher also checks it for changes every two seconds. If
the file has an error, nothing changes.`, "dcs-tui hosts reload sweep-20260314-1502"}},

	{Name: EndInput, text: constantText("end the input"), stopped: IsLeft, finished: IsRefused},
	{Name: DrainRun, takes: "epoch", needs: "epoch", check: checkEpoch, text: constantText("drain the run"),
		stopped: IsRefused, finished: IsRefused, whyStopped: whyUndispatched,
		done: "no more jobs are started; the dispatcher ends when the running ones have, unless continue comes first",
		Screen: ScreenCommand{"drain-run", "",
			"what runs finishes, nothing more starts, then the dispatcher ends (asks); continue takes it back"},
		Running: "finish, nothing more starts, then the dispatcher ends", Queued: "wait for resume"},
	{Name: StopRun, takes: "epoch", needs: "epoch", check: checkEpoch, text: constantText("stop the dispatcher"),
		stopped: IsRefused, finished: IsRefused, whyStopped: whyUndispatched,
		done:    "dispatching stops; running jobs continue",
		Screen:  ScreenCommand{"stop-run", "", "the dispatcher ends, running jobs continue; resume adopts them (asks)"},
		Running: "continue without a dispatcher and are adopted by resume", Queued: "wait for resume"},
}

// Table has the same declarations by name.
var Table = map[Name]*Action{}

func init() {
	for _, a := range All {
		Table[a.Name] = a
	}
}

// accepts reports whether requests for the action may have a field.
func (a *Action) accepts(field string) bool {
	return a != nil && slices.Contains(strings.Fields(a.takes), field)
}

// IsOnHost reports whether requests for the action name a host.
func (a *Action) IsOnHost() bool { return a.accepts("host") }

// MayWait reports whether a request may wait for the next resume.
func (a *Action) MayWait() bool { return a.stopped == IsLeft }

// IsOnJobs reports whether a request names jobs.
func (q *Request) IsOnJobs() bool { return Table[q.Do].accepts("jobs") && !q.All }

// IsOnHost reports whether a request names a host.
func (q *Request) IsOnHost() bool { return Table[q.Do].IsOnHost() }

// NeedsEpoch reports whether a request is for one dispatcher only.
func (q *Request) NeedsEpoch() bool { return Table[q.Do].accepts("epoch") }

// Outcome is what became of a request.
type Outcome struct {
	Done, Left  int       // number of jobs that were changed, and that were left alone
	EndedItself int       // number of jobs of Done that ended in another way before they were canceled
	Ending      []jobs.ID // jobs of Done that are canceled and have not ended yet
	IsEarly     bool      // nobody waits for the jobs of Ending
	Priority    *int      // the new priority, if there is only one; nil: several, or unknown
	Slots       *int      // what a host was given; 0: the number of the inventory; nil: nothing, or unknown
	// State of the host before: nothing ran there, or it could not be reached.
	HostIsIdle, HostIsAway bool
}

// NumChanged returns the number of jobs that are as the request asks.
func (o *Outcome) NumChanged() int { return o.Done - o.EndedItself - len(o.Ending) }

// Answer describes the outcome of a request in a sentence.
func (q *Request) Answer(o Outcome) string {
	a := Table[q.Do]
	switch {
	case q.IsOnHost() && o.HostIsIdle && a.doneIdle != "":
		return fmt.Sprintf(a.doneIdle, q.Host)
	case q.IsOnHost() && o.HostIsAway && a.doneAway != "":
		return fmt.Sprintf(a.doneAway, q.Host)
	case q.Do == Slots && o.Slots != nil && *o.Slots == 0:
		return q.Host + " has the slots of the inventory again"
	case q.Do == Slots && o.Slots != nil:
		return fmt.Sprintf(a.done+" to %d", q.Host, *o.Slots)
	case q.IsOnHost():
		return fmt.Sprintf(a.done, q.Host)
	case a.none == "":
		return a.done
	}
	msg := a.none
	numEnding := len(o.Ending)
	if o.Done > 0 {
		msg = fmt.Sprintf(a.done, countText(q.Jobs, o.NumChanged()))
		switch {
		case o.IsEarly && numEnding > 0 && o.NumChanged() == 0:
			msg = countText(q.Jobs, numEnding) + " " + text.Verb(numEnding, "is", "are") + " being ended"
		case o.IsEarly && numEnding > 0:
			msg += fmt.Sprintf(", %d being ended", numEnding)
		case q.Do == Priority && o.Priority != nil:
			msg += fmt.Sprintf(" to %d", *o.Priority)
		case q.Do == Priority && q.Relative:
			msg += fmt.Sprintf(" by %+d", q.Priority)
		}
	}
	msg += text.If(o.EndedItself > 0, fmt.Sprintf(", %d finished before that", o.EndedItself))
	if o.Left > 0 {
		left := a.left
		if q.Spare != SpareNone {
			left = "left alone" // spared, or in the wrong state
		}
		msg += fmt.Sprintf(", %d %s", o.Left, left)
	}
	if n := numEnding; n > 0 && !o.IsEarly {
		msg += fmt.Sprintf("; %s %s not ended yet, or %s cannot be reached; %s ended as soon as possible",
			jobsText(jobs.RangesOf(o.Ending)), text.Verb(n, "has", "have"), text.Verb(n, "its host", "their hosts"),
			text.Verb(n, "it will be", "they will be"))
	}
	return msg
}

// countText returns "job 3" if a request is for that job alone, or a number of jobs.
func countText(which jobs.Ranges, n int) string {
	if n == 1 && which.Count() == 1 {
		return fmt.Sprintf("job %d", which[0].First)
	}
	return text.Plural(n, "job")
}

// fields returns the JSON names of the fields that are set and that not every action has.
func (q *Request) fields() (set []string) {
	v := reflect.ValueOf(q).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 ||
			slices.Contains([]string{"v", "do", "why", "by", "at", "-"}, name) {
			continue
		}
		set = append(set, name)
	}
	return set
}

// Problem returns why no dispatcher can carry the request out; "" if one can.
func (q *Request) Problem() string {
	k, ok := Table[q.Do]
	if !ok {
		return fmt.Sprintf("it asks for %q, which is unknown", text.Shorten(string(q.Do)))
	}
	needs := strings.Fields(k.needs)
	has := len(needs) == 0
	var extra []string
	for _, f := range q.fields() {
		has = has || slices.Contains(needs, f)
		if !k.accepts(f) {
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
	case q.Spare != SpareNone && (q.Spare != SpareStarted || q.All):
		return fmt.Sprintf("unknown jobs %q to spare from a cancel", text.Shorten(string(q.Spare)))
	}
	return ""
}

func checkSpareSucceeded(q *Request) string {
	if q.Spare != SpareNone && q.Spare != SpareSucceeded {
		return fmt.Sprintf("%q spares no jobs, but names %q", q.Do, text.Shorten(string(q.Spare)))
	}
	return ""
}

func checkEdit(q *Request) string {
	c := q.Edit
	if c == nil || c.Empty() {
		return "nothing is to be changed"
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
	return text.If(int(int32(q.Priority)) != q.Priority, "its priority is out of range")
}

func checkHost(q *Request) string {
	if len(q.Host) > maxText || len(q.Options) > maxText {
		return "the name of its host or its options are too long"
	}
	return ""
}

func checkSlots(q *Request) string {
	if q.Relative && (q.Number == 0 || q.Number < -jobs.MaxSlots || q.Number > jobs.MaxSlots) {
		return fmt.Sprintf("a change of slots is 1 to %d, more or less", jobs.MaxSlots)
	}
	if !q.Relative && q.Number < 0 {
		return fmt.Sprintf("%s needs at least 1 slot; drain it to start nothing there", text.Shorten(q.Host))
	}
	if !q.Relative && q.Number > jobs.MaxSlots {
		return fmt.Sprintf("a host has 1 to %d slots, or 0 for those of the inventory", jobs.MaxSlots)
	}
	return checkHost(q)
}

func checkEpoch(q *Request) string {
	return text.If(q.Epoch < 0, "its epoch is out of range")
}

// Text describes what is requested and by whom. It is not sanitized.
func (q *Request) Text() string {
	what := string(q.Do)
	if k, ok := Table[q.Do]; ok {
		what = k.text(q)
	}
	if q.By != "" {
		what = q.By + " asked: " + what
	}
	return what + text.If(q.Why != "", " ("+q.Why+")")
}

func constantText(what string) func(*Request) string { return func(*Request) string { return what } }

func textHost(format string) func(*Request) string {
	return func(q *Request) string { return fmt.Sprintf(format, q.Host) }
}

// textJobs returns a function that describes a request for jobs: "cancel job 3".
func textJobs(what string) func(*Request) string {
	return func(q *Request) string {
		if q.All {
			return what + " all jobs"
		}
		return what + " " + jobsText(q.Jobs)
	}
}

// jobsText returns "job 3" or "jobs 3-5,9".
func jobsText(which jobs.Ranges) string {
	if which.Count() == 1 {
		return "job " + which.String()
	}
	return "jobs " + text.Shorten(which.String())
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
