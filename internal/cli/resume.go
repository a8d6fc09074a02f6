package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/run"
	"dcs-tui/grid"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

func (a *app) resumeCmd() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "resume [flags] [RUN [-]]",
		Short: "Continue a run that was stopped, or whose dispatcher died",
		Long: `Continue a run: adopt jobs that are still running, collect the results of jobs that have finished
meanwhile, and run the rest. Jobs that have a result are not run again. The run keeps its options and its
inventory file, except for flags that are given here; the defaults below are those of new runs. ` + runHelp,
		Example: `dcs-tui resume sweep-20260314-1502 --hosts more-hosts.toml
dcs-tui resume --standby --background sweep`,
		Args: atMost(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runResume(cmd, &flags, args) },
	}
	fs := cmd.Flags()
	flags.addHostFlags(fs)
	flags.addSlotFlags(fs)
	flags.addJobFlags(fs)
	flags.addFailureFlags(fs)
	flags.addEndFlags(fs)
	flags.addForceFlag(fs)
	fs.BoolVar(&flags.standby, "standby", false,
		"watch the dispatcher of the run, and take the run over when it dies or hangs")
	fs.BoolVar(&flags.background, "background", false,
		"with --standby, on another machine than the dispatcher's: run in the background, "+
			"and log to dispatcher.log of the run")
	endGroup(fs, titleRun)
	flags.addOutputFlags(fs)
	return cmd
}

func (a *app) runResume(cmd *cobra.Command, flags *runFlags, args []string) error {
	if err := flags.checkStandby(); err != nil {
		return err
	}
	if flags.background && a.starter == nil {
		return a.standByInBackground()
	}
	streaming := len(args) == 2
	switch {
	case streaming && args[1] != stdinFile:
		return text.Errorf("unexpected argument %s: only - may follow RUN, for more jobs from standard input",
			text.Shorten(args[1]))
	case streaming && !flags.json:
		return text.Errorf("- needs --json").WithAdvice("dcs-tui submit %s - adds jobs to the run",
			text.ShellWord(args[0]))
	}
	reopen := flags.KeepOpen // given on this command line, not by the options of the run
	if done, err := a.runOnScreen(flags, streaming); done {
		return err
	}
	runDir, err := a.openRun(args[:min(len(args), 1)])
	if err != nil {
		return err
	}
	if err := checkOptions(runDir); err != nil {
		return err
	}
	copyFlag := givenCopyFlag(cmd.Flags()) // not one that the run has: older versions accepted that
	err = cmp.Or(restoreFlags(cmd.Flags(), runDir.Settings.Options), flags.check(), flags.checkCopies(copyFlag))
	if err != nil {
		return err
	}
	if flags.standby {
		a.checkJobLog(flags)
	}
	env, err := run.ResolveEnv(runDir.Settings.EnvNames, os.LookupEnv)
	if err != nil {
		return err
	}
	inv, err := a.resumeInventory(flags, runDir)
	if err != nil {
		return err
	}
	keepHeapSmall(tablePercent)
	var owned *run.Owned
	if flags.standby {
		owned, err = a.standBy(runDir, flags, inv)
	} else {
		owned, err = a.becomeOwner(runDir, flags.force)
	}
	if err != nil || owned == nil {
		return err
	}
	if flags.standby { // the file may have changed meanwhile
		if now, err := a.resumeInventory(flags, runDir); err == nil {
			inv = now
		}
	}
	if err := owned.CheckComplete(); err != nil {
		owned.Release()
		return err
	}
	a.reportInventoryChange(runDir, inv, owned.Table.Inventory)
	a.storeInventory(runDir, inv)
	if !flags.standby { // a standby obeys requests to its predecessor
		a.removeStopFiles(runDir, func(name string) {
			a.con.Line("the file " + name + " of the run is removed: the run continues")
		})
	}
	used, _ := inv.With(owned.Table.Inventory, nil) // a bad one is reported when the run starts
	for _, text := range absentHosts(owned.Table, used, flags.Buffer) {
		a.warn("%s", text)
	}
	had, err := runDir.ReadInput()
	if err != nil {
		a.warn("%v", err)
	}
	session := a.newDispatchSession(flags, inv, env)
	waiting, err := runDir.WaitingRequests(owned.Table)
	if err != nil {
		a.warn("%v", err)
	}
	session.startLine = resumedLine(owned, len(waiting))
	session.startNotes = heldLines(runDir, owned.Table, waiting)
	session.opts.Input = had
	a.setRemainingJobs(&session.opts, runDir, owned.NumFromSource())
	switch {
	case streaming && had.Again && had.State == rundir.InputOpen:
		owned.Release()
		return text.Errorf("the run has not created all of its jobs yet, so it cannot read more from standard input").
			WithAdvice("dcs-tui submit %s - adds them", refTo(runDir))
	case streaming:
		session.opts.Lines = a.scanStdin(owned.Run.Settings.Shell).Stream(owned.AllSpecs()).NextLine
	}
	session.opts.AcceptJobs = flags.KeepOpen && (reopen || had.State != rundir.InputDone)
	a.exitCode, err = session.runToEnd(owned)
	return err
}

