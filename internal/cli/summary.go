package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// summary describes how a run has ended.
type summary struct {
	*run.Outcome
	app       *app
	words     map[string]runview.HostWord // the last event of each host
	flags     *runFlags
	providers []*hosts.Provider // for the price of instances
	untaken   bool              // not all results were printed
}

// exitCode returns the exit code of the run, and makes the state of the outcome agree.
func (s *summary) exitCode() int {
	if s.untaken && (s.State == run.Succeeded || s.State == run.Failed) {
		s.State = run.Stopped
	}
	if s.InputErr != nil && (s.State == run.Succeeded || s.State == run.Failed) {
		s.State = run.Stopped
		return exit.Usage
	}
	if s.Refused > 0 && s.State == run.Succeeded {
		s.State = run.Failed
	}
	return exit.Of(s.State)
}

// print prints the summary.
func (s *summary) print(code int) {
	if s.InputErr != nil {
		s.app.complain(exit.Usagef("%w", s.InputErr).WithAdvice("the input was read no further: %s; feed the rest to a new run", runview.Came(s.Table)))
	}
	s.app.con.Line(s.lines(code)...)
}

// lines returns what became of the run, why jobs failed, and what to type next.
func (s *summary) lines(code int) []string {
	if s.Finish.How == sched.Fenced { // what has become of the jobs since is not known here
		return append([]string{"", s.headline(code)}, s.advice()...)
	}
	lines := append([]string{"", s.headline(code)}, summaryLines(s.app.con, s.Table, false)...)
	if text := s.efficiency(); text != "" {
		lines = append(lines, text)
	}
	if s.Refused > 0 {
		lines = append(lines, jobs.Plural(s.Refused, "line")+" of standard input "+jobs.Verb(s.Refused, "was", "were")+" not taken")
	}
	lines = append(lines, instanceLines(s.Table, s.providers)...)
	lines = append(lines, hostTrouble(s.Table, s.words)...)
	if s.Deleted {
		return append(lines, s.deletedAdvice()...)
	}
	if s.Finish.How == sched.AllDone && s.Finish.Why != "" {
		lines = append(lines, console.CleanLine(s.Finish.Why))
	}
	lines = append(lines, logsLine(s.Run))
	if n := s.Keeping; n > 0 {
		lines = append(lines, "      "+jobs.Plural(n, "host")+" without that directory kept them: dcs-tui fetch "+refTo(s.Run)+" brings them")
	}
	return append(lines, s.advice()...)
}

func (s *summary) headline(code int) string {
	color, mark, text := console.Yellow, s.app.con.Glyph("…", "~"), ""
	switch {
	case s.Copied:
		text = fmt.Sprintf("the hosts have served dispatcher %d of this run, which %s does not know: the directory is a copy, or was restored from an earlier state",
			s.Finish.Epoch, console.CleanLine(s.Run.Dir))
	case s.Finish.How == sched.Fenced:
		text = s.Finish.Why
	case s.Finish.How == sched.NoHosts:
		color, mark = console.Red, s.app.con.Glyph("✗", "x")
		text = "no host could be used: " + strings.TrimPrefix(s.Finish.Why, "no host could be used: ")
		if s.Hosts != nil {
			text = noHostsText(s.Hosts)
		}
	case code == exit.OK:
		color, mark, text = console.Green, s.app.con.Glyph("✓", "+"), "all jobs succeeded"
		if s.Input.Cut() {
			text = cameHeadline(s.Table)
		}
	case code == exit.Cancelled:
		color, mark, text = console.Yellow, s.app.con.Glyph("–", "-"), "cancelled"
	case s.untaken && s.Table.Unfinished() == 0:
		text = "all jobs have ended, but nobody took all of the results"
	case code == exit.Left || code == exit.Usage && s.Table.Counts[jobs.Succeeded] == len(s.Table.Jobs):
		text = "stopped with jobs left"
		if s.Table.Unfinished() == 0 && s.Input.Cut() {
			text = cameHeadline(s.Table)
		}
		if s.Finish.Why != "" {
			text += " (" + s.Finish.Why + ")"
		}
	case s.Refused > 0 && s.Table.Counts[jobs.Succeeded] == len(s.Table.Jobs):
		text = "all jobs that were taken succeeded"
	default:
		color, mark, text = console.Red, s.app.con.Glyph("✗", "x"), "some jobs did not succeed"
	}
	return s.app.con.Paint(color, mark+" "+console.CleanLine(s.Run.Name())+": "+console.CleanLine(text))
}

