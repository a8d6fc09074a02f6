package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

func (a *app) statusCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [flags] [RUN]",
		Short: "Show the status of a run",
		Long: `Show how many jobs of a run are in each state, its hosts, and what runs now. The status comes from the
run directory, so it works with and without a dispatcher. ` + runHelp,
		Example: `dcs-tui status sweep-20260314-1502 --json | jq .jobs`,
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := a.openRun(args)
			if err != nil {
				return err
			}
			state := newRunState(run)
			state.WithoutParams()
			err = a.updateState(state)
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(state.json(time.Now()))
			}
			out := newConsole(a.stdout)
			out.Line(state.lines(out)...)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// printJSON writes one object on a line of standard output.
func (a *app) printJSON(v any) error { return writeJSON(a.stdout, isTerminal(a.stdout), v) }

// writeJSON writes a value as one line of JSON. For a terminal, what could change the terminal or
// the order of characters is escaped. All JSON of commands goes through it, except for results,
// whose own form is always escaped.
func writeJSON(w io.Writer, terminal bool, v any) error {
	var line bytes.Buffer
	if err := json.NewEncoder(&line).Encode(v); err != nil {
		return err
	}
	b := line.Bytes()
	if terminal {
		b = text.EscapeJSON(b)
	}
	_, err := w.Write(b)
	return err
}

// runState is the state of a run according to its directory.
type runState struct {
	*journal.Reader
	Table      *jobs.Table
	Input      rundir.Input
	HostEvents map[string]runview.HostEvent // last event of each host from the current dispatcher
	Requests   int                          // number of waiting requests
}

// openState reads the run that the arguments name without owning it.
func (a *app) openState(args []string) (*runState, error) {
	run, err := a.openRun(args)
	if err != nil {
		return nil, err
	}
	state := newRunState(run)
	return state, a.updateState(state)
}

// tablePercent is the percentage for keepHeapSmall where nearly all memory is a table without pointers,
// which is cheap to collect.
const tablePercent = 25

// keepHeapSmall makes the garbage collector run often, until undo is called: when the heap has grown by a
// percentage. At the default of 100, the heap of a command, a screen, or a dispatcher of many jobs would
// be twice as large as necessary. Users who set GOGC decide for themselves.
func keepHeapSmall(percent int) (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}

// newRunState returns the state of a run that has not been read yet. Its table is packed.
func newRunState(run *rundir.Run) *runState {
	keepHeapSmall(tablePercent)
	return &runState{Reader: journal.NewReader(run, journal.Follow(run).Packed()),
		HostEvents: map[string]runview.HostEvent{}}
}

// updateState reads a run, or what was added to it, without owning it, and warns about what it
// cannot read. It calls each of see for every record.
func (a *app) updateState(state *runState, see ...func(*jobs.Record)) error {
	if err := state.Watch(true); err != nil {
		a.warn("%v", err)
	}
	if _, err := state.Follow(live.Durable{}, func(_ int, r *jobs.Record) {
		runview.AddHostEvent(state.HostEvents, r)
		for _, f := range see {
			f(r)
		}
	}); err != nil {
		return err
	}
	a.warnAll(state.Report().Warnings)
	err := state.AcceptStored()
	if err != nil {
		return err
	}
	state.Table = state.Reader.Table()
	if state.Input, err = state.Run.ReadInput(); err != nil {
		a.warn("%v", err)
	}
	waiting, err := state.Run.WaitingNames(state.Table)
	if err != nil {
		a.warn("%v", err)
	}
	state.Requests = len(waiting)
	return nil
}

// replayTable replays the whole journal of a run. The table is packed, and also has the jobs that are
// stored and not yet part of the run.
func replayTable(run *rundir.Run) (*jobs.Table, error) {
	keepHeapSmall(tablePercent)
	table, _, err := journal.Replay(run)
	if err != nil {
		return nil, err
	}
	table.AcceptStored()
	return table, nil
}

// openTable opens the run that the first argument names, and replays its journal.
func (a *app) openTable(args []string) (*rundir.Run, *jobs.Table, error) {
	run, err := a.openRun(args[:1])
	if err != nil {
		return nil, nil, err
	}
	table, err := replayTable(run)
	return run, table, err
}

