package cli

import (
	"context"
	"time"

	"dcs-tui/dispatch/control"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// socketBase is where the directories of control sockets lie; tests change it.
var socketBase = "" // control's own

// openBoard makes what attached screens look at. It exists while somebody is attached.
func (d *dispatching) openBoard(r *run.Run) (runview.Source, func(), error) {
	dir := r.Dir()
	owner, err := journal.ReadOwner(dir)
	if err != nil {
		owner = nil // only its name is missing on the screen
	}
	b := runview.FromDispatcher(r.Dispatcher(), boardOptions(dir, runView(dir, labOf(d.inv.File), owner),
		func(_ context.Context, a runview.Action) (*runview.Answer, error) { return d.act(r, a) }))
	addPast(b, r)
	if q := d.opts.Questions; q != nil {
		q.Show(b)
	}
	return &servedBoard{b, r}, func() {
		if q := d.opts.Questions; q != nil {
			q.Show(nil)
		}
		b.Close()
	}, nil
}

// servedBoard refuses actions when the run is over and its dispatcher takes leave of the
// hosts: what it accepted then would be left undone.
type servedBoard struct {
	*runview.Board
	run *run.Run
}

// Do implements runview.Source.
func (b *servedBoard) Do(ctx context.Context, a runview.Action) (*runview.Answer, error) {
	select {
	case <-b.run.Over():
		if a.Do != runview.Reply {
			return nil, control.ErrLeaving
		}
	default:
	}
	ans, err := b.Board.Do(ctx, a)
	if err == nil && a.Do == runview.Continue {
		b.run.DrainEnded()
	}
	return ans, err
}

// addPast gives a board what happened before anybody looked.
func addPast(b *runview.Board, r *run.Run) {
	began := time.Now()
	var past runview.Earlier
	// What cannot be read is only missing among the events.
	_, _ = journal.Follow(r.Dir()).Poll(journal.Limit{Durable: r.Durable()}, func(_ int, r *jobs.Record) {
		if r.At < jobs.StampOf(began) && r.Kind != jobs.KindAcked { // the board hears of later ones itself
			past.Add(r)
		}
	})
	b.AddEarlier(&past)
}

// act carries out what a board cannot.
func (d *dispatching) act(r *run.Run, a runview.Action) (*runview.Answer, error) {
	by := console.CleanLine(a.Why)
	if by == "" {
		by = "asked for on the screen"
	}
	switch a.Do {
	case runview.DrainRun:
		r.Do("screen", &rundir.Request{Do: rundir.DoDrain, Why: by})
		return &runview.Answer{Done: 1, Text: "no more jobs are started; the dispatcher ends when the running ones have, unless continue comes first"}, nil
	case runview.StopRun:
		r.Do("screen", &rundir.Request{Do: rundir.DoStop, Why: by})
		return &runview.Answer{Done: 1, Text: "dispatching stops; running jobs go on"}, nil
	case runview.CancelRun:
		r.Do("screen", &rundir.Request{Do: rundir.DoCancel, All: true, Why: by})
		return &runview.Answer{Done: 1, Text: "every job is cancelled; the running ones are being ended"}, nil
	case runview.Reply:
		if q := d.opts.Questions; q != nil {
			return q.Answer(int64(a.Number), a.Text)
		}
	}
	return nil, &runview.Refused{Why: "the dispatcher cannot do that: " + string(a.Do)}
}