// cameHeadline is the headline of a run whose input was cut off and whose jobs are
// all over.
func cameHeadline(t *jobs.Table) string {
	switch {
	case len(t.Jobs) == 0:
		return "no job came"
	case t.Counts[jobs.Succeeded] == len(t.Jobs):
		return "all jobs that came succeeded"
	}
	return "all jobs that came have ended"
}

// advice returns what to type next.
func (s *summary) advice() []string {
	var lines []string
	if s.Input.Cut() && s.InputErr == nil && s.Finish.How != sched.Fenced { // a fault of the input was just said
		lines = append(lines, runview.InputText(s.Input, s.Table))
	}
	ref := refTo(s.Run)
	next := func(command, text string) { lines = append(lines, s.app.nextLine(command, text)) }
	running, queued := s.Table.Counts[jobs.Running], s.Table.Counts[jobs.Queued]
	switch {
	case s.Copied:
		next("resume "+ref, "continues the run from this directory; any other dispatcher of the run is then fenced off")
		return lines
	case s.Finish.How == sched.Fenced:
		next("status "+ref, "shows how the run stands")
		return lines
	case s.Finish.How == sched.NoHosts:
		check := "hosts check"
		if s.flags.hosts != "" {
			check += " --hosts " + console.ShellWord(console.CleanLine(s.flags.hosts))
		}
		next(check, "says what is wrong with them")
	}
	switch {
	case running > 0:
		lines = append(lines, jobs.Plural(running, "job")+" may still run, without a dispatcher:")
		next("resume "+ref, "adopts the running jobs and continues the run")
		next("cancel "+ref, "ends what runs")
	case queued > 0:
		next("resume "+ref, "continues the run")
	case s.untaken && s.flags.json:
		next("resume --json "+ref, "prints the results that were not taken")
	}
	if s.Table.Counts[jobs.Failed]+s.Table.Counts[jobs.TimedOut] > 0 {
		next("results --failed "+ref, "lists the jobs that failed")
		next("requeue "+ref+" --failed", "runs them again")
	}
	if s.Table.Counts[jobs.TimedOut] > 0 && s.Table.Counts[jobs.Skipped] > 0 { // most are skipped because easier ones timed out
		next("requeue "+ref+" --where 'state=timed_out or state=skipped' --timeout TIME", "gives them more time")
	}
	return lines
}

// nextLine suggests a command.
func (a *app) nextLine(command, text string) string {
	return "  " + a.con.Paint(console.Bold, "dcs-tui "+command) + "  " + text
}

// logsLine names the files with what the jobs have printed.
func logsLine(run *rundir.Run) string {
	return "logs: " + console.ShellWord(dirOf(run, rundir.AttemptsDir)) + "/*/JOB.ATTEMPT.out and .err"
}

// deletedAdvice returns lines that say what can be done about a run whose directory was
// deleted. No command can open that run.
func (s *summary) deletedAdvice() []string {
	lines := []string{console.CleanLine(s.Run.Dir) + " was deleted or moved, and with it the journal and the outputs: no command can resume or cancel this run",
		"  if it was moved, put it back; then dcs-tui resume " + refTo(s.Run) + " adopts the running jobs and continues the run"}
	var hosts []string
	n := 0
	for host, c := range runview.CountHosts(s.Table) {
		if n += c.Running; c.Running > 0 {
			hosts = append(hosts, fmt.Sprintf("%s (%d)", console.CleanLine(host), c.Running))
		}
	}
	if n == 0 {
		return lines
	}
	slices.Sort(hosts)
	// Each process of the run has the run's random name in its environment.
	return append(lines, jobs.Plural(n, "job")+" may still run, on "+someNames(hosts, 4)+"; nobody collects the results. On such a host this ends all jobs of the run:",
		"  kill $(grep -lsz '^DCS_COOKIE="+s.Run.UID()+"/' /proc/[0-9]*/environ | cut -d/ -f3)")
}

// noHostsText says why a run ends without a host: the first hosts, each with the first
// clause of its reason. The whole messages were printed before.
func noHostsText(hs []sched.HostView) string {
	const maxNamed, maxReason, minClause = 3, 60, 8
	if len(hs) == 0 {
		return "there is no host"
	}
	var texts []runview.HostText
	for _, h := range hs {
		if h.Reason != "" {
			texts = append(texts, runview.HostText{Host: h.Name, Text: h.Reason})
		}
	}
	var parts []string
	for _, g := range runview.GroupHosts(texts) {
		reason := console.CleanLine(g.Text)
		for _, sep := range []string{" (", "; ", ": "} {
			if first, _, found := strings.Cut(reason, sep); found && len(first) >= minClause {
				reason = first
			}
		}
		parts = append(parts, console.CleanLine(g.Name())+" ("+jobs.Clean(reason, maxReason)+")")
	}
	if len(parts) == 0 {
		return "no host could be used"
	}
	return "no host could be used: " + someNames(parts, maxNamed) + "; see above"
}