// setRemainingJobs sets the search of a run, and the jobs that had not been created when the last
// dispatcher ended. have is the number of those that had. The search has no proposer if the last
// dispatcher has proposed all jobs.
func (a *app) setRemainingJobs(o *run.Options, runDir *rundir.Run, have int) {
	source, _ := runDir.Settings.Options[rundir.OptionSource].(string)
	open := o.Input.State == rundir.InputOpen
	if template, err := grid.ReadSource(source); err == nil && template.Search != nil { // Rest returns the error, too
		o.Search = searchOf(template, runDir.Settings.Cwd)
		if o.Search != nil && o.Search.Proposer != nil {
			if !open {
				o.Search.Proposer = nil
			}
			return
		}
	}
	if !open || !o.Input.Again {
		return
	}
	next, err := grid.RemainingJobs(source, have)
	if err != nil {
		a.warn("cannot create the remaining jobs: %v", err)
		return
	}
	o.Lines = run.JobLines(next)
}

// resumeInventory reads the inventory again, from --hosts or from the file of the run. If the file
// of the run cannot be read or has an error, the run keeps its inventory, because hosts of running
// jobs must be reachable. It also finds the hosts of --standby-on.
func (a *app) resumeInventory(flags *runFlags, run *rundir.Run) (*hosts.Inventory, error) {
	had, noOld := a.storedInventory(run)
	inv, err := had, noOld
	if flags.hosts != "" || flags.HostList != "" {
		inv, err = a.selectInventory(flags)
	} else if now, warnings, why := currentInventory(run); now != nil {
		a.warnAll(warnings)
		inv, err = now, nil
	} else if why != nil && noOld == nil {
		problem, more, _ := strings.Cut(why.Error(), "\n")
		problem += text.If(more != "", " (and more)")
		a.warn("the run keeps its previous inventory, because the file could not be read: %s; "+
			"correct %s and resume again, or use --hosts FILE",
			problem, text.Line(text.Path(run.Settings.InventoryFile)))
	}
	if err != nil {
		return nil, err
	}
	return inv, cmp.Or(a.loadSSH(&flags.options, reachableHosts(inv)), flags.findStandbys(inv))
}

// currentInventory reads the inventory file of a run. It returns nil if the run has no file that can
// be read again.
func currentInventory(run *rundir.Run) (inv *hosts.Inventory, warnings []string, err error) {
	file := run.Settings.InventoryFile
	switch {
	case file == "":
		return hosts.Local(), nil, nil
	case !filepath.IsAbs(file): // an older version created the run, and the directory is unknown
		return nil, nil, nil
	}
	file = text.Path(file)
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		// A pipe cannot be read twice.
		return nil, nil, fmt.Errorf("inventory file: %s is not a regular file", file)
	}
	return hosts.Load(file)
}

