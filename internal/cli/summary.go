package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// summary describes how a run has ended.
type summary struct {
	*run.Outcome
	app              *app
	hostEvents       map[string]runview.HostEvent // the last event of each host
	flags            *runFlags
	providers        []*hosts.Provider // for the price of instances
	hasUnprinted     bool              // not all results were printed
	notes            []string          // below the headline
	hasDispatcherLog bool              // dispatcher.log has what the dispatcher printed
}

// exitCode returns the exit code of the run. It adjusts the state of the outcome to the exit code.
func (s *summary) exitCode() int {
	isOver := s.State == run.Succeeded || s.State == run.Failed || s.State == run.Reached
	if s.hasUnprinted && isOver {
		s.State = run.Stopped
	}
	if s.InputErr != nil && isOver {
		s.State = run.Stopped
		return exitUsage
	}
	if s.Refused > 0 && (s.State == run.Succeeded || s.State == run.Reached) {
		s.State = run.Failed
	}
	return exitCode(s.State)
}

func (s *summary) print(code int) {
	if s.InputErr != nil {
		s.app.printError(text.Errorf("%w",
			s.InputErr).WithAdvice("the input was read no further: %s; send the rest to a new run",
			runview.DescribeInput(s.Table)))
	}
	s.app.con.Line(s.lines(code)...)
}

// lines returns the result of the run, why jobs failed, and what to type next.
func (s *summary) lines(code int) []string {
	if s.Finish.How == sched.Fenced { // the current state of the jobs is not known here
		return append([]string{"", s.headline(code)}, s.advice()...)
	}
	lines := append([]string{"", s.headline(code)}, s.notes...)
	lines = append(lines, summaryLines(s.app.con, s.Table, nil, false)...)
	if text := s.efficiency(); text != "" {
		lines = append(lines, text)
	}
	if s.Refused > 0 {
		lines = append(lines, text.Plural(s.Refused, "line")+" of standard input "+text.Verb(s.Refused, "was", "were")+
			" not accepted")
	}
	lines = append(lines, instanceLines(s.Table, s.providers)...)
	lines = append(lines, uselessHostLines(s.Table, s.hostEvents)...)
	if s.Deleted {
		return append(lines, s.deletedAdvice()...)
	}
	if s.Finish.How == sched.AllDone && s.Finish.Why != "" {
		lines = append(lines, text.Line(s.Finish.Why))
	}
	lines = append(lines, logLines(s.Run, s.LeavesFiles, s.hasDispatcherLog)...)
	if n := s.HostsKeepingOutputs; n > 0 {
		lines = append(lines, "      "+text.Plural(n, "host")+" without that directory kept them: dcs-tui fetch "+
			refTo(s.Run)+" copies them")
	}
	return append(lines, s.advice()...)
}

func (s *summary) headline(code int) string {
	color, mark, msg := yellow, s.app.con.Glyph("…", "~"), ""
	switch {
	case s.Copied:
		msg = fmt.Sprintf("the hosts have served dispatcher %d of this run, which %s does not know: "+
			"the directory is a copy, or was restored from an earlier state",
			s.Finish.Epoch, text.Line(s.Run.Dir))
	case s.Finish.How == sched.Fenced:
		msg = s.Finish.Why
	case s.Finish.How == sched.NoHosts:
		color, mark, msg = red, s.app.con.Glyph("✗", "x"), "no host could be used"
		switch {
		case s.Hosts != nil && (s.Finish.Why == "" ||
			!slices.ContainsFunc(s.Hosts, func(h sched.HostView) bool { return h.Reason == "" })):
			msg = noHostsText(s.Hosts)
		case s.Finish.Why != "":
			msg += ": " + s.Finish.Why
		}
	case s.State == run.Reached:
		color, mark, msg = green, s.app.con.Glyph("✓", "+"), "ended as --halt asks"
		msg += text.If(s.Finish.How == sched.Reached, ": "+s.Finish.Why)
	case code == exitOK:
		color, mark, msg = green, s.app.con.Glyph("✓", "+"), "all jobs succeeded"
		msg += text.If(s.Table.Counts[jobs.Canceled] > 0, ", or were ended by the search")
		switch {
		case s.Input.Cut():
			msg = cutHeadline(s.Table)
		case s.Table.NumJobs() == 0:
			msg = "there were no jobs"
		}
	case code == exitCanceled:
		color, mark, msg = yellow, s.app.con.Glyph("–", "-"), "canceled"
	case s.hasUnprinted && s.Table.Unfinished() == 0:
		msg = "all jobs have ended, but not all results were printed"
	case code == exitLeft || code == exitUsage && s.Table.Counts[jobs.Succeeded] == s.Table.NumJobs():
		msg = "stopped with jobs left"
		if s.Table.Unfinished() == 0 && s.Input.Cut() {
			msg = cutHeadline(s.Table)
		}
		msg += text.If(s.Finish.Why != "", ": "+s.Finish.Why)
	case s.Refused > 0 && s.Table.Counts[jobs.Succeeded] == s.Table.NumJobs():
		msg = "all accepted jobs succeeded"
	default:
		color, mark, msg = red, s.app.con.Glyph("✗", "x"), "some jobs did not succeed"
	}
	return s.app.con.Paint(color, mark+" "+text.Line(s.Run.Name())+": "+text.Line(msg))
}

