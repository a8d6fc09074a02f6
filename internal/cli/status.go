package cli

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

func (a *app) statusCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "status [flags] [RUN]",
		GroupID:           groupLook,
		Short:             "How a run stands",
		Long:              "How a run stands, from its journal: no dispatcher is needed, none is disturbed.",
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
	return &looked{run, table, owner}, nil
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
	lines = append(lines, runningLines(l.table)...)
	if l.table.Unfinished() > 0 && !l.alive() {
		lines = append(lines, "  dcs-tui resume "+shellWord(cleanLine(runRef(l.run)))+"  carries it on")
	}
	return lines
}

// maxRunning bounds the list of running jobs.
const maxRunning = 20

func runningLines(t *jobs.Table) []string {
	var lines []string
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.State != jobs.Running {
			continue
		}
		if len(lines) == 0 {
			lines = append(lines, "running")
		}
		if len(lines) > maxRunning {
			lines = append(lines, fmt.Sprintf("  and %d more", t.Counts[jobs.Running]-maxRunning))
			break
		}
		a := j.Last()
		for _, open := range j.Open() {
			a = open
		}
		since := "starting"
		if a.State == jobs.AttemptRunning && a.Started != 0 {
			since = results.HumanDuration(time.Since(a.Started.Time()))
		}
		lines = append(lines, fmt.Sprintf("  %-6s  %s  %s  %s", a.ID, cleanLine(a.Host), since, shorten(cleanLine(j.Spec.Title()))))
	}
	return lines
}

// hostCount is what a run has had of one host.
type hostCount struct {
	Name    string `json:"name"`
	Running int    `json:"running"`
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

// countsText says how many jobs are in each state.
func countsText(c [jobs.Skipped + 1]int) string {
	total := 0
	for _, n := range c {
		total += n
	}
	parts := []string{fmt.Sprintf("%d of %d ok", c[jobs.Succeeded], total)}
	for _, st := range []jobs.JobState{jobs.Failed, jobs.TimedOut, jobs.Cancelled, jobs.Skipped, jobs.Running, jobs.Queued} {
		if c[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c[st], strings.ReplaceAll(st.String(), "_", " ")))
		}
	}
	return strings.Join(parts, ", ")
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
	Hosts   []hostCount    `json:"hosts"`
	Ended   bool           `json:"ended"`
}

func (l *looked) json() statusJSON {
	s := statusJSON{
		V: 1, Run: l.run.Name(), UID: l.run.UID(), Dir: l.run.Dir, Created: l.run.Asked.Created, Epoch: l.table.Epoch,
		Jobs: map[string]int{}, Total: len(l.table.Jobs), Hosts: hostTable(l.table), Ended: l.table.Ended,
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