// reportInventoryChange reports what has changed in the inventory since the last dispatcher, beside
// what people asked for.
func (a *app) reportInventoryChange(run *rundir.Run, inv *hosts.Inventory, asked map[string]jobs.HostRequest) {
	had, err := a.storedInventory(run)
	if err != nil {
		a.warn("cannot tell what has changed in the inventory: %v", err)
		return
	}
	before, _ := had.With(asked, nil)
	now, _ := inv.With(asked, nil)
	if changes := hosts.Changes(before, now); changes != "" {
		from := "this machine alone"
		if inv.File != "" {
			from = text.Path(inv.File)
		}
		a.con.Line(text.Line("the inventory (" + from + ") has changed: " + changes))
	}
}

// storeInventory stores the inventory of this resume in the run, for later commands.
func (a *app) storeInventory(run *rundir.Run, inv *hosts.Inventory) {
	if text, _, err := run.Inventory(); err == nil && text == inv.Text {
		return
	}
	if err := run.KeepInventory(inv.Text); err != nil {
		a.warn("%v", err)
	}
}

// absentHosts describes each host that is not in the inventory although attempts may still run
// there. It names the attempts and the time after which their jobs run elsewhere: the default
// lost_after, and for attempts that may not have started also their lease, which --buffer extends.
func absentHosts(table *jobs.Table, hs []*hosts.Host, buffer time.Duration) []string {
	const maxNamed = 5 // attempts of a host
	attempts, waits := map[string][]string{}, map[string]time.Duration{}
	for i := range table.NumJobs() {
		if table.State(jobs.ID(i+1)) != jobs.Running {
			continue
		}
		j := table.Job(jobs.ID(i + 1))
		for _, a := range j.Open() {
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
	for name := range table.Instances { // their provider lists them
		delete(attempts, name)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(attempts)) {
		ids := attempts[name]
		what := "attempts "
		if len(ids) == 1 {
			what = "attempt "
		}
		is, instead := "is not in the inventory", "resume with an inventory that has it (--hosts FILE)"
		if table.Inventory[name].Removed {
			is, instead = "was removed from the run", "add it again (dcs-tui hosts add)"
		}
		lines = append(lines, fmt.Sprintf(
			"%s %s, and %s%s may still run there: unless the run directory shows that "+
				"the host is alive or how they end, their jobs run elsewhere in %s; to ask the host instead, %s",
			name, is, what, text.List(ids, maxNamed), text.Duration(waits[name]), instead,
		))
	}
	return lines
}

// removeStopFiles removes the files of an earlier stop, because a resumed run should continue, and
// a canceled one has stopped. It calls removed for each.
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

// resumedLine returns the first line of a resumed run without its name.
func resumedLine(owned *run.Owned, nRequests int) string {
	c := owned.Table.Counts
	msg := text.Plural(owned.Table.NumJobs()-owned.Table.Unfinished(), "job") + " done, " +
		strconv.Itoa(c[jobs.Running]) + " to adopt, " + strconv.Itoa(c[jobs.Queued]+owned.NumStored()) + " to run"
	if nRequests > 0 { // jobs that they requeue still count as done
		msg += ", " + text.Plural(nRequests, "request") + " to carry out"
	}
	return msg
}

// heldLines returns the commands that end what people asked for earlier and what keeps jobs from
// starting: a pause, and hosts that were drained or stopped. It includes the requests that the
// dispatcher is about to carry out.
func heldLines(run *rundir.Run, table *jobs.Table, waiting []*action.Request) (lines []string) {
	isPaused, held := table.Paused, map[string]bool{}
	for name, asked := range table.Hosts {
		held[name] = asked.Use != jobs.HostUsed
	}
	for _, q := range waiting {
		switch q.Do {
		case action.Pause, action.Continue:
			isPaused = q.Do == action.Pause
		case action.DrainHost, action.StopHost, action.UseHost:
			held[q.Host] = q.Do != action.UseHost
		}
	}
	ref := refTo(run)
	if isPaused {
		lines = append(lines, "launching is paused, as a person asked; dcs-tui continue "+ref+" ends the pause")
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		if held[name] {
			lines = append(lines, text.Line(name)+" starts no jobs, as a person asked; dcs-tui hosts use "+ref+" "+
				text.ShellWord(text.Line(name))+" uses it again")
		}
	}
	return lines
}

// findStandbys sets standbys to the hosts of --standby-on. A name in the inventory is that host;
// any other name is reached like those of --host.
func (f *runFlags) findStandbys(inv *hosts.Inventory) error {
	if f.StandbyOn == "" {
		return nil
	}
	named, _, err := hosts.ParseLoginList(strings.Split(f.StandbyOn, ","), "--standby-on")
	if err != nil {
		return err
	}
	for i, h := range named.Hosts {
		if known := inv.Find(h.Name); known != nil {
			named.Hosts[i] = known
		}
		if named.Hosts[i].Link == "local" {
			return text.Errorf("--standby-on %s is this machine; a standby dispatcher must run on another one",
				text.Line(h.Name))
		}
	}
	f.standbys = named.Hosts
	return nil
}

func (f *runFlags) checkStandby() error {
	switch {
	case f.standby && f.force:
		return text.Errorf("--standby and --force cannot be combined: --standby waits until the dispatcher dies")
	case f.background && !f.standby:
		return text.Errorf("--background needs --standby").
			WithAdvice("on a terminal, resume dispatches in the background anyway")
	}
	f.noTUI = f.noTUI || f.standby
	return nil
}

// checkJobLog drops --joblog if its directory does not exist on this machine, because a takeover
// would fail. The run directory has a job log anyway.
func (a *app) checkJobLog(flags *runFlags) {
	if flags.joblog == "" {
		return
	}
	if _, err := os.Stat(filepath.Dir(flags.joblog)); err != nil {
		a.warn("the job log of --joblog is not continued here: %v", err)
		flags.joblog = ""
	}
}

// standByInBackground starts this command line in the background, and returns when that process
// watches the dispatcher.
func (a *app) standByInBackground() error {
	process, dir, err := a.startBackground()
	if err == nil && dir == "" { // the process has reported why, if it could
		a.exitCode, _ = backgroundExitCode(process)
	}
	return err
}

// standBy waits until the run needs a dispatcher, and takes it over. If the run ends first, it
// returns nil and sets the exit code.
func (a *app) standBy(runDir *rundir.Run, flags *runFlags, inv *hosts.Inventory) (*run.Owned, error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	owned, err := run.StandBy(ctx, runDir, run.StandbyOptions{
		OtherMachine: flags.background, Notify: func(msg string) { a.con.Line(text.Line(msg)) },
		Warn: func(msg string) { a.warn("%s", msg) }, Hosts: inv.Hosts,
		Connector: func(log func(host, line string)) (hosts.Connector, error) {
			return a.connector(&flags.options, reachableHosts(inv), log)
		},
		OnWatching: func() {
			a.notifyStarter(runDir)
			a.starter = nil
		},
	})
	switch {
	case errors.Is(err, run.ErrOver):
		reader := journal.NewReader(runDir, journal.Follow(runDir).Packed())
		if _, err := reader.Poll(nil); err != nil {
			return nil, err
		}
		return nil, a.reportUndispatched(reader)
	case ctx.Err() != nil:
		a.con.Line("the standby ends; the run continues without it")
		a.exitCode = exitCanceled
		return nil, nil
	case err != nil:
		return nil, err
	}
	a.warnAll(owned.Warnings)
	return owned, nil
}
