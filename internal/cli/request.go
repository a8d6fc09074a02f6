package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/ask"
	"dcs-tui/observe/runview"
)

// Commands that change a run send requests to its dispatcher. All of them select jobs (select.go),
// ask for confirmation, send the request, and print the answer. requestCmd makes those that do
// nothing else from the declarations of their actions.

// requestFlags holds the flags of the commands that send requests.
type requestFlags struct {
	yes, json bool
}

func (o *requestFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as one JSON object on stdout")
}

// sentRequests holds requests and their answers.
type sentRequests struct {
	run           *rundir.Run
	requests      []*ask.TrackedRequest
	hasDispatcher bool // the run has a dispatcher
	isWaiting     bool // not all requests have been answered
}

// sendRequests sends requests to the dispatcher of a run, in their order, and waits for the
// answers. Without a dispatcher the requests wait in the run directory, unless they could do nothing
// (see admit). It reports a request that the dispatcher does not answer. A refused request is an
// error. table is the state of the run; nil: not known.
func (a *app) sendRequests(ctx context.Context, run *rundir.Run, table *jobs.Table,
	requests ...*action.Request) (*sentRequests, error) {
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return nil, err
	}
	sent := &sentRequests{run: run, hasDispatcher: owner.Liveness() != journal.Dead}
	if !sent.hasDispatcher {
		if err := a.admit(run, table, requests); err != nil {
			return nil, err
		}
	}
	prepare := ask.Leave // several requests are all durable before the first is awaited
	if sent.hasDispatcher && len(requests) == 1 && requests[0].Do != action.Submit {
		prepare = ask.Prepare
	}
	at := time.Now()
	for i, request := range requests {
		// Names keep their order.
		request.By, request.At = dispatch.Asker(), at.Add(time.Duration(i)*time.Microsecond)
		asked, err := prepare(run, request)
		if err != nil {
			if i > 0 {
				a.warn("%d of %d requests were submitted before this error", i, len(requests))
			}
			return nil, err
		}
		sent.requests = append(sent.requests, asked)
	}
	for _, asked := range sent.requests {
		switch {
		case !sent.hasDispatcher:
			asked.Poll()
		case asked.IsOver():
		case a.awaitAnswer(ctx, asked, owner):
			sent.hasDispatcher = false
		case !asked.Answered && asked.Refused == "":
			a.reportUnanswered(asked, owner)
		}
		switch {
		case asked.Refused != "":
			return nil, text.Errorf("%s", text.Line(asked.Refused))
		case !asked.Answered:
			sent.isWaiting = true
			return sent, nil // the later requests wait, too
		}
	}
	return sent, nil
}

func dialRun(ctx context.Context, run *rundir.Run, owner *journal.Owner) (ask.Conn, error) {
	return dialSocket(ctx, run, owner)
}

// slowAnswerDelay is the time after which a person is told what a command waits for.
const slowAnswerDelay = 4 * time.Second

// awaitAnswer waits for the answer to a request. gone reports that the dispatcher has died before it.
func (a *app) awaitAnswer(ctx context.Context, asked *ask.TrackedRequest, owner *journal.Owner) (gone bool) {
	if owner.Liveness() == journal.Unsure {
		slow := time.AfterFunc(slowAnswerDelay, func() {
			a.con.Line(fmt.Sprintf("waiting for an answer of %s; without a heartbeat for %.0f s it counts as dead",
				text.Line(owner.String()), journal.StaleAfter.Seconds()))
		})
		defer slow.Stop()
	}
	return asked.Wait(ctx, owner, dialRun)
}

// reportUnanswered reports that the dispatcher is alive but has not answered.
func (a *app) reportUnanswered(asked *ask.TrackedRequest, owner *journal.Owner) {
	a.exitCode = exitLeft
	who := text.Line(owner.String())
	switch {
	case owner.IsStopped():
		a.warn("%s is stopped (Ctrl-Z, SIGSTOP); the request waits: kill -CONT %d continues it", who, owner.PID)
	case owner.Problem != "":
		a.warn("%s has not read the request yet: %s", who, owner.Problem)
	default:
		a.warn("%s has not answered yet; the request waits until it does, or for the next resume", who)
	}
	if asked.Problem != nil {
		a.warn("%v", asked.Problem)
	}
}

// reportWaiting reports that something waits for the next dispatcher, unless reportUnanswered has
// reported that the current one does not answer.
func (a *app) reportWaiting(sent *sentRequests, what string) {
	if !sent.hasDispatcher {
		a.con.Line("nobody dispatches the run: "+what+" for", "  dcs-tui resume "+refTo(sent.run))
	}
}

