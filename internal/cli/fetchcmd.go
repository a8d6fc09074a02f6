package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/hosts"
	"dcs-tui/hosts/fetch"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/places"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// fetchFlags are what `fetch` can be asked.
type fetchFlags struct {
	sel   selection
	hosts string
	json  bool
}

func (a *app) fetchCmd() *cobra.Command {
	var f fetchFlags
	var o options
	cmd := &cobra.Command{
		Use:     "fetch [flags] [RUN] [JOBS...]",
		GroupID: groupLook,
		Short:   "Bring outputs here that only their hosts have",
		Long: `Bring what jobs have printed, and how their attempts ended, from hosts that do not see
the run directory into that directory, through their links. Then logs, results --result
and every other reader have it, whatever becomes of those hosts. Other files that jobs
wrote stay where they are.

JOBS are numbers and ranges, such as 3 9-17; without them, and without --failed and
--where, all that is over is brought. It may be done while the run goes on. Nothing is
started or removed on a host. What is here is not brought again: an interrupted fetch is
carried on by the same command. A host that cannot be reached costs only itself.

` + runHelp + `

Exit code 0 when all that there still is of it is here, 1 when something is not.`,
		Example: `dcs-tui fetch
dcs-tui fetch sweep-20260314-1502 --failed
dcs-tui fetch sweep-20260314-1502 3 9-17
dcs-tui fetch sweep-20260314-1502 --where 'host=ws*' --json`,
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runFetch(cmd, args, &f, &o)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.sel.failed, "failed", false, "only of jobs that failed or timed out")
	fs.StringArrayVar(&f.sel.where, "where", nil, whereHelp)
	fs.StringVar(&f.hosts, "hosts", "", "inventory FILE that says how to reach the hosts (else as the run read it)")
	sshFlags(fs, &o.SSHConfig, &o.AcceptNew)
	fs.BoolVar(&f.json, "json", false, "say what was brought as one JSON object on stdout")
	cmd.RegisterFlagCompletionFunc("where", completeWhere)
	return cmd
}

// fetchRun tells the run from the jobs: who names jobs alone means those of the newest run.
func fetchRun(args []string) (run, named []string) {
	if len(args) == 0 {
		return nil, nil
	}
	if _, err := jobs.ParseRanges(args[0]); err == nil {
		if _, err := rundir.Find(rundir.Base, args[0]); err != nil {
			return nil, args
		}
	}
	return args[:1], args[1:]
}

func (a *app) runFetch(cmd *cobra.Command, args []string, f *fetchFlags, o *options) error {
	which, named := fetchRun(args)
	if err := f.sel.parseNamed(named); err != nil {
		return err
	}
	l, err := a.look(which)
	if err != nil {
		return err
	}
	ids, err := a.pick(cmd.Context(), l.Run, l.Table, &f.sel, func(jobs.JobState) bool { return true })
	if err != nil {
		return err
	}
	at := places.Of(l.Run)
	plan := fetch.Make(l.Table, ids, func(host string) bool { return at.HostDirs[host] != "" }, at.Here)
	got := &fetched{V: 1, Run: l.Run.Name(), UID: l.Run.UID(), Here: plan.Here, Open: plan.Open, Hosts: []fetchedHost{}, none: len(ids) == 0 && len(l.Table.Jobs) > 0}
	if len(at.HostDirs) > 0 {
		fetch.Sweep(l.Run)
	}
	if plan.Attempts() > 0 {
		if err := restoreFlags(cmd.Flags(), l.Run.Asked.Options); err != nil {
			return err
		}
		reader, err := a.outputsReader(l.Run, o, f.hosts, plan.Names()...)
		if err != nil {
			return err
		}
		defer reader.Close()
		a.bring(cmd.Context(), l.Run, plan, reader, got)
	}
	if got.Left > 0 || got.Error != "" {
		a.code = exit.Failed
	}
	if got.Interrupted {
		a.code = exit.Cancelled
	}
	if !f.json {
		a.con.Line(got.lines(l.Run)...)
		return nil
	}
	b, err := json.Marshal(got)
	if err == nil {
		_, err = fmt.Fprintf(a.stdout, "%s\n", b)
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return exit.Usagef("%w", err)
	}
	return nil
}

// outputsReader reads outputs on these hosts, which the inventory FILE says how to reach,
// or the run's own.
func (a *app) outputsReader(run *rundir.Run, o *options, file string, names ...string) (*fetch.Reader, error) {
	inv, err := a.storedInventory(run)
	if file != "" {
		inv, err = a.loadInventory(file)
	}
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(inv.Hosts), func(h *hosts.Host) bool { return !slices.Contains(names, h.Name) })
	connector, err := a.connector(o, list, func(string, string) {})
	if err != nil {
		return nil, err
	}
	return fetch.NewReader(connector, run.UID(), list), nil
}

