package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/run"
	"dcs-tui/grid"
	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

func (a *app) resumeCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "resume [flags] [RUN [-]]",
		GroupID: groupRun,
		Short:   "Carry on a run that was stopped, or whose dispatcher died",
		Long: `Carry on a run: adopt the jobs that are still running, count those that have
finished meanwhile, and run the rest. Jobs that are done are not run again.

` + runHelp + `
Options are those of the run, except where they are given anew. The inventory is read
again from the file that the run was started with, or from --hosts, and what has changed
in it is said. If the file cannot be read, the run keeps the inventory that it had.

With --json, results that no earlier --json has acknowledged are printed again. With - more
jobs are read from standard input, as run --json - does.

With --standby, the command watches the dispatcher of the run, and resumes the run when that
dispatcher dies or gives no sign of life for 30 s. It ends when the run ends or is stopped.
docs/standby.md explains it; run --standby-on starts one on another machine.`,
		Example: `dcs-tui resume
dcs-tui resume sweep-20260314-1502 --hosts more-hosts.toml
dcs-tui resume --standby --background sweep`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runResume(cmd, &f, args)
		},
	}
	fs := cmd.Flags()
	f.hostFlags(fs)
	f.policyFlags(fs)
	f.endFlags(fs)
	f.screenFlags(fs)
	fs.BoolVar(&f.force, "force", false, "take the run over though its dispatcher may be alive; that one can then do no harm")
	fs.BoolVar(&f.standby, "standby", false, "watch the dispatcher of the run, and resume the run when it dies or hangs")
	fs.BoolVar(&f.background, "background", false, "with --standby, on another machine than the dispatcher's: go on in the background, and write to dispatcher.log of the run")
	return cmd
}

func (a *app) runResume(cmd *cobra.Command, f *runFlags, args []string) error {
	if err := f.checkStandby(); err != nil {
		return err
	}
	if f.background && a.starter == nil {
		return a.inBackground()
	}
	streaming := len(args) == 2
	switch {
	case streaming && args[1] != stdinFile:
		return exit.Usagef("only the run is wanted, and - for more jobs from standard input, not %s", console.Shorten(args[1]))
	case streaming && !f.json:
		return exit.Usagef("- is for programs, and goes with --json").WithAdvice("dcs-tui submit %s - adds jobs to the run", console.ShellWord(args[0]))
	}
	reopen := f.KeepOpen // not by the run's own options
	if done, err := a.onScreen(f, streaming); done {
		return err
	}
	r, err := a.openRun(args[:min(len(args), 1)])
	if err != nil {
		return err
	}
	if err := absoluteFlags(cmd.Flags()); err != nil {
		return err
	}
	if err := restoreFlags(cmd.Flags(), r.Asked.Options); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	if f.standby {
		a.checkJobLog(f)
	}
	env, err := run.ResolveEnv(r.Asked.EnvNames, os.LookupEnv)
	if err != nil {
		return err
	}
	inv, err := a.resumeInventory(f, r)
	if err != nil {
		return err
	}
	if err := f.findStandbys(inv); err != nil {
		return err
	}
	var o *run.Owned
	if f.standby {
		o, err = a.standBy(r, f)
	} else {
		o, err = a.own(r, f.force)
	}
	if err != nil || o == nil {
		return err
	}
	if f.standby { // the file may have changed while it watched
		if now, err := a.resumeInventory(f, r); err == nil && f.findStandbys(now) == nil {
			inv = now
		}
	}
	if err := o.CheckComplete(); err != nil {
		o.Release()
		return err
	}
	a.keepInventory(r, inv)
	if !f.standby { // which takes over also what was asked of the dispatcher before it
		a.removeStopFiles(r, func(name string) {
			a.con.Line("the file " + name + " of the run is removed: the run goes on")
		})
	}
	for _, text := range absentHosts(o.Table, inv.Hosts, f.Buffer) {
		a.warn("%s", text)
	}
	had, err := r.ReadInput()
	if err != nil {
		a.warn("%v", err)
	}
	d := a.dispatching(f, inv, env)
	d.opening = recovered(o, a.numRequests(r, o.Table))
	d.opts.Input = had
	if d.opts.Search = a.keptSearch(r, had); d.opts.Search == nil || d.opts.Search.Proposer == nil {
		d.opts.Lines = a.restOfInput(r, had, o.NumFromSource())
	}
	switch {
	case streaming && had.Again && had.State == rundir.InputOpen:
		o.Release()
		return exit.Usagef("the run has not made all of its jobs yet, so none can be read from standard input").WithAdvice("dcs-tui submit %s - adds them", refTo(r))
	case streaming:
		d.opts.Lines = readingLines(a.stdin, o.Specs())
	}
	d.opts.AcceptJobs = f.KeepOpen && (reopen || had.State != rundir.InputDone)
	a.code, err = d.drive(o)
	return err
}

// keptSearch returns the search of a run, or nil. It proposes nothing if the last dispatcher
// has proposed everything.
func (a *app) keptSearch(r *rundir.Run, had rundir.Input) *run.Search {
	source, _ := r.Asked.Options[rundir.OptionSource].(string)
	t, err := grid.ReadSource(source)
	if err != nil || t.Search == nil {
		return nil // restOfInput reports the error
	}
	s := searchOf(t, r.Asked.Cwd)
	if s != nil && had.State != rundir.InputOpen {
		s.Proposer = nil
	}
	return s
}