// cutHeadline returns the headline of a run whose input was cut off and whose jobs have all ended.
func cutHeadline(table *jobs.Table) string {
	switch {
	case table.NumJobs() == 0:
		return "no jobs were read"
	case table.Counts[jobs.Succeeded] == table.NumJobs():
		return "all jobs that were read succeeded"
	}
	return "all jobs that were read have ended"
}

// advice returns what to type next.
func (s *summary) advice() []string {
	var lines []string
	if s.Input.Cut() && s.InputErr == nil && s.Finish.How != sched.Fenced { // an error of the input was just reported
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
		next("status "+ref, "shows the status of the run")
		return lines
	case s.Finish.How == sched.NoHosts:
		check := "hosts check"
		if s.flags.hosts != "" {
			check += " --hosts " + text.ShellWord(text.Line(s.flags.hosts))
		}
		next(check, "shows what is wrong with them")
	}
	switch {
	case running > 0:
		lines = append(lines, text.Plural(running, "job")+" may still run, without a dispatcher:")
		next("resume "+ref, "adopts the running jobs and continues the run")
		next("cancel "+ref, "ends what runs")
	case queued > 0:
		next("resume "+ref, "continues the run")
		if file := s.fileToCorrect(); file != "" {
			next("requeue "+ref+" --file "+text.ShellWord(file)+" && dcs-tui resume "+ref,
				"does so with the commands of a corrected file")
		}
	case s.hasUnprinted && s.flags.json:
		next("resume --json "+ref, "prints the results that were not read")
	}
	hasFailed := s.Table.Counts[jobs.Failed]+s.Table.Counts[jobs.TimedOut] > 0
	if hasFailed {
		next("results --failed "+ref, "lists the jobs that failed")
	}
	hasAvoided, hasFollowers := skippedKinds(s.Table)
	if options, effect := requeueable(hasFailed, hasFollowers); options != "" {
		next("requeue "+ref+" "+options+" && dcs-tui resume "+ref, effect)
	}
	if hosts := s.hostsWithoutFiles(); len(hosts) > 0 {
		lines = append(lines, text.List(hosts, maxNamedHosts)+" "+text.Verb(len(hosts), "does", "do")+
			" not see this directory, and every job failed there: --send of run copies the files of jobs to such hosts")
	}
	if s.Table.Counts[jobs.TimedOut] > 0 && hasAvoided {
		next("requeue "+ref+" --where 'state=timed_out or state=skipped' --timeout TIME && dcs-tui resume "+ref,
			"gives them more time")
	}
	if best := metrics.Best(s.Run.Settings); best != "" && s.Table.Counts[jobs.Succeeded] > 0 {
		next("results "+ref+" --best "+text.ShellWord(best), "shows the best trial")
	}
	return lines
}

// requeueable returns the options of `requeue` that select the failed jobs and the jobs that were skipped
// because of them, and what that does. It returns "" if there are none.
func requeueable(hasFailed, hasFollowers bool) (options, effect string) {
	switch {
	case hasFailed && hasFollowers:
		return "--where 'state=failed or state=timed_out or state=skipped'", "runs them again, and the jobs after them"
	case hasFailed:
		return "--failed", "runs them again"
	case hasFollowers:
		return "--where state=skipped", "runs the jobs that were skipped"
	}
	return "", ""
}

// skippedKinds reports whether jobs were skipped because easier ones timed out, and whether a job that was
// skipped because of its dependencies can run if it is requeued together with the failed jobs.
func skippedKinds(table *jobs.Table) (hasAvoided, hasFollowers bool) {
	if table.Counts[jobs.Skipped] == 0 {
		return false, false
	}
	for j := range table.Rows() {
		if j.State == jobs.Skipped {
			hasAvoided = hasAvoided || j.Avoided()
			hasFollowers = hasFollowers || !j.Avoided() && mayFollow(table, j)
		}
	}
	return hasAvoided, hasFollowers
}