// requestJSON is the output of --json for a request about jobs or hosts.
type requestJSON struct {
	runJSON
	Do       action.Name `json:"do"`
	Request  *string     `json:"request"` // its name; null if there was nothing to do
	Answered bool        `json:"answered"`
	Jobs     int         `json:"jobs"` // number of jobs that were changed
	// Number of jobs that were finished (cancel, priority) or unfinished (requeue).
	Left int `json:"left_alone"`
	// Number of jobs to cancel that ended in another way meanwhile.
	Ended  int       `json:"ended"`
	Ending []jobs.ID `json:"still_alive"` // jobs to cancel that have not ended yet
}

func (a *app) printRequestJSON(run *rundir.Run, do action.Name, asked *ask.TrackedRequest) error {
	o := asked.Outcome()
	j := &requestJSON{runJSON: runJSONOf(run), Do: do, Answered: asked.Answered, Jobs: o.NumChanged(),
		Left: o.Left + asked.LeftOut, Ended: o.EndedItself,
		Ending: append([]jobs.ID{}, o.Ending...)} // not nil: JSON has a list
	if asked.Name != "" {
		j.Request = &asked.Name
	}
	return a.printJSON(j)
}

// nothingText reports that an action has nothing to do. left is the number of the selected jobs,
// which it leaves alone.
func (s *selection) nothingText(do action.Name, table *jobs.Table, left int) string {
	left += s.numUnfit
	answer := (&action.Request{Do: do}).Answer(action.Outcome{Left: left})
	if left == 0 {
		answer += ": " + s.whyEmpty(table)
	}
	return answer
}

// reportNothing reports that an action has nothing to do, like nothingText.
func (a *app) reportNothing(run *rundir.Run, do action.Name, s *selection, table *jobs.Table, left int,
	asJSON bool) error {
	if asJSON {
		trace := ask.Trace{Answered: true, Left: left + s.numUnfit}
		return a.printRequestJSON(run, do, &ask.TrackedRequest{Trace: trace})
	}
	a.con.Line(s.nothingText(do, table, left))
	return nil
}

// confirm asks for confirmation on the terminal, unless yes is set.
func (a *app) confirm(yes bool, command, what string) error {
	if yes {
		return nil
	}
	if !isTerminal(os.Stdin) {
		return text.Errorf("%s would %s, but cannot ask for confirmation: standard input is not a terminal",
			command, what).WithAdvice("--yes skips the question")
	}
	a.con.Line(what + "? (y/n)")
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return text.Errorf("nothing was done")
}

// requireRuns requires RUN, because commands that change a run do not use the newest one by default.
func requireRuns(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return text.Errorf("%s needs the run: a name in ./dcs-runs or a run directory", cmd.CommandPath()).
		WithAdvice("dcs-tui runs list shows them")
}

// requireRun is requireRuns for a command that takes one run, before the numbers of jobs.
func requireRun(cmd *cobra.Command, args []string) error {
	if err := requireRuns(cmd, args); err != nil {
		return err
	}
	if isOnlyJobs(args[0]) { // which why and logs take without RUN
		path, given := cmd.CommandPath(), text.Shorten(strings.Join(args, " "))
		return text.Errorf("%s needs the run first, and there is no run %s", path, text.Shorten(args[0])).
			WithAdvice("%s RUN %s", path, given)
	}
	return nil
}

// atMost returns the check of the arguments of a command that takes at most n.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return text.Errorf("%q is one argument too many for %s", text.Shorten(args[n]), cmd.CommandPath()).
			WithAdvice("%s", cmd.UseLine())
	}
}

// isOnlyJobs reports whether a word is the numbers of jobs, and not also the name of a run.
func isOnlyJobs(word string) bool {
	if _, err := jobs.ParseRanges(word); err != nil {
		return false
	}
	_, err := rundir.Find(rundir.Base, word)
	return err != nil
}

// requestCmds returns the commands of the actions below the root, or below hosts.
func (a *app) requestCmds(belowHosts bool) (list []*cobra.Command) {
	for _, act := range action.All {
		if use, below := strings.CutPrefix(act.Command.Use, "hosts "); use != "" && below == belowHosts {
			list = append(list, a.requestCmd(act, use))
		}
	}
	return list
}

func (a *app) requestCmd(act *action.Action, use string) *cobra.Command {
	var sel selection
	var opt requestFlags
	undispatched := " Without a dispatcher the request waits for the next resume; " +
		"if all jobs have ended, it is refused."
	if !act.MayWait() {
		undispatched = " Without a dispatcher the request is refused."
	}
	cmd := &cobra.Command{
		Use: strings.Replace(use, " RUN", " [flags] RUN", 1), Short: act.Command.Short,
		Long: act.Command.Long + undispatched, Example: act.Command.Example, Args: requireRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runRequest(cmd.Context(), act, args, &sel, opt)
		},
	}
	if strings.Contains(use, "HOST") {
		cmd.ValidArgsFunction = completeRunThen(completeMany(completeRunHosts))
	}
	if strings.Contains(use, "JOBS") {
		sel.addWhereFlag(cmd.Flags())
	}
	opt.addFlags(cmd)
	if act.Question == "" {
		cmd.Flags().Lookup("yes").Hidden = true // it has no effect; scripts may give it
	}
	return cmd
}