// restOfInput yields the jobs that were not made yet when the last dispatcher ended. It is
// nil if there are none that can be made again.
func (a *app) restOfInput(r *rundir.Run, had rundir.Input, have int) func() (jobs.Line, error) {
	source, _ := r.Asked.Options[rundir.OptionSource].(string)
	if !had.Again || had.State != rundir.InputOpen {
		return nil
	}
	next, err := grid.Rest(source, have)
	if err != nil {
		a.warn("the jobs that were not made yet cannot be made now: %v", err)
		return nil
	}
	return run.JobLines(next)
}

// resumeInventory reads the inventory again, from --hosts or from the file that the run
// was started with, and reports what has changed. If that file cannot be read or has an
// error, the run keeps its inventory, because hosts of running jobs must be reachable.
func (a *app) resumeInventory(f *runFlags, run *rundir.Run) (*loadedInventory, error) {
	had, noOld := a.storedInventory(run)
	inv, err := had, noOld
	switch file := run.Asked.InventoryFile; {
	case f.hosts != "" || f.HostList != "":
		inv, err = a.selectInventory(f)
	case file == "":
		inv, err = &loadedInventory{Inventory: hosts.Local()}, nil
	case filepath.IsAbs(file): // otherwise an older program created the run, and the directory is unknown
		file = text.Path(file)
		info, why := os.Stat(file)
		if why == nil && !info.Mode().IsRegular() {
			why = fmt.Errorf("inventory file: %s is not a regular file", file) // a pipe cannot be read twice
		} else {
			var now *loadedInventory
			if now, why = a.loadInventory(file); why == nil {
				inv, err = now, nil
			}
		}
		if why != nil && noOld == nil {
			problem, more, _ := strings.Cut(why.Error(), "\n")
			if more != "" {
				problem += " (and more)"
			}
			a.warn("the inventory has not been read again, the run keeps the one that it had: %s; correct %s and resume again, or use --hosts FILE", problem, console.CleanLine(file))
		}
	}
	if err != nil {
		return nil, err
	}
	if noOld != nil {
		a.warn("cannot tell what has changed in the inventory: %v", noOld)
	} else if changes := hosts.Changes(had.Hosts, inv.Hosts); changes != "" {
		from := "this machine alone"
		if inv.File != "" {
			from = text.Path(inv.File)
		}
		a.con.Line(console.CleanLine("the inventory (" + from + ") has changed: " + changes))
	}
	return inv, a.checkSSH(&f.options, inv.reached())
}

// keepInventory stores the inventory of this resume for later commands.
func (a *app) keepInventory(run *rundir.Run, inv *loadedInventory) {
	if text, _, err := run.Inventory(); err == nil && text == inv.text {
		return
	}
	if err := run.KeepInventory(inv.text); err != nil {
		a.warn("%v", err)
	}
}

// absentHosts describes each host that is not in the inventory although attempts may still
// run there: which they are, and how long they are waited for. As the host cannot be asked,
// the default lost_after applies, and the lease of what is only handed over, which --buffer
// makes longer.
func absentHosts(t *jobs.Table, hs []*hosts.Host, buffer time.Duration) []string {
	const maxNamed = 5 // attempts of a host
	attempts, waits := map[string][]string{}, map[string]time.Duration{}
	for i := range t.Jobs {
		if t.Jobs[i].State != jobs.Running {
			continue
		}
		for _, a := range t.Jobs[i].Open() {
			wait := hosts.DefaultLostAfter
			if a.State == jobs.AttemptLaunching {
				wait = max(wait, buffer)
			}
			attempts[a.Host] = append(attempts[a.Host], a.ID.String())
			waits[a.Host] = max(waits[a.Host], wait)
		}
	}
	for _, h := range hs {
		delete(attempts, h.Name)
	}
	for name := range t.Instances { // the list of their provider tells where they are
		delete(attempts, name)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(attempts)) {
		ids := attempts[name]
		what, they := "attempts ", "unless the run directory shows how they end, or that the host goes on, they are given up and their jobs run"
		if len(ids) == 1 {
			what, they = "attempt ", "unless the run directory shows how it ends, or that the host goes on, it is given up and its job runs"
		}
		if more := len(ids) - maxNamed; more > 0 {
			ids = append(ids[:maxNamed:maxNamed], fmt.Sprintf("%d more", more))
		}
		lines = append(lines, fmt.Sprintf("%s is not in the inventory, %s%s may still run there: %s again elsewhere in %s; an inventory that has the host (--hosts) lets it be asked instead",
			name, what, strings.Join(ids, ", "), they, results.HumanDuration(waits[name])))
	}
	return lines
}

// removeStopFiles takes away what an earlier stop left: whoever says resume wants
// the run to go on, and cancel has done what was asked. removed is told of each.
func (a *app) removeStopFiles(run *rundir.Run, removed func(name string)) {
	for _, name := range []string{rundir.StopFile, rundir.StopNowFile} {
		err := run.Disk.Remove(run.Path(name))
		switch {
		case err == nil:
			removed(name)
		case !errors.Is(err, fs.ErrNotExist):
			a.warn("the file %s cannot be removed: %v", name, err)
		}
	}
}

// recovered returns the first line of a resumed run without its name. asked is the number of requests that
// wait.
func recovered(o *run.Owned, asked int) string {
	c := o.Table.Counts
	done := 0
	for st := jobs.Succeeded; st <= jobs.Skipped; st++ {
		done += c[st]
	}
	text := jobs.Plural(done, "job") + " done, " +
		strconv.Itoa(c[jobs.Running]) + " to adopt, " + strconv.Itoa(c[jobs.Queued]+o.NumStored()) + " to run"
	if asked > 0 { // what they bring back is still among those that are done
		text += ", " + jobs.Plural(asked, "request") + " to carry out"
	}
	return text
}
