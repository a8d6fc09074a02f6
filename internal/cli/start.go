package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/inbox"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/places"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// owned is a run that this process may write to.
type owned struct {
	run     *rundir.Run
	journal *journal.Journal
	table   *jobs.Table
	waiting []*jobs.Spec // stored, but not yet part of the run
}

// own takes the run over. A run that another dispatcher owns is refused with the
// owner's name.
func (a *app) own(run *rundir.Run, force bool) (*owned, error) {
	j, table, report, err := journal.Take(context.Background(), run, journal.TakeOptions{
		Force: force, Notify: func(text string) { a.con.Line(console.CleanLine(text)) },
	})
	var taken *journal.OwnedError
	if errors.As(err, &taken) {
		return nil, inUse(run, taken.Owner)
	}
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	for _, w := range report.Warnings {
		a.warn("%s", w)
	}
	if report.More > 0 {
		a.warn("and %d further warnings about the journal", report.More)
	}
	o := &owned{run: run, journal: j, table: table}
	if j.Epoch() == 1 { // a later dispatcher accepts the stored jobs at its start
		o.waiting = append(o.waiting, table.Specs[len(table.Jobs):]...)
		table.Specs = table.Specs[:len(table.Jobs):len(table.Jobs)]
	}
	return o, nil
}

func ownerText(o *journal.Owner) string {
	if o == nil {
		return "another dcs-tui that is just starting"
	}
	return o.String()
}

// storeSpecs stores jobs that jobs.jsonl does not hold yet.
func (o *owned) storeSpecs(stored int) func([]*jobs.Spec) error {
	return func(specs []*jobs.Spec) error {
		for len(specs) > 0 && int(specs[0].ID) <= stored {
			specs = specs[1:]
		}
		if err := o.run.AppendSpecs(specs); err != nil {
			return err
		}
		stored += len(specs)
		return nil
	}
}

// start begins to dispatch and returns the session to drive.
func (a *app) start(o *owned, f *runFlags, inv *loadedInventory, env []jobs.EnvVar) (*session, error) {
	asked := o.run.Asked
	s := &session{app: a, con: a.con, run: o.run, located: o.run.Locate(), flags: f, table: o.table, journal: o.journal, waiting: o.waiting,
		guard: newGuard(), sayings: make(chan func() string, 16), notices: newNoticeQueue(), words: map[string]standing.HostWord{}, logs: newHostLogs(o.run), earlier: o.table.Seq, began: time.Now()}
	s.guard.last = s.leftAtOnce
	stored := inbox.FindStored(o.table, o.waiting)
	_ = o.run.MakeRequestsDir() // or whoever has a request makes it; it may only be seen later
	s.used.last = s.began
	s.places.Run = o.run
	s.input, s.endInput = context.WithCancel(context.Background())
	connector, err := a.connector(&f.options, inv.Hosts, s.logs.Write)
	if err != nil {
		return nil, err
	}
	for _, file := range []string{o.run.Path(rundir.JobLogFile), f.joblog} {
		if file == "" {
			continue
		}
		l, err := openJobLog(file, o.run, o.table)
		if err != nil && file == f.joblog {
			return nil, exit.Usagef("%w", err)
		}
		s.joblogs = append(s.joblogs, l)
	}
	// Room for a million jobs at once, not by doubling and copying.
	o.table.Jobs = slices.Grow(o.table.Jobs, len(o.waiting))
	o.table.Specs = slices.Grow(o.table.Specs, len(o.waiting))
	policy := f.schedConfig()
	if policy.Found, err = o.found(); err != nil {
		a.warn("not all of the run's claims and sentinels could be read: %v", err)
	}
	cfg := dispatch.Config{
		RunUID: o.run.UID(), RunName: o.run.Name(), RunDir: o.run.Dir, Created: jobs.StampOf(asked.Created),
		Sched: policy, Look: o.look, Deleted: s.located.Deleted, Hosts: inv.Hosts, Connector: places.Connector{Connector: connector, Known: &s.places}, Journal: o.journal, Table: o.table,
		StoreSpecs: o.storeSpecs(len(o.table.Specs) + len(o.waiting)),
		Open: hosts.Open{
			Version: hosts.ProtocolVersion, Run: o.run.UID(), RunName: o.run.Name(), RunDir: o.run.Dir,
			Nonce: o.run.Nonce, Cwd: asked.Cwd, Shell: asked.Shell, Setup: asked.Setup, Env: env,
			KeepChildren: f.KeepChildren, Buffer: f.Buffer, Epoch: o.table.Epoch,
		},
		HostDirs: places.Read(o.run), Notify: s.notices.put,
	}
	if err := s.listenControl(inv.File); err != nil {
		return nil, err
	}
	a.listen()
	go s.guard.listen(a.signals, interrupts{cancel: f.OnInterrupt == "cancel"})
	earlier := onHosts(inv.Hosts, o) // which is the dispatcher's from now on
	if s.d, err = dispatch.Start(cfg); err != nil {
		s.closeControl()
		return nil, exit.Usagef("%w", err)
	}
	s.inbox = s.newInbox(stored)
	s.ack.d, s.figures = s.d, figureKeeper(o.run, s.d)
	for i := range earlier {
		s.figures.Add(&earlier[i])
	}
	if f.json || f.output {
		s.out = newResultPrinter(a, f.json, s.d, s.guard.hurry)
	}
	s.showControl()
	a.begun(o.run)
	return s, nil
}

// newInbox makes what takes in what people ask for.
func (s *session) newInbox(stored map[string]inbox.Stored) *inbox.Inbox {
	return inbox.New(inbox.Options{
		Run: s.run, Dispatcher: s.d, Stored: stored, Say: s.say,
		Canceled: s.cancelled.Load, Continued: s.continued, DrainText: s.drainText,
		Cancel: func() {
			s.cancelled.Store(true)
			s.endInput()
		},
		EndsOnly: func() bool { return s.endsOnly },
		Place: func(specs []*jobs.Spec) {
			relative := cwdResolver{cwd: s.run.Asked.Cwd}
			for _, spec := range specs {
				relative.resolve(spec)
			}
		},
	})
}

// schedConfig hands the choices of the run to the core.
func (f *runFlags) schedConfig() sched.Config {
	c := sched.Config{
		Seed: f.seed, Tries: f.Tries, RetryDelay: f.RetryDelay, Timeout: f.Timeout, RetryTimeouts: f.RetryTimeouts,
		MaxSlots: f.MaxSlots, Buffer: f.Buffer, GiveUp: f.GiveUp, HalfLife: f.HalfLife,
	}
	if f.OnLost == "wait" {
		c.OnLost = jobs.OnLostWait
	}
	c.HaltFailures, c.HaltPercent, _ = parseHalt(f.Halt) // was checked when the flag was read
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	return c
}