func (a *app) runRequest(ctx context.Context, act *action.Action, args []string, sel *selection,
	opt requestFlags) error {
	state, err := a.openState(args[:1])
	if err != nil {
		return err
	}
	var actions []action.Request
	switch {
	case act.Name == action.Priority:
		actions, err = a.priorityActions(ctx, state, args[1:], sel)
	case act.Name == action.AddHost:
		actions, err = addHostActions(args[1:])
	case act.Name == action.Slots:
		actions, err = slotsActions(args[1:])
	case act.IsOnHost():
		actions, err = hostActions(act.Name, args[1:])
	case len(args) > 1:
		err = text.Errorf("unexpected argument %s: this command takes only RUN", text.Shorten(args[1]))
	default:
		actions = []action.Request{{Do: act.Name}}
	}
	if err != nil {
		return err
	}
	var requests []*action.Request
	var hosts []string
	for _, asked := range actions {
		request, err := runview.ResolveRequest(asked, state.Table, state.State())
		if err != nil {
			return err
		}
		requests, hosts = append(requests, request), append(hosts, text.Line(asked.Host))
	}
	if !state.IsDispatched() { // before the question
		if err := a.admit(state.Run, state.Table, requests); err != nil {
			return err
		}
	}
	if act.Question != "" {
		command, _, _ := strings.Cut(act.Command.Use, " RUN")
		question := fmt.Sprintf(act.Question, text.List(hosts, maxNamedHosts))
		if err := a.confirm(opt.yes, command, question); err != nil {
			return err
		}
	}
	sent, err := a.sendRequests(ctx, state.Run, state.Table, requests...)
	if err != nil {
		return err
	}
	if sent.isWaiting && !opt.json {
		a.reportWaiting(sent, "the request waits")
		return nil
	}
	for i, asked := range sent.requests {
		if opt.json {
			if err := a.printRequestJSON(state.Run, requests[i].Do, asked); err != nil {
				return err
			}
			continue
		}
		answer, err := runview.AnswerTo(&actions[i], &asked.Trace, state.Table, state.State())
		if err != nil {
			return err
		}
		a.con.Line(text.Line(answer.Text))
	}
	return nil
}

func (a *app) priorityActions(ctx context.Context, state *runState, args []string,
	sel *selection) ([]action.Request, error) {
	if len(args) == 0 {
		return nil, text.Errorf("no priority was given").WithAdvice("dcs-tui priority RUN N JOBS, such as 10 3-17")
	}
	n, err := strconv.ParseInt(args[0], 10, 32)
	if err != nil {
		return nil, text.Errorf("the priority %q is not a whole number", text.Shorten(args[0]))
	}
	if err := sel.parseNamed(args[1:]); err != nil {
		return nil, err
	}
	if sel.named == nil && len(sel.where) == 0 {
		return nil, text.Errorf("no jobs were given after the priority %d",
			n).WithAdvice("their numbers, as in dcs-tui priority RUN %d 3-17, or --where 'name=big*'", n)
	}
	ids, err := a.selectJobs(ctx, state.Run, state.Table, sel, func(st jobs.JobState) bool { return !st.Terminal() })
	if err == nil && len(ids) == 0 {
		err = text.Errorf("%s", sel.nothingText(action.Priority, state.Table, 0))
	}
	return []action.Request{{Do: action.Priority, Jobs: jobs.RangesOf(ids), Priority: int(n)}}, err
}

func hostActions(do action.Name, names []string) (actions []action.Request, err error) {
	if len(names) == 0 {
		return nil, text.Errorf("no hosts were given").WithAdvice("dcs-tui status RUN lists them")
	}
	for _, name := range names {
		actions = append(actions, action.Request{Do: do, Host: name})
	}
	return actions, nil
}

// addHostActions parses the names of hosts and their options.
func addHostActions(args []string) (actions []action.Request, err error) {
	isOption := func(arg string) bool { return strings.Contains(arg, "=") }
	options := strings.Join(slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !isOption(arg) }), " ")
	for _, name := range slices.DeleteFunc(slices.Clone(args), isOption) {
		actions = append(actions, action.Request{Do: action.AddHost, Host: name, Options: options})
	}
	if len(actions) == 0 {
		return nil, text.Errorf("no hosts were given").WithAdvice("a name that ssh can reach, such as ws07")
	}
	return actions, nil
}

func slotsActions(args []string) ([]action.Request, error) {
	if len(args) != 2 {
		return nil, text.Errorf("hosts slots needs a host and a number of slots").
			WithAdvice("dcs-tui hosts slots RUN HOST N")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 0 || n > jobs.MaxSlots {
		return nil, text.Errorf("%q is not a whole number from 0 to %d", text.Shorten(args[1]), jobs.MaxSlots)
	}
	return []action.Request{{Do: action.Slots, Host: args[0], Number: n}}, nil
}
