package cli

import (
	"fmt"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// cancelWait is how long a dispatcher that is alive has to cancel and leave: jobs
// have 5 s between TERM and KILL, and it looks for the file every 2 s.
const cancelWait = 60 * time.Second

// forceAfter is when a person who waits is told what else there is.
const forceAfter = 15 * time.Second

// forceText is how to end a run whose dispatcher hangs.
func forceText(run *rundir.Run) string {
	return "dcs-tui cancel --force " + console.ShellWord(console.CleanLine(standing.Ref(run))) + "  takes the run over from it and ends every job"
}

// inUse refuses a run that somebody else dispatches.
func inUse(run *rundir.Run, owner *journal.Owner) error {
	p := exit.Usagef("the run %s is dispatched by %s", run.Name(), ownerText(owner))
	if owner != nil && owner.Stopped() {
		return p.WithAdvice("%s; --force takes the run over from it", standing.StoppedText(owner))
	}
	return p.WithAdvice("dcs-tui attach %s shows its screen; if that dcs-tui hangs, --force takes the run over", console.ShellWord(standing.Ref(run)))
}

// askOwner leaves the request where the dispatcher looks for it, and waits until
// it has been carried out. gone means that the dispatcher is dead and has left
// jobs: they are ours to end.
func (a *app) askOwner(run *rundir.Run, owner *journal.Owner) (gone bool, err error) {
	// This replaces a file of that name that may exist: the dispatcher ignores a stop
	// file of another user.
	if err := rundir.Replace(run.Disk, run.Path(rundir.StopNowFile), nil); err != nil {
		return false, exit.Usagef("cannot create %s: %w", rundir.StopNowFile, err)
	}
	a.con.Line("asked " + console.CleanLine(owner.String()) + " to cancel; waiting until it has")
	if owner.Life() == journal.Unsure {
		a.con.Line(fmt.Sprintf("this machine cannot see whether it is alive: without a sign of it for %.0f s the run is taken over",
			journal.StaleAfter.Seconds()))
	}
	if owner.Stopped() {
		a.con.Line(standing.StoppedText(owner), "  "+forceText(run))
	}
	slow := time.AfterFunc(forceAfter, func() { a.con.Line("still waiting; if that dcs-tui hangs:", "  "+forceText(run)) })
	gone = awaitOwner(run, owner)
	slow.Stop()
	if !gone {
		a.code = exit.Left
		a.warn("it is alive and has not ended yet; dcs-tui status %s shows how it stands", console.ShellWord(standing.Ref(run)))
		a.con.Line("  " + forceText(run))
		return false, nil
	}
	table, err := standing.WholeTable(run)
	if err != nil {
		return false, err
	}
	if table.Unfinished() > 0 {
		return true, nil
	}
	a.con.Line(standing.Counts(table, false))
	return false, nil
}

// awaitOwner waits until the owner has left, is dead, or has given no sign of
// life for StaleAfter as watched by us: the clocks of two machines are never
// compared. It returns false when the owner is alive and has not ended in time.
func awaitOwner(run *rundir.Run, owner *journal.Owner) (gone bool) {
	asked, sign := time.Now(), time.Now()
	token, beat := owner.Token, owner.Beat
	for ; ; time.Sleep(200 * time.Millisecond) {
		waited, quiet := time.Since(asked), time.Since(sign)
		if waited >= 2*cancelWait || waited >= cancelWait && quiet < 2*journal.BeatEvery {
			return false
		}
		now, err := journal.ReadOwner(run)
		switch {
		case err != nil || now == nil: // torn, gone, or not to be read: that proves nothing
		case now.Life() == journal.Dead:
			return true
		case now.Token != token || now.Beat != beat || now.Life() == journal.Alive:
			sign, token, beat = time.Now(), now.Token, now.Beat
		case quiet >= journal.StaleAfter:
			return true
		}
	}
}
