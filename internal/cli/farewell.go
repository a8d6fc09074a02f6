package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// endWithin is how long a dispatcher whose jobs are all over may take to go: it asks
// every host to end what jobs left behind.
const endWithin = 5 * time.Second

// farewell says how a run stands whose screen was left, where its logs are, what can
// be typed next, and sets the exit code.
func (a *app) farewell(f *runScreen, last *runview.Picture) error {
	f.Close()
	l, err := standing.Read(f.run, a.warn)
	if err != nil {
		return err
	}
	over := l.Table.Unfinished() == 0 && l.Asked == 0 && l.Input.State != rundir.InputOpen ||
		last != nil && (last.Status == runview.StatusFinished || last.Status == runview.StatusStopped) // drained, say: its dispatcher is taking leave
	for end := time.Now().Add(endWithin); over && l.Alive() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if owner, err := journal.ReadOwner(f.run); err == nil {
			l.Owner = owner
		}
	}
	p := f.process.Load()
	another := p != nil && l.Owner != nil && !p.is(l.Owner) // has the run, or had it last
	if !over && l.Alive() {
		a.goesOn(f, l, last, another)
		return nil
	}
	finish := sched.Finish{How: sched.AllDone, Why: runview.LeftBehind(l.Table)}
	state := run.StateOf(finish.How, l.Table.Counts, f.cancelled.Load(), l.Input.Cut())
	code := exit.Of(state)
	if p != nil && !another && !l.Alive() {
		select {
		case <-p.ended:
			code = p.code // it knows more than its files say
		case <-time.After(endWithin):
		}
	}
	if code == exit.NoHosts {
		finish = sched.Finish{How: sched.NoHosts, Why: "for as long as --give-up says"}
	}
	a.code = code
	s := &summary{app: a, words: l.Words, flags: new(runFlags),
		Outcome: &run.Outcome{State: state, Run: f.run, Table: l.Table, Input: l.Input, Finish: finish}}
	lines := s.lines(code)
	if another && !f.cancelled.Load() { // who cancels here takes it over for that
		lines = slices.Insert(lines, 2, "  dispatched last by "+console.CleanLine(l.Owner.String())+", after the one that began here")
	}
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "logs: ") }); i >= 0 && p != nil {
		lines = slices.Insert(lines, i+1, "      "+console.CleanLine(filepath.Join(standing.Dir(f.run), dispatcherLogFile))+" is what the dispatcher said")
	}
	a.con.Line(lines...)
	return nil
}

// goesOn says of a run that somebody dispatches how to come back to it; another: not the
// dispatcher that was started here.
func (a *app) goesOn(f *runScreen, l *standing.Look, last *runview.Picture, another bool) {
	ref := console.ShellWord(console.CleanLine(standing.Ref(f.run)))
	name := a.con.Paint(console.Bold, console.CleanLine(f.run.Name()))
	a.code = exit.Left
	what := name + " goes on in the background"
	switch {
	case another:
		what = name + " was taken over by another dispatcher and goes on"
	case f.cancelled.Load():
		a.code = exit.Cancelled
		what = name + " is being cancelled in the background"
	case last != nil && last.Draining != "":
		what = name + ": what runs is finished in the background, nothing more is started"
	}
	lines := []string{"", what + ": " + runview.Counts(l.Table, true), "  dispatched by " + console.CleanLine(l.Owner.String()) + ", until it is done"}
	next := func(command, text string) {
		lines = append(lines, "  "+a.con.Paint(console.Bold, "dcs-tui "+command+" "+ref)+"  "+text)
	}
	next("attach", "shows it again")
	next("status", "says how it stands")
	if !f.cancelled.Load() {
		next("cancel", "ends it")
	}
	lines = append(lines, "logs: "+console.CleanLine(filepath.Join(standing.Dir(f.run), rundir.AttemptsDir, "*"))+"/JOB.ATTEMPT.out and .err",
		"      "+console.CleanLine(filepath.Join(standing.Dir(f.run), dispatcherLogFile))+" is what the dispatcher says")
	a.con.Line(lines...)
}