// efficiency describes how well the slots of this session were used.
func (s *summary) efficiency() string {
	const minSession = 5 * time.Second // what is shorter was spent connecting
	busy, lasted := s.BusyTime(), time.Since(s.Began)
	if lasted < minSession || busy == 0 || s.SlotTime <= 0 || s.MostSlots == 0 {
		return ""
	}
	return fmt.Sprintf("efficiency %.0f%%: %s of run time on %s in %s", min(100, 100*busy.Seconds()/s.SlotTime.Seconds()),
		results.HumanDuration(busy), jobs.Plural(s.MostSlots, "slot"), results.HumanDuration(lasted))
}

// endTimeout is how long a dispatcher whose jobs are all over may take to end: it asks
// every host to end what jobs left behind.
const endTimeout = 5 * time.Second

// farewell reports how a run stands whose screen was left, where its logs are, and what can
// be typed next. It sets the exit code.
func (a *app) farewell(f *runScreen, last *runview.Picture) error {
	f.Close()
	l, err := a.read(f.run)
	if err != nil {
		return err
	}
	over := l.Table.Unfinished() == 0 && l.Requests == 0 && l.Input.State != rundir.InputOpen ||
		last != nil && (last.Status == runview.StatusFinished || last.Status == runview.StatusStopped) // its dispatcher may be ending
	for end := time.Now().Add(endTimeout); over && l.Dispatched() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		l.Watch(false)
	}
	p := f.process.Load()
	another := p != nil && l.Owner != nil && !p.Is(l.Owner) // dispatches the run, or did last
	if !over && l.Dispatched() {
		a.goesOn(f, l, last, another)
		return nil
	}
	finish := sched.Finish{How: sched.AllDone, Why: runview.LeftBehind(l.Table)}
	state := run.StateOf(finish.How, l.Table.Counts, f.cancelled.Load(), l.Input.Cut())
	a.code = exit.Of(state)
	if p != nil && !another && !l.Dispatched() {
		select {
		case <-p.Ended:
			a.code, _ = codeOf(p) // it knows more than its files show
		case <-time.After(endTimeout):
		}
	}
	if a.code == exit.NoHosts {
		finish = sched.Finish{How: sched.NoHosts, Why: "for as long as --give-up says"}
	}
	s := &summary{app: a, words: l.Words, flags: new(runFlags),
		Outcome: &run.Outcome{State: state, Run: f.run, Table: l.Table, Input: l.Input, Finish: finish}}
	lines := s.lines(a.code)
	if another && !f.cancelled.Load() { // a cancel from here takes the run over
		lines = slices.Insert(lines, 2, "  dispatched last by "+console.CleanLine(l.Owner.String())+", after the one that began here")
	}
	if i := slices.Index(lines, logsLine(f.run)); i >= 0 && p != nil {
		lines = slices.Insert(lines, i+1, "      "+dirOf(f.run, dispatcherLogFile)+" is what the dispatcher said")
	}
	a.con.Line(lines...)
	return nil
}

// goesOn reports how to come back to a run that somebody dispatches. another: this is not
// the dispatcher that was started here.
func (a *app) goesOn(f *runScreen, l *look, last *runview.Picture, another bool) {
	ref, what := refTo(f.run), a.con.Paint(console.Bold, console.CleanLine(f.run.Name()))
	a.code = exit.Left
	switch {
	case another:
		what += " was taken over by another dispatcher and goes on"
	case f.cancelled.Load():
		a.code = exit.Cancelled
		what += " is being cancelled in the background"
	case last != nil && last.Draining != "":
		what += ": what runs is finished in the background, nothing more is started"
	default:
		what += " goes on in the background"
	}
	lines := []string{"", what + ": " + runview.Counts(l.Table, true), "  dispatched by " + console.CleanLine(l.Owner.String()) + ", until it is done",
		a.nextLine("attach "+ref, "shows it again"), a.nextLine("status "+ref, "says how it stands")}
	if !f.cancelled.Load() {
		lines = append(lines, a.nextLine("cancel "+ref, "ends it"))
	}
	a.con.Line(append(lines, logsLine(f.run), "      "+dirOf(f.run, dispatcherLogFile)+" is what the dispatcher says")...)
}