// mayFollow reports whether each job that a skipped job comes after has ended as it must, or has failed and
// may succeed if it is requeued.
func mayFollow(table *jobs.Table, j *jobs.Job) bool {
	for parent, on := range j.Spec.After().All() {
		if parent < 1 || int(parent) > table.NumJobs() {
			return false
		}
		state := table.State(parent)
		mayChange := on == jobs.AfterSuccess && (state == jobs.Failed || state == jobs.TimedOut)
		if !on.IsMet(state) && !mayChange {
			return false
		}
	}
	return true
}

// hostsWithoutFiles returns the hosts that do not share the run directory, got no files, and on which
// attempts failed and none succeeded: a file that the jobs need is probably missing there.
func (s *summary) hostsWithoutFiles() (hosts []string) {
	if len(s.Run.Settings.Send) > 0 {
		return nil
	}
	apart := s.Run.HostDirs()
	for host, n := range runview.CountHosts(s.Table) {
		if apart[host] != "" && n.Failed > 0 && n.Failed == n.Ended {
			hosts = append(hosts, text.Line(host))
		}
	}
	slices.Sort(hosts)
	return hosts
}

func (a *app) nextLine(command, text string) string {
	return "  " + a.con.Paint(bold, "dcs-tui "+command) + "  " + text
}

// logLines names the files with the outputs of jobs and, if there is one, the log of the
// dispatcher. isPacked reports that outputs may soon be in packs.
func logLines(run *rundir.Run, isPacked, hasDispatcherLog bool) []string {
	lines := []string{"logs: " + text.ShellWord(dirOf(run, rundir.AttemptsDir)) + "/*/JOB.ATTEMPT.out and .err"}
	if isPacked || attempts.HasPacks(run.Disk, run.Dir) {
		packs := text.ShellWord(dirOf(run, rundir.AttemptsDir)) + "/*" + rundir.PackSuffix
		lines = []string{"logs: dcs-tui logs " + refTo(run) + " JOB; the packed ones are in " + packs}
	}
	if hasDispatcherLog {
		lines = append(lines, "      "+dirOf(run, dispatcherLogFile)+" has the messages of the dispatcher")
	}
	return lines
}

// deletedAdvice returns what can be done about a run whose directory was deleted. No command can
// open that run.
func (s *summary) deletedAdvice() []string {
	lines := []string{text.Line(s.Run.Dir) +
		" was deleted or moved, and with it the journal and the outputs: no command can resume or cancel this run",
		"  if it was moved, put it back; then dcs-tui resume " + refTo(s.Run) +
			" adopts the running jobs and continues the run"}
	var hosts []string
	n := 0
	for host, c := range runview.CountHosts(s.Table) {
		n += c.Running
		if c.Running > 0 {
			hosts = append(hosts, fmt.Sprintf("%s (%d)", text.Line(host), c.Running))
		}
	}
	if n == 0 {
		return lines
	}
	slices.Sort(hosts)
	// Each process of the run has the run's random id in its environment.
	return append(lines, text.Plural(n, "job")+" may still run, on "+text.List(hosts, 4)+
		"; nobody collects the results. On such a host this ends all jobs of the run:",
		"  kill $(grep -lsz '^DCS_COOKIE="+s.Run.UID()+"/' /proc/[0-9]*/environ | cut -d/ -f3)")
}

// noHostsText explains why a run ends without a usable host. It names the first hosts, each with
// the first clause of its reason; the whole messages were printed before.
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
		reason := text.Line(g.Text)
		for _, sep := range []string{" (", "; ", ": "} {
			if first, _, found := strings.Cut(reason, sep); found && len(first) >= minClause {
				reason = first
			}
		}
		parts = append(parts, text.Line(g.Name())+" ("+text.Clean(reason, maxReason)+")")
	}
	if len(parts) == 0 {
		return "no host could be used"
	}
	return "no host could be used: " + text.List(parts, maxNamed) + "; see above"
}