// bring carries a plan out, with a progress line, until it is done or interrupted.
func (a *app) bring(ctx context.Context, run *rundir.Run, plan *fetch.Plan, reader *fetch.Reader, got *fetched) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.listen()
	over := make(chan struct{})
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for asked := 0; ; {
			select {
			case sig := <-a.signals:
				if sig == syscall.SIGPIPE { // the write that failed says so itself
					continue
				}
				if asked++; asked > 1 { // what was brought stays; a later fetch sweeps what was under way
					os.Exit(exit.Cancelled)
				}
				cancel()
			case <-over:
				return
			}
		}
	})
	b := &fetch.Bringer{Run: run, Read: reader.Read}
	tasks.Go(func() {
		every := time.NewTicker(500 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-over:
				return
			case <-every.C:
			}
			if n, _, bytes := b.Done(); a.con.Live() {
				a.con.Status(fmt.Sprintf("%d of %s brought, %s", n, jobs.Plural(plan.Attempts(), "output"), results.HumanBytes(bytes)))
			}
		}
	})
	list, err := b.Bring(ctx, plan)
	close(over)
	tasks.Wait() // else a progress line comes behind the last
	got.take(list, err)
	_, got.Files, got.Bytes = b.Done()
	a.con.Status("")
}

// fetched is what `fetch --json` prints.
type fetched struct {
	V           int           `json:"v"`
	Run         string        `json:"run"`
	UID         string        `json:"uid"`
	Brought     int           `json:"brought"` // attempts
	Here        int           `json:"here"`    // attempts that were here before
	Left        int           `json:"left"`    // attempts that lack something
	Open        int           `json:"open"`    // attempts that may still run
	Files       int           `json:"files"`
	Bytes       int64         `json:"bytes"`
	Hosts       []fetchedHost `json:"hosts"`
	Error       string        `json:"error,omitempty"` // of the run directory
	Interrupted bool          `json:"interrupted"`

	none bool // of the jobs is selected
}

type fetchedHost struct {
	Host    string `json:"host"`
	Brought int    `json:"brought"`
	Left    int    `json:"left"`
	Removed int    `json:"removed"` // files that it does not have any more
	Error   string `json:"error,omitempty"`
}

func (f *fetched) take(list []fetch.HostResult, err error) {
	for _, h := range list {
		is := fetchedHost{Host: h.Host, Brought: h.Brought, Left: h.Left, Removed: h.None}
		if h.Err != nil {
			is.Error = h.Err.Error()
		}
		f.Hosts = append(f.Hosts, is)
		f.Brought += h.Brought
		f.Here += h.Same
		f.Left += h.Left
	}
	if f.Interrupted = errors.Is(err, context.Canceled); err != nil && !f.Interrupted {
		f.Error = err.Error()
	}
}

// lines say it to people, and what to type next.
func (f *fetched) lines(run *rundir.Run) (lines []string) {
	ref := console.ShellWord(console.CleanLine(standing.Ref(run)))
	dir := console.CleanLine(standing.Dir(run))
	switch {
	case f.Brought > 0:
		lines = append(lines, fmt.Sprintf("outputs of %s brought into %s: %s, %s", jobs.Plural(f.Brought, "attempt"), dir, jobs.Plural(f.Files, "file"), results.HumanBytes(f.Bytes)))
	case f.none:
		lines = append(lines, "nothing is to be brought: no job is selected")
	case f.Left == 0 && f.Here == 0:
		lines = append(lines, "nothing is to be brought: no attempt of these jobs is over that printed anything")
	case f.Left == 0 && !slices.ContainsFunc(f.Hosts, func(h fetchedHost) bool { return h.Removed > 0 }):
		lines = append(lines, fmt.Sprintf("nothing is to be brought: what these jobs printed is in %s", dir))
	default:
		lines = append(lines, "nothing was brought")
	}
	if f.Here > 0 && f.Brought+f.Left > 0 {
		lines = append(lines, fmt.Sprintf("those of %s were here before", jobs.Plural(f.Here, "attempt")))
	}
	if f.Open > 0 {
		lines = append(lines, jobs.Plural(f.Open, "attempt")+" may still run: what they print is brought when they are over")
	}
	for _, h := range f.Hosts {
		if h.Removed > 0 {
			lines = append(lines, fmt.Sprintf("%s does not have %s any more", console.CleanLine(h.Host), jobs.Plural(h.Removed, "output")))
		}
		if h.Left > 0 && h.Error != "" {
			lines = append(lines, fmt.Sprintf("%s still has those of %s: %s", console.CleanLine(h.Host), jobs.Plural(h.Left, "attempt"),
				console.CleanLine(console.WithoutSubject(h.Error, h.Host))))
		}
	}
	switch {
	case f.Error != "":
		lines = append(lines, console.CleanLine(f.Error), "make room, then: dcs-tui fetch "+ref)
	case f.Interrupted:
		lines = append(lines, "interrupted: dcs-tui fetch "+ref+" carries it on")
	case f.Left > 0:
		lines = append(lines, "dcs-tui fetch "+ref+" brings what is left")
	}
	if f.Brought > 0 {
		lines = append(lines, "dcs-tui results "+ref+" and dcs-tui logs "+ref+" JOB show them")
	}
	return lines
}