// statusJSON is what `status --json` prints.
type statusJSON struct {
	runJSON
	Dir     string    `json:"dir"`
	Created time.Time `json:"created"`
	Owner   *string   `json:"owner"` // null if nobody dispatches the run
	// How the dispatcher ends or has ended, as in live.json. None if it died.
	Finish    *live.Finish          `json:"finish,omitempty"`
	Epoch     int                   `json:"epoch"`
	Jobs      map[string]int        `json:"jobs"` // by state
	Total     int                   `json:"total"`
	Sent      int                   `json:"sent"`                // of the running ones, those not known to have started
	Suspended int                   `json:"suspended,omitempty"` // of the running ones
	Hosts     []hostStatus          `json:"hosts"`
	Queues    []*runview.QueueCount `json:"queues"`
	Instances []*instanceCount      `json:"instances,omitempty"` // by provider
	Ended     bool                  `json:"ended"`
	// What keeps the dispatcher from launching, or is wrong with the inventory file.
	Problem  string         `json:"problem,omitempty"`
	Paused   bool           `json:"paused,omitempty"`    // by a person
	NextSlot *jobs.NextSlot `json:"next_slot,omitempty"` // as in live.json
	Draining string         `json:"draining,omitempty"`  // as in live.json, and so are ETA and Spread
	ETA      time.Duration  `json:"eta_ns,omitempty"`
	Spread   time.Duration  `json:"spread_ns,omitempty"`
	// Machines where a standby dispatcher watches.
	Standby  string `json:"standby,omitempty"`
	Requests int    `json:"requests,omitempty"` // that wait for a dispatcher
	// open, done or bad; of a run whose jobs come from standard input
	Input rundir.InputState `json:"input,omitempty"`
}

func (r *runState) progress() *runview.RunProgress {
	p := runview.ProgressOf(r.Table, r.Reader)
	p.Requests = r.Requests
	return p
}

func (r *runState) json(now time.Time) *statusJSON {
	p := r.progress()
	s := &statusJSON{
		runJSON: runJSONOf(r.Run), Dir: r.Run.Dir, Created: r.Run.Settings.Created, Epoch: r.Table.Epoch,
		Jobs: map[string]int{}, Total: p.Total, Sent: p.Sent, Suspended: p.Suspended, Hosts: r.hosts(),
		Queues: runview.CountQueues(r.Table), Ended: r.Table.Ended, Input: r.Input.State, Requests: p.Requests,
		Paused: p.Paused, Draining: p.Draining, ETA: p.ETA, Spread: p.Spread,
	}
	samples := live.ReadSamples(r.Run, live.LastHour)
	for i := range s.Hosts {
		s.Hosts[i].History = historyOf(samples[s.Hosts[i].Name], now)
	}
	for st, n := range r.Table.Counts {
		s.Jobs[jobs.JobState(st).String()] = n
	}
	s.Instances = countInstances(r.Table)
	if r.IsDispatched() {
		s.Owner, s.Problem = new(r.Owner.String()), r.Owner.Problem
		if state := r.State(); state != nil {
			s.Standby, s.NextSlot, s.Finish = state.Standby, state.NextSlot, state.Finish
		}
	} else if c := r.Table.Closed; c.How != "" {
		s.Finish = &live.Finish{How: c.How, Why: c.Reason}
	}
	return s
}

// hostStatus has the counts of a host in a run and, while the run is dispatched, its last event and
// its state.
type hostStatus struct {
	Name string `json:"name"`
	runview.HostCount
	Last   string     `json:"last_event,omitempty"`
	LastAt *time.Time `json:"last_event_at,omitempty"`
	lastUp bool       // the last event is that the host came up
	// As in live.json; nothing if the dispatcher has published nothing.
	jobs.HostStatus
	*hostCapacity
	Files   string       `json:"files,omitempty"`
	History *hostHistory `json:"history,omitempty"` // of the last hour
}

// hostCapacity has the slots and the load of a host, as in live.json.
type hostCapacity struct {
	Slots  int        `json:"slots"`
	Usable float64    `json:"usable"`
	Cores  int        `json:"cores,omitempty"`
	Load   [3]float64 `json:"load"`
	Busy   float64    `json:"busy"`
	Ours   float64    `json:"ours"`
}

// idle counts the attempts on the host that do not run at the moment.
func (h *hostStatus) idle() results.Idle {
	return results.Idle{Sent: h.Sent, Suspended: min(h.Suspended, h.Running-h.Sent)}
}

// now describes the state of a host that is not up or starts nothing, or else its last event.
func (h *hostStatus) now() (text string, isEvent bool) {
	text = h.Line()
	if text == "" {
		return h.Last, true
	}
	return text, false
}

func (r *runState) hosts() []hostStatus {
	counts := runview.CountHosts(r.Table)
	now := map[string]*live.Host{}
	if r.IsDispatched() {
		names := slices.Collect(maps.Keys(r.HostEvents))
		if state := r.State(); state != nil {
			for i := range state.Hosts {
				names = append(names, state.Hosts[i].Name)
				now[state.Hosts[i].Name] = &state.Hosts[i]
			}
		}
		for _, name := range names {
			if counts[name] == nil {
				counts[name] = new(runview.HostCount)
			}
		}
	}
	list := make([]hostStatus, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		h := hostStatus{Name: name, HostCount: *counts[name]}
		if l := now[name]; l != nil {
			h.HostStatus, h.Files = l.HostStatus, l.Files
			h.hostCapacity = &hostCapacity{l.Slots, l.Usable, l.Cores, l.Load, l.Busy, l.Ours}
		}
		if w, ok := r.HostEvents[name]; ok && r.IsDispatched() {
			h.Last, h.LastAt = w.Text, new(w.At.Time().UTC())
			h.lastUp = w.ReasonKind == jobs.ReasonHostUp
		}
		list = append(list, h)
	}
	return list
}