// efficiency describes how well the slots of this session were used.
func (s *summary) efficiency() string {
	const minSession = time.Minute // shorter sessions consist of connecting and of last jobs
	if time.Since(s.Began) < minSession || s.SlotTime <= 0 || s.PeakSlots == 0 {
		return ""
	}
	busy := s.BusyTime() // reads all rows
	if busy == 0 {
		return ""
	}
	since := ""
	if s.Table.Epoch > 1 { // the run time above includes that of earlier dispatchers
		since = " since this resume"
	}
	return fmt.Sprintf("efficiency %.0f%%%s: %s of run time in %s of slot time, on at most %s",
		min(100, 100*busy.Seconds()/s.SlotTime.Seconds()), since,
		text.Duration(busy), text.Duration(s.SlotTime), text.Plural(s.PeakSlots, "slot"))
}

// fileToCorrect returns the jobs file of a run that was drained after jobs had failed and none had
// succeeded, or "": its commands may be wrong.
func (s *summary) fileToCorrect() string {
	file := s.Run.Settings.JobsFile
	info, err := os.Stat(file)
	if s.Finish.How != sched.Drained || s.Table.Counts[jobs.Succeeded] > 0 || err != nil || !info.Mode().IsRegular() {
		return ""
	}
	for job := range s.Table.Rows() {
		if job.Failures > 0 {
			return file
		}
	}
	return ""
}

// endTimeout bounds the wait for the end of a dispatcher whose jobs have all ended. The dispatcher
// asks every host to end processes that jobs left behind.
const endTimeout = 5 * time.Second

// reportLeft reports the status of a run whose screen was left, where its logs are, and what to
// type next. It sets the exit code.
func (a *app) reportLeft(screen *runScreen, last *runview.Snapshot) error {
	screen.Close()
	l := newRunState(screen.run)
	if reader, events := screen.Reader(); reader != nil {
		l.Reader, l.HostEvents = reader, events
	}
	if err := a.updateState(l); err != nil {
		return err
	}
	over := l.Table.Unfinished() == 0 && l.Requests == 0 && l.Input.State != rundir.InputOpen ||
		// The dispatcher may be ending.
		last != nil && (last.Status == runview.StatusFinished || last.Status == runview.StatusStopped)
	for end := time.Now().Add(endTimeout); over && l.IsDispatched() &&
		time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		l.Watch(false)
	}
	process := screen.process.Load()
	// Another dispatcher has the run, or had it last.
	another := process != nil && l.Owner != nil && !process.IsOwner(l.Owner)
	if !over && l.IsDispatched() {
		a.reportContinues(screen, l, last, another)
		return nil
	}
	finish := run.FinishOf(l.Table)
	if finish.How == sched.AllDone {
		finish.Why = runview.LeftBehind(l.Table)
	}
	state := run.StateOf(finish.How, l.Table.Judged(), screen.canceled.Load() || l.Table.CanceledAll, l.Input.Cut(),
		keptHalt(screen.run))
	a.exitCode = exitCode(state)
	if process != nil && !another && !l.IsDispatched() {
		select {
		case <-process.Ended:
			a.exitCode, _ = backgroundExitCode(process) // the process knows more than its files show
		case <-time.After(endTimeout):
		}
	}
	s := &summary{app: a, hostEvents: l.HostEvents, flags: new(runFlags), hasDispatcherLog: process != nil,
		Outcome: &run.Outcome{State: state, Run: screen.run, Table: l.Table, Input: l.Input, Finish: finish}}
	if another && !screen.canceled.Load() { // a cancel from here takes the run over
		s.notes = []string{"  dispatched last by " + text.Line(l.Owner.String()) + ", after the one that began here"}
	}
	a.con.Line(s.lines(a.exitCode)...)
	return nil
}

// reportContinues reports how to return to a run that is dispatched. another means that its
// dispatcher was not started here.
func (a *app) reportContinues(screen *runScreen, state *runState, last *runview.Snapshot, another bool) {
	ref, what := refTo(screen.run), a.con.Paint(bold, text.Line(screen.run.Name()))
	a.exitCode = exitLeft
	switch {
	case another:
		what += " was taken over by another dispatcher and continues"
	case screen.canceled.Load():
		a.exitCode = exitCanceled
		what += " is being canceled in the background"
	case last != nil && last.Draining != "":
		what += ": running jobs finish in the background, and no more are started"
	default:
		what += " continues in the background"
	}
	lines := []string{"", what + ": " + state.progress().Counts(), "  dispatched by " +
		text.Line(state.Owner.String()) + ", until it is done",
		a.nextLine("attach "+ref, "shows it again"), a.nextLine("status "+ref, "shows its status")}
	if !screen.canceled.Load() {
		lines = append(lines, a.nextLine("cancel "+ref, "ends it"))
	}
	a.con.Line(append(lines, logLines(screen.run, false, true)...)...)
}
