package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// summary describes how a run has ended.
type summary struct {
	*run.Outcome
	app     *app
	words   map[string]runview.HostWord // the last event of each host
	flags   *runFlags
	untaken bool // not all results were printed
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
	return exit.Of(s.State)
}

// print prints the summary.
func (s *summary) print(code int) {
	if s.InputErr != nil {
		s.app.complain(exit.Usagef("%w", s.InputErr).WithAdvice("the input was read no further: %s; feed the rest to a new run", runview.Came(s.Table)))
	}
	s.app.con.Line(s.lines(code)...)
}

// lines say what became of the run, why jobs failed, and what to type next.
func (s *summary) lines(code int) []string {
	if s.Finish.How == sched.Fenced { // what has become of the jobs since is not known here
		return append([]string{"", s.headline(code)}, s.advice()...)
	}
	lines := append([]string{"", s.headline(code)}, standing.Summary(s.app.con, s.Table, false)...)
	if text := s.efficiency(); text != "" {
		lines = append(lines, text)
	}
	lines = append(lines, standing.HostTrouble(s.Table, s.words)...)
	if s.Deleted {
		return append(lines, s.deletedAdvice()...)
	}
	if s.Finish.How == sched.AllDone && s.Finish.Why != "" {
		lines = append(lines, console.CleanLine(s.Finish.Why))
	}
	lines = append(lines, "logs: "+console.ShellWord(console.CleanLine(filepath.Join(standing.Dir(s.Run), rundir.AttemptsDir)))+"/*/JOB.ATTEMPT.out and .err")
	if n := s.Keeping; n > 0 {
		lines = append(lines, "      "+jobs.Plural(n, "host")+" without that directory kept them: dcs-tui fetch "+console.ShellWord(console.CleanLine(standing.Ref(s.Run)))+" brings them")
	}
	return append(lines, s.advice()...)
}

func (s *summary) headline(code int) string {
	color, mark, text := console.Red, s.app.con.Glyph("✗", "x"), "some jobs did not succeed"
	switch {
	case s.Copied:
		color, mark, text = console.Yellow, s.app.con.Glyph("…", "~"), fmt.Sprintf("the hosts have served dispatcher %d of this run, which %s does not know: the directory is a copy, or was restored from an earlier state",
			s.Finish.Epoch, console.CleanLine(s.Run.Dir))
	case s.Finish.How == sched.Fenced:
		color, mark, text = console.Yellow, s.app.con.Glyph("…", "~"), s.Finish.Why
	case s.Finish.How == sched.NoHosts:
		text = "no host could be used: " + strings.TrimPrefix(s.Finish.Why, "no host could be used: ")
		if s.Hosts != nil {
			text = standing.NoHosts(s.Hosts)
		}
	case code == exit.OK:
		color, mark, text = console.Green, s.app.con.Glyph("✓", "+"), "all jobs succeeded"
		if s.Input.Cut() {
			text = cameHeadline(s.Table)
		}
	case code == exit.Cancelled:
		color, mark, text = console.Yellow, s.app.con.Glyph("–", "-"), "cancelled"
	case s.untaken && s.Table.Unfinished() == 0:
		color, mark, text = console.Yellow, s.app.con.Glyph("…", "~"), "all jobs have ended, but nobody took all of the results"
	case code == exit.Left || code == exit.Usage && s.Table.Counts[jobs.Succeeded] == len(s.Table.Jobs):
		color, mark, text = console.Yellow, s.app.con.Glyph("…", "~"), "stopped with jobs left"
		if s.Table.Unfinished() == 0 && s.Input.Cut() {
			text = cameHeadline(s.Table)
		}
		if s.Finish.Why != "" {
			text += " (" + s.Finish.Why + ")"
		}
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

// advice is what to type next.
func (s *summary) advice() []string {
	var lines []string
	if s.Input.Cut() && s.InputErr == nil && s.Finish.How != sched.Fenced { // a fault of the input was just said
		lines = append(lines, runview.InputText(s.Input, s.Table))
	}
	ref := console.ShellWord(console.CleanLine(standing.Ref(s.Run)))
	next := func(command, text string) {
		lines = append(lines, "  "+s.app.con.Paint(console.Bold, "dcs-tui "+command)+"  "+text)
	}
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

// shortSession is one whose efficiency says nothing: it was spent connecting.
const shortSession = 5 * time.Second

// efficiency says how well the slots of this session were used: the run time of
// jobs, in slots, over the slots that there were.
func (s *summary) efficiency() string {
	var busy time.Duration
	since := jobs.StampOf(s.Began)
	for i := range s.Table.Jobs {
		j := &s.Table.Jobs[i]
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
	if time.Since(s.Began) < shortSession || busy == 0 || s.SlotTime <= 0 || s.MostSlots == 0 {
		return ""
	}
	return fmt.Sprintf("efficiency %.0f%%: %s of run time on %s in %s",
		min(100, 100*busy.Seconds()/s.SlotTime.Seconds()), results.HumanDuration(busy), jobs.Plural(s.MostSlots, "slot"), results.HumanDuration(time.Since(s.Began)))
}
