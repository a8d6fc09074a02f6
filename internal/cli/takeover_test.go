package cli

import (
	"context"
	"testing"

	"dcs-tui/dispatch/board"
	"dcs-tui/dispatch/control"
	"dcs-tui/dispatch/view"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// served takes the run over as a dispatcher on that machine whose screen can be attached to.
func served(t *testing.T, run *rundir.Run, machine string) *journal.Journal {
	t.Helper()
	b := board.FromTable(&jobs.Table{}, board.Past{Options: board.Options{Run: view.Run{Machine: machine}}})
	t.Cleanup(b.Close)
	s, err := control.Listen(control.Options{Program: version(), Run: run.UID(),
		Open: func() (view.Source, func(), error) { return b, func() {}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	j, _, _, err := journal.Take(context.Background(), run, journal.TakeOptions{Address: s.Address(), Force: true})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// X1: a screen leaves a dispatcher that still answers for the one that has taken the run
// over: the old one may not know of it yet, or knows only that.
func TestAScreenGoesToTheNewOwner(t *testing.T) {
	run := emptyRun(t)
	defer served(t, run, "oak").Close()
	f := newApp().follow(run, reachHere(run))
	defer f.Close()
	f.until(t, "the first is shown", func(p *view.Picture) bool { return p.Run.Machine == "oak" })
	defer served(t, run, "elm").Close()
	f.until(t, "the new owner is shown", func(p *view.Picture) bool { return p.Run.Machine == "elm" })
}
