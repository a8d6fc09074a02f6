package cli

import (
	"encoding/json"
	"sort"
	"time"

	"github.com/spf13/cobra"

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
}

// look reads a run without owning it.
func (a *app) look(args []string) (*looked, error) {
	run, err := openRun(args)
	if err != nil {
		return nil, err
	}
	table, report, err := journal.Replay(run)
	if err != nil {
		return nil, usagef("%w", err)
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
	return &looked{run, table, owner, had}, nil
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
	out := newConsole(a.stdout)
	out.Line(l.lines(out)...)
	return nil
}

// alive says whether somebody dispatches the run, as far as this machine can tell.
func (l *looked) alive() bool { return l.owner != nil && l.owner.Life() != journal.Dead }

func (l *looked) lines(c *console) []string {
	lines := []string{
		c.paint(bold, cleanLine(l.run.Name())) + "  " + cleanLine(runDirText(l.run)),
		"made        " + l.run.Asked.Created.Local().Format("2006-01-02 15:04"),
	}
	switch {
	case l.alive():
		lines = append(lines, "dispatched  by "+cleanLine(l.owner.String()))
	case l.table.Unfinished() > 0:
		lines = append(lines, "dispatched  by nobody")
	}
	lines = append(lines, summaryLines(c, l.table)...)
	lines = append(lines, openLines(l.table)...)
	switch {
	case !l.input.cut():
	case l.alive() && l.input.state == intakeOpen && l.owner.Epoch <= 1: // later dispatchers read none
		lines = append(lines, "its input is still being read: more jobs may come")
	default:
		lines = append(lines, l.input.text(l.table))
	}
	if l.table.Unfinished() > 0 && !l.alive() {
		lines = append(lines, "  dcs-tui resume "+shellWord(cleanLine(runRef(l.run)))+"  carries it on")
	}
	return lines
}

// hostCount is what a run has had of one host.
type hostCount struct {
	Name    string `json:"name"`
	Running int    `json:"running"`     // open attempts
	Handed  int    `json:"handed_over"` // those of them that are not known to have started
	Ended   int    `json:"ended"`
	Failed  int    `json:"failed"`
}

func hostTable(t *jobs.Table) []hostCount {
	counts := map[string]*hostCount{}
	for i := range t.Jobs {
		for _, a := range t.Jobs[i].Attempts {
			h := counts[a.Host]
			if h == nil {
				h = &hostCount{Name: a.Host}
				counts[a.Host] = h
			}
			switch {
			case a.State.Open():
				h.Running++
				if a.State == jobs.AttemptLaunching {
					h.Handed++
				}
			case a.Outcome != nil:
				h.Ended++
				if !a.Outcome.OK() {
					h.Failed++
				}
			}
		}
	}
	list := make([]hostCount, 0, len(counts))
	for _, h := range counts {
		list = append(list, *h)
	}
	sort.Slice(list, func(i, k int) bool { return list[i].Name < list[k].Name })
	return list
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
	Ended   bool           `json:"ended"`
	Input   intake         `json:"input,omitempty"` // open, done or bad; of a run whose jobs come from standard input
}

func (l *looked) json() statusJSON {
	s := statusJSON{
		V: 1, Run: l.run.Name(), UID: l.run.UID(), Dir: l.run.Dir, Created: l.run.Asked.Created, Epoch: l.table.Epoch,
		Jobs: map[string]int{}, Total: len(l.table.Jobs), Handed: handedOver(l.table), Hosts: hostTable(l.table), Ended: l.table.Ended,
		Input: l.input.state,
	}
	for st, n := range l.table.Counts {
		s.Jobs[jobs.JobState(st).String()] = n
	}
	if l.alive() {
		text := l.owner.String()
		s.Owner = &text
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
