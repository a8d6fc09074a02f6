package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/board"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

func (a *app) statusCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status [flags] [RUN]",
		GroupID: groupLook,
		Short:   "How a run stands",
		Long: `How a run stands, from its journal: no dispatcher is needed, none is disturbed.

` + runHelp,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runStatus(args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// looked is a run as its files show it.
type looked struct {
	run   *rundir.Run
	table *jobs.Table
	owner *journal.Owner
	input input
	words map[string]hostWord // what the present dispatcher said last of each host
	asked int                 // requests that wait
}

// hostWord is the last event of a host.
type hostWord struct {
	at   jobs.Stamp
	text string // not clean
	up   bool   // it has been up
}

// after is the word that follows.
func (w hostWord) after(host string, at jobs.Stamp, text string) hostWord {
	return hostWord{at, text, w.up || text == host+" is up"}
}

// look reads a run without owning it.
func (a *app) look(args []string) (*looked, error) {
	run, err := openRun(args)
	if err != nil {
		return nil, err
	}
	return a.lookAt(run)
}

func (a *app) lookAt(run *rundir.Run) (*looked, error) {
	words := map[string]hostWord{}
	table, report, err := journal.ReplayEvents(run, func(r *jobs.Record) {
		switch {
		case r.Kind == jobs.KindEpoch:
			clear(words) // what an earlier dispatcher knew of hosts is past
		case r.Host != "" && r.Job == 0:
			words[r.Host] = words[r.Host].after(r.Host, r.At, r.Reason)
		}
	})
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	for _, w := range report.Warnings {
		a.warn("%s", w)
	}
	owner, err := journal.ReadOwner(run)
	if err != nil {
		a.warn("%v", err)
	}
	acceptRest(table)
	had, err := readInput(run)
	if err != nil {
		a.warn("%v", err)
	}
	return &looked{run, table, owner, had, words, a.askedOf(run, table)}, nil
}

// askedOf counts the requests that wait in the run directory.
func (a *app) askedOf(run *rundir.Run, t *jobs.Table) (n int) {
	names, _, err := run.RequestNames()
	if err != nil {
		a.warn("%v", err)
	}
	for _, name := range names {
		if !t.Requests[name] { // one that was taken in is only waiting to be removed
			n++
		}
	}
	return n
}

// wholeTable is what the journal of a run says, with jobs that are stored and not yet
// part of it as acceptRest shows them.
func wholeTable(run *rundir.Run) (*jobs.Table, error) {
	t, _, err := journal.Replay(run)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	acceptRest(t)
	return t, nil
}

// acceptRest shows jobs that are stored and not yet part of the run as what they
// are to a person: queued.
func acceptRest(t *jobs.Table) {
	if n := len(t.Specs) - len(t.Jobs); n > 0 {
		_ = jobs.Fold(t, &jobs.Record{Kind: jobs.KindAccepted, Job: jobs.ID(len(t.Jobs) + 1), Count: n})
	}
}

func (a *app) runStatus(args []string, asJSON bool) error {
	l, err := a.look(args)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(l.json())
	}
	out := console.New(a.stdout)
	out.Line(l.lines(out)...)
	return nil
}

// alive says whether somebody dispatches the run, as far as this machine can tell.
func (l *looked) alive() bool { return l.owner != nil && l.owner.Life() != journal.Dead }

func (l *looked) lines(c *console.Console) []string {
	lines := []string{
		c.Paint(console.Bold, console.CleanLine(l.run.Name())) + "  " + console.CleanLine(runDirText(l.run)),
		"made        " + l.run.Asked.Created.Local().Format("2006-01-02 15:04"),
	}
	switch {
	case l.alive():
		lines = append(lines, "dispatched  by "+console.CleanLine(l.owner.String()))
		if l.owner.Problem != "" {
			lines = append(lines, c.Paint(console.Yellow, "trouble     ")+console.CleanLine(l.owner.Problem))
		}
		if stopped(l.owner) {
			lines = append(lines, c.Paint(console.Yellow, "trouble     ")+fmt.Sprintf("it is stopped (Ctrl-Z, SIGSTOP): kill -CONT %d lets it go on", l.owner.PID))
		}
	case l.table.Unfinished() > 0:
		lines = append(lines, "dispatched  by nobody")
	}
	lines = append(lines, summaryLines(c, l.table, l.alive())...)
	if l.alive() {
		lines = append(lines, l.hostLines()...)
	} else {
		lines = append(lines, hostTrouble(l.table, l.words)...)
		if text := board.LeftBehind(l.table); text != "" {
			lines = append(lines, text)
		}
	}
	lines = append(lines, openLines(l.table, l.alive())...)
	switch {
	case l.asked == 0:
	case l.alive():
		lines = append(lines, jobs.Plural(l.asked, "request")+" not carried out yet")
	default:
		lines = append(lines, jobs.Plural(l.asked, "request")+" for the next resume")
	}
	switch {
	case !l.input.cut():
	case l.alive() && l.input.state == intakeOpen && l.owner.Epoch <= 1: // later dispatchers read none
		lines = append(lines, "its input is still being read: more jobs may come")
	default:
		lines = append(lines, l.input.text(l.table))
	}
	if (l.table.Unfinished() > 0 || l.asked > 0) && !l.alive() {
		lines = append(lines, "  dcs-tui resume "+console.ShellWord(console.CleanLine(runRef(l.run)))+"  carries it on")
	}
	return lines
}

// statusJSON is what `status --json` prints.
type statusJSON struct {
	V       int            `json:"v"`
	Run     string         `json:"run"`
	UID     string         `json:"uid"`
	Dir     string         `json:"dir"`
	Created time.Time      `json:"created"`
	Owner   *string        `json:"owner"` // null when nobody dispatches it
	Epoch   int            `json:"epoch"`
	Jobs    map[string]int `json:"jobs"` // by state
	Total   int            `json:"total"`
	Handed  int            `json:"handed_over"` // of the running ones, those not known to have started
	Hosts   []hostCount    `json:"hosts"`
	Queues  []*queueCount  `json:"queues"`
	Ended   bool           `json:"ended"`
	Problem string         `json:"problem,omitempty"`  // what keeps its dispatcher from launching
	Asked   int            `json:"requests,omitempty"` // that wait for a dispatcher
	Input   intake         `json:"input,omitempty"`    // open, done or bad; of a run whose jobs come from standard input
}

func (l *looked) json() statusJSON {
	s := statusJSON{
		V: 1, Run: l.run.Name(), UID: l.run.UID(), Dir: l.run.Dir, Created: l.run.Asked.Created, Epoch: l.table.Epoch,
		Jobs: map[string]int{}, Total: len(l.table.Jobs), Handed: handedOver(l.table), Hosts: l.hosts(), Queues: queuesIn(l.table), Ended: l.table.Ended,
		Input: l.input.state, Asked: l.asked,
	}
	for st, n := range l.table.Counts {
		s.Jobs[jobs.JobState(st).String()] = n
	}
	if l.alive() {
		text := l.owner.String()
		s.Owner, s.Problem = &text, l.owner.Problem
	}
	return s
}

// printJSON writes one object on a line of standard output.
func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(append(b, '\n'))
	return err
}
