package cli

import (
	"context"
	"fmt"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// cancelWait is how long a dispatcher that is alive has to cancel and leave: jobs
// have 5 s between TERM and KILL.
const cancelWait = 60 * time.Second

// forceAfter is when a person who waits is told what else there is.
const forceAfter = 15 * time.Second

// forceText is how to end a run whose dispatcher hangs.
func forceText(run *rundir.Run) string {
	return "dcs-tui cancel --force " + refTo(run) + "  takes the run over from it and ends every job"
}

// inUse refuses a run that somebody else dispatches.
func inUse(run *rundir.Run, owner *journal.Owner) error {
	p := exit.Usagef("the run %s is dispatched by %s", run.Name(), ownerText(owner))
	if owner != nil && owner.Stopped() {
		return p.WithAdvice("%s; --force takes the run over from it", runview.StoppedText(owner))
	}
	return p.WithAdvice("dcs-tui attach %s shows its screen; if that dcs-tui hangs, --force takes the run over", refTo(run))
}

// askOwner asks the dispatcher to cancel every job and waits until it has left. gone
// reports that the dispatcher is dead and has left jobs, which the caller has to end.
func (a *app) askOwner(ctx context.Context, run *rundir.Run, owner *journal.Owner) (gone bool, err error) {
	r, err := ask.Prepare(run, &rundir.Request{Do: rundir.DoCancel, All: true, By: dispatch.Asker(), At: time.Now()})
	if err != nil {
		return false, exit.Usagef("%w", err)
	}
	a.con.Line("asked " + console.CleanLine(owner.String()) + " to cancel; waiting until it has")
	if owner.Life() == journal.Unsure {
		a.con.Line(fmt.Sprintf("this machine cannot see whether it is alive: without a sign of it for %.0f s the run is taken over",
			journal.StaleAfter.Seconds()))
	}
	if owner.Stopped() {
		a.con.Line(runview.StoppedText(owner), "  "+forceText(run))
	}
	slow := time.AfterFunc(forceAfter, func() { a.con.Line("still waiting; if that dcs-tui hangs:", "  "+forceText(run)) })
	defer slow.Stop()
	if gone = r.Wait(ctx, owner, dialRun); r.Refused != "" {
		return false, exit.Usagef("%s", console.CleanLine(r.Refused))
	}
	gone = gone || awaitOwner(run, owner)
	if !gone {
		a.code = exit.Left
		a.warn("it is alive and has not ended yet; dcs-tui status %s shows how it stands", refTo(run))
		a.con.Line("  " + forceText(run))
		return false, nil
	}
	table, err := wholeTable(run)
	if err != nil {
		return false, err
	}
	if table.Unfinished() > 0 {
		return true, nil
	}
	a.con.Line(runview.Counts(table, false))
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
