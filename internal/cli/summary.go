package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// exitCode says how the run exits.
func (s *session) exitCode(finish sched.Finish) int {
	s.countWaiting()
	code := exit.OfRun(finish.How, s.table.Counts, s.cancelled.Load(), s.unread)
	if s.deleted() && finish.How != sched.Fenced { // nothing is left that shows what became of its jobs
		return exit.Left
	}
	if s.untaken && (code == exit.OK || code == exit.Failed) {
		code = exit.Left
	}
	if s.inputErr != nil && (code == exit.OK || code == exit.Failed) {
		code = exit.Usage
	}
	return code
}

// conclude writes the summary.
func (s *session) conclude(finish sched.Finish, code int) {
	if s.brief {
		return
	}
	if s.inputErr != nil {
		s.app.complain(exit.Usagef("%w", s.inputErr).WithAdvice("the input was read no further: %s; feed the rest to a new run", standing.Came(s.table)))
	}
	s.con.Line(s.summary(finish, code)...)
}

// afterwards runs --on-done.
func (s *session) afterwards(code int) {
	if s.flags.OnDone == "" {
		return
	}
	err := onDone(s.flags.OnDone, s.run.Name(), s.run.Dir, stateOf(code), s.table.Counts, code, s.app.stderr)
	if err != nil {
		s.app.warn("%v", err)
	}
}

// summary says what became of the run, why jobs failed, and what to type next.
func (s *session) summary(finish sched.Finish, code int) []string {
	if finish.How == sched.Fenced { // what has become of the jobs since is not known here
		return append([]string{"", s.headline(finish, code)}, s.advice(finish)...)
	}
	lines := append([]string{"", s.headline(finish, code)}, standing.Summary(s.con, s.table, false)...)
	if text := s.efficiency(); text != "" {
		lines = append(lines, text)
	}
	lines = append(lines, standing.HostTrouble(s.table, s.words)...)
	if s.deleted() {
		return append(lines, s.deletedAdvice()...)
	}
	if finish.How == sched.AllDone && finish.Why != "" {
		lines = append(lines, console.CleanLine(finish.Why))
	}
	lines = append(lines, "logs: "+console.ShellWord(console.CleanLine(filepath.Join(standing.Dir(s.run), rundir.AttemptsDir)))+"/*/JOB.ATTEMPT.out and .err")
	if n := len(s.places.Names()); n > 0 {
		lines = append(lines, "      "+jobs.Plural(n, "host")+" without that directory kept them: dcs-tui fetch "+console.ShellWord(console.CleanLine(standing.Ref(s.run)))+" brings them")
	}
	return append(lines, s.advice(finish)...)
}

func (s *session) headline(finish sched.Finish, code int) string {
	color, mark, text := console.Red, s.con.Glyph("✗", "x"), "some jobs did not succeed"
	switch {
	case s.older:
		color, mark, text = console.Yellow, s.con.Glyph("…", "~"), fmt.Sprintf("the hosts have served dispatcher %d of this run, which %s does not know: the directory is a copy, or was restored from an earlier state",
			finish.Epoch, console.CleanLine(s.run.Dir))
	case finish.How == sched.Fenced:
		color, mark, text = console.Yellow, s.con.Glyph("…", "~"), finish.Why
	case finish.How == sched.NoHosts:
		text = "no host could be used: " + strings.TrimPrefix(finish.Why, "no host could be used: ")
		if last := s.last.Load(); last != nil {
			text = standing.NoHosts(last.Hosts)
		}
	case code == exit.OK:
		color, mark, text = console.Green, s.con.Glyph("✓", "+"), "all jobs succeeded"
		if s.intake.Cut() {
			text = cameHeadline(s.table)
		}
	case code == exit.Cancelled:
		color, mark, text = console.Yellow, s.con.Glyph("–", "-"), "cancelled"
	case s.untaken && s.table.Unfinished() == 0:
		color, mark, text = console.Yellow, s.con.Glyph("…", "~"), "all jobs have ended, but nobody took all of the results"
	case code == exit.Left || code == exit.Usage && standing.AllSucceeded(s.table):
		color, mark, text = console.Yellow, s.con.Glyph("…", "~"), "stopped with jobs left"
		if s.table.Unfinished() == 0 && s.intake.Cut() {
			text = cameHeadline(s.table)
		}
		if finish.Why != "" {
			text += " (" + finish.Why + ")"
		}
	}
	return s.con.Paint(color, mark+" "+console.CleanLine(s.run.Name())+": "+console.CleanLine(text))
}

// cameHeadline is the headline of a run whose input was cut off and whose jobs are
// all over.
func cameHeadline(t *jobs.Table) string {
	switch {
	case len(t.Jobs) == 0:
		return "no job came"
	case standing.AllSucceeded(t):
		return "all jobs that came succeeded"
	}
	return "all jobs that came have ended"
}

// advice is what to type next.
func (s *session) advice(finish sched.Finish) []string {
	var lines []string
	if s.intake.Cut() && s.inputErr == nil && finish.How != sched.Fenced { // a fault of the input was just said
		lines = append(lines, s.intake.Text(s.table))
	}
	ref := console.ShellWord(console.CleanLine(standing.Ref(s.run)))
	next := func(command, text string) {
		lines = append(lines, "  "+s.con.Paint(console.Bold, "dcs-tui "+command)+"  "+text)
	}
	running, queued := s.table.Counts[jobs.Running], s.table.Counts[jobs.Queued]
	switch {
	case s.older:
		next("resume "+ref, "continues the run from this directory; any other dispatcher of the run is then fenced off")
		return lines
	case finish.How == sched.Fenced:
		next("status "+ref, "shows how the run stands")
		return lines
	case finish.How == sched.NoHosts:
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
	if s.table.Counts[jobs.Failed]+s.table.Counts[jobs.TimedOut] > 0 {
		next("results --failed "+ref, "lists the jobs that failed")
		next("requeue "+ref+" --failed", "runs them again")
	}
	if s.table.Counts[jobs.TimedOut] > 0 && s.table.Counts[jobs.Skipped] > 0 { // most are skipped because easier ones timed out
		next("requeue "+ref+" --where 'state=timed_out or state=skipped' --timeout TIME", "gives them more time")
	}
	return lines
}

// shortSession is one whose efficiency says nothing: it was spent connecting.
const shortSession = 5 * time.Second

// efficiency says how well the slots of this session were used: the run time of
// jobs, in slots, over the slots that there were.
func (s *session) efficiency() string {
	var busy time.Duration
	since := jobs.StampOf(s.began)
	for i := range s.table.Jobs {
		j := &s.table.Jobs[i]
		for _, a := range j.Attempts {
			if a.Outcome == nil || a.Outcome.Ended < since {
				continue
			}
			run := a.Outcome.Elapsed()
			if a.Outcome.Started < since { // adopted: what it ran before does not count
				run = max(0, a.Outcome.Ended.Sub(since))
			}
			busy += run * time.Duration(j.Spec.SlotCount())
		}
	}
	avail, most := s.used.total()
	if time.Since(s.began) < shortSession || busy == 0 || avail <= 0 || most == 0 {
		return ""
	}
	return fmt.Sprintf("efficiency %.0f%%: %s of run time on %s in %s",
		min(100, 100*busy.Seconds()/avail), results.HumanDuration(busy), jobs.Plural(most, "slot"), results.HumanDuration(time.Since(s.began)))
}
