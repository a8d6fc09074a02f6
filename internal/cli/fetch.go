package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

func (a *app) fetchCmd() *cobra.Command {
	var sel selection
	var o options
	var inventory string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fetch [flags] [RUN] [JOBS...]",
		Short: "Copy outputs from hosts into the run directory",
		Long: `Copy the outputs and exit statuses of attempts into the run directory from hosts that do not see that
directory. JOBS are numbers and ranges, such as 3 9-17; by default all finished attempts are copied. The
same command continues an interrupted fetch. ` + runHelp,
		Example: `dcs-tui fetch
dcs-tui fetch sweep-20260314-1502 --where 'host=ws*' --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runFetch(cmd, args, &sel, &o, inventory, asJSON)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&sel.failed, "failed", false, "only jobs that failed or timed out")
	sel.addWhereFlag(fs)
	endGroup(fs, titleWhich)
	fs.StringVar(&inventory, "hosts", "",
		"inventory `FILE` with the addresses of the hosts (default: as the run read it)")
	addSSHFlags(fs, &o.SSHConfig, &o.AcceptNew)
	endGroup(fs, titleHosts)
	fs.BoolVar(&asJSON, "json", false, "print what was copied as one JSON object on stdout")
	endGroup(fs, titleOutput)
	return cmd
}

// fetchRun splits the arguments into RUN and JOBS. JOBS without RUN are jobs of the newest run.
func fetchRun(args []string) (run, named []string) {
	if len(args) == 0 {
		return nil, nil
	}
	if isOnlyJobs(args[0]) {
		return nil, args
	}
	return args[:1], args[1:]
}

func (a *app) runFetch(cmd *cobra.Command, args []string, sel *selection, o *options, inventory string,
	asJSON bool) error {
	which, named := fetchRun(args)
	if err := sel.parseNamed(named); err != nil {
		return err
	}
	state, err := a.openState(which)
	if err != nil {
		return err
	}
	ids, err := a.selectJobs(cmd.Context(), state.Run, state.Table, sel,
		func(jobs.JobState) bool { return true })
	if err != nil {
		return err
	}
	at := metrics.Locations(state.Run)
	plan := files.PlanFetch(state.Table, ids, func(host string) bool { return at.HostDirs[host] != "" }, at.Here)
	got := &fetchJSON{runJSON: runJSONOf(state.Run), Here: plan.Here, Open: plan.Open, Hosts: []fetchHostJSON{}}
	if len(ids) == 0 {
		got.none = sel.whyEmpty(state.Table)
	}
	got.V = fetchJSONVersion
	got.dirs = at.HostDirs
	if len(at.HostDirs) > 0 {
		files.SweepFetched(state.Run)
	}
	b := &files.Fetcher{Run: state.Run}
	packs, err := packsFiles(state.Run, state.Table)
	if err != nil {
		return err
	}
	if packs {
		b.Packs = run.HasOutcome(state.Table)
	}
	if plan.Attempts() > 0 {
		if err := restoreFlags(cmd.Flags(), state.Run.Settings.Options); err != nil {
			return err
		}
		reader, err := a.outputsReader(state.Run, o, inventory, plan.Names()...)
		if err != nil {
			return err
		}
		defer reader.Close()
		b.Read = reader.Read
	}
	if plan.Attempts() > 0 || packs && len(plan.Copied) > 0 {
		a.copyOutputs(cmd.Context(), b, plan, got)
	}
	if got.Left > 0 || got.Error != "" {
		a.exitCode = exitFailed
	}
	if got.Interrupted {
		a.exitCode = exitCanceled
	}
	if !asJSON {
		a.con.Line(got.lines(state.Run)...)
		return nil
	}
	if err := a.printJSON(got); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}

// packsFiles reports whether the run is so large that the files of its attempts are packed.
func packsFiles(run *rundir.Run, table *jobs.Table) (bool, error) {
	var least int
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	addPackFlag(fs, &least)
	err := restoreFlags(fs, run.Settings.Options)
	return least > 0 && table.NumJobs() >= least, err
}

// outputsReader returns a reader of outputs on these hosts. The inventory is file or, if that is
// "", the inventory of the run.
func (a *app) outputsReader(run *rundir.Run, o *options, file string, names ...string) (*files.Reader, error) {
	inv, err := a.inventoryOf(run, file)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(inv.Hosts),
		func(h *hosts.Host) bool { return !slices.Contains(names, h.Name) })
	connector, err := a.connector(o, list, func(string, string) {})
	if err != nil {
		return nil, err
	}
	return files.NewReader(connector, run.UID(), list), nil
}

// copyOutputs carries a plan out, with a progress line, until it is done or interrupted. What was
// copied before an interrupt stays; a later fetch removes partial files.
func (a *app) copyOutputs(ctx context.Context, b *files.Fetcher, plan *files.FetchPlan, got *fetchJSON) {
	ctx, stop := cancelOnSignal(ctx, a.catchSignals(), func() { os.Exit(exitCanceled) })
	var progress sync.WaitGroup
	done := make(chan struct{})
	progress.Go(func() {
		every := time.NewTicker(500 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				n, _, bytes := b.Done()
				a.con.Status(fmt.Sprintf("%d of %s copied, %s", n, text.Plural(plan.Attempts(), "output"),
					text.Size(bytes)))
			case <-done:
				return
			}
		}
	})
	list, err := b.Fetch(ctx, plan)
	close(done)
	progress.Wait() // otherwise a progress line could follow the last line
	if ctx.Err() != nil {
		err = ctx.Err() // not its cause, the signal
	}
	stop()
	got.add(list, err)
	_, got.Files, got.Bytes = b.Done()
	a.con.Status("")
}

// fetchJSONVersion is the version of fetchJSON. In version 1 Fetched had another name.
const fetchJSONVersion = 2

// fetchJSON is the output of fetch --json.
type fetchJSON struct {
	runJSON
	Fetched     int             `json:"fetched"` // number of attempts that were copied
	Here        int             `json:"here"`    // number of attempts that were here before
	Left        int             `json:"left"`    // number of attempts that were not copied completely
	Open        int             `json:"open"`    // number of attempts that may still run
	Files       int             `json:"files"`
	Bytes       int64           `json:"bytes"`
	Hosts       []fetchHostJSON `json:"hosts"`
	Error       string          `json:"error,omitempty"` // of the run directory
	Interrupted bool            `json:"interrupted"`

	none     string            // why no job is selected; "": jobs are
	dirs     map[string]string // where hosts keep the files, as HOST:DIRECTORY
	mayRetry bool              // the same command may copy what is left
}

type fetchHostJSON struct {
	Host    string `json:"host"`
	Fetched int    `json:"fetched"`
	Left    int    `json:"left"`
	Removed int    `json:"removed"` // number of outputs that the host does not have any more
	// The attempts of these outputs, and the directory on the host that has none of them.
	Missing []jobs.AttemptID `json:"missing,omitempty"`
	Dir     string           `json:"dir,omitempty"`
	Error   string           `json:"error,omitempty"` // the first reason for which something is left
	// The attempts that could not be copied although the host answers.
	Failed []failedFetchJSON `json:"failed,omitempty"`

	unread string // why nothing more could be read from the host; "": it could
}

type failedFetchJSON struct {
	Attempt jobs.AttemptID `json:"attempt"`
	Error   string         `json:"error"`
}

// add adds the results of hosts. err is an error of the run directory or of an interrupt.
func (f *fetchJSON) add(list []files.HostResult, err error) {
	for _, h := range list {
		is := fetchHostJSON{Host: h.Host, Fetched: h.NumFetched, Left: h.NumIncomplete, Removed: h.NumMissing}
		if h.NumMissing > 0 {
			is.Missing, is.Dir = h.Missing, filepath.Join(f.dirs[h.Host], rundir.AttemptsDir)
		}
		if h.Err != nil {
			is.unread = h.Err.Error()
			is.Error = is.unread
			f.mayRetry = f.mayRetry || !hosts.ClassOf(h.Err).Permanent()
		}
		for _, failed := range h.Failed {
			is.Failed = append(is.Failed, failedFetchJSON{failed.Attempt, failed.Err.Error()})
			is.Error = cmp.Or(is.Error, failed.Err.Error())
			f.mayRetry = true
		}
		f.Hosts = append(f.Hosts, is)
		f.Fetched += h.NumFetched
		f.Here += h.NumUnchanged
		f.Left += h.NumIncomplete
	}
	f.Interrupted = errors.Is(err, context.Canceled)
	if err != nil && !f.Interrupted {
		f.Error = err.Error()
	}
}

// lines returns the result as text, and what to type next.
func (f *fetchJSON) lines(run *rundir.Run) (lines []string) {
	ref := refTo(run)
	dir := dirOf(run)
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	removed := slices.ContainsFunc(f.Hosts, func(h fetchHostJSON) bool { return h.Removed > 0 })
	switch {
	case f.Fetched > 0:
		say("outputs of %s copied into %s: %s, %s", text.Plural(f.Fetched, "attempt"), dir,
			text.Plural(f.Files, "file"), text.Size(f.Bytes))
	case f.none != "":
		say("nothing to copy: %s", f.none)
	case f.Left == 0 && f.Here == 0 && !removed:
		say("nothing to copy: no attempt of these jobs is over and has printed anything")
	case f.Left == 0 && !removed:
		say("nothing to copy: what these jobs printed is in %s", dir)
	default:
		say("nothing was copied")
	}
	if f.Here > 0 && f.Fetched+f.Left > 0 {
		say("outputs of %s were already here", text.Plural(f.Here, "attempt"))
	}
	if f.Open > 0 {
		say("%s may still run: fetch again when they are over", text.Plural(f.Open, "attempt"))
	}
	for _, h := range f.Hosts {
		if h.Removed > 0 {
			say("%s does not have %s of %s any more: looked in %s", text.Line(h.Host),
				text.Plural(h.Removed, "output"), listAttempts(h.Missing), text.Line(h.Dir))
		}
		reason := func(err string) string { return text.Line(text.WithoutSubject(err, h.Host)) }
		for i, failed := range h.Failed {
			if i == maxFailedFetches {
				say("outputs of %s were not copied from %s, either: --json has the reasons",
					text.Plural(len(h.Failed)-i, "more attempt"), text.Line(h.Host))
				break
			}
			say("outputs of %s were not copied from %s: %s", failed.Attempt, text.Line(h.Host), reason(failed.Error))
		}
		if untried := h.Left - len(h.Failed); untried > 0 && h.unread != "" {
			say("outputs of %s were not copied from %s: %s", text.Plural(untried, "attempt"), text.Line(h.Host),
				reason(h.unread))
		}
	}
	switch {
	case f.Error != "":
		say("%s", text.Line(f.Error))
		say("free some space, then: dcs-tui fetch %s", ref)
	case f.Interrupted:
		say("interrupted: dcs-tui fetch %s continues", ref)
	case f.Left > 0 && f.mayRetry:
		say("dcs-tui fetch %s copies what is left", ref)
	}
	if f.Fetched > 0 {
		say("dcs-tui results %s and dcs-tui logs %s JOB show them", ref, ref)
	}
	return lines
}

// maxFailedFetches is the number of attempts of a host whose reasons are printed.
const maxFailedFetches = 5

// listAttempts lists the first attempts of a list.
func listAttempts(ids []jobs.AttemptID) string {
	const most = 5
	names := text.Each(ids[:min(len(ids), most)], jobs.AttemptID.String)
	if more := len(ids) - most; more > 0 {
		return strings.Join(names, ", ") + " and " + text.Plural(more, "more attempt")
	}
	return strings.Join(names, ", ")
}

// remoteOutputs reads pieces of outputs on their hosts. It connects to a host when it first reads
// there, with the settings of the run.
type remoteOutputs struct {
	app *app
	run *rundir.Run

	mu      sync.Mutex
	readers map[string]*files.Reader // by host
}

func (f *remoteOutputs) read(ctx context.Context, host string, r runview.Read) ([]byte, int64, error) {
	reader, err := f.reader(host)
	if err != nil {
		return nil, 0, err
	}
	// Read has deadlines of its own. ctx may not leave enough time for a connection.
	return reader.Read(context.WithoutCancel(ctx), host, hosts.Read{Attempt: r.Attempt, File: r.File,
		Offset: r.Offset, Limit: r.Limit})
}

func (f *remoteOutputs) reader(host string) (*files.Reader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.readers[host]; r != nil {
		return r, nil
	}
	var o options
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	addSSHFlags(fs, &o.SSHConfig, &o.AcceptNew)
	if err := restoreFlags(fs, f.run.Settings.Options); err != nil {
		return nil, err
	}
	r, err := f.app.outputsReader(f.run, &o, "", host)
	if err != nil {
		return nil, err
	}
	jobs.Insert(&f.readers, host, r)
	return r, nil
}

func (f *remoteOutputs) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.readers {
		r.Close()
	}
}
