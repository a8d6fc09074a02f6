package run

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/inbox"
	"dcs-tui/dispatch/publish"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/hosts/mirror"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
)

// Options configures Start. Only Inventory and Connector must be set.
type Options struct {
	Inventory *hosts.Inventory
	// PrepareInventory changes an inventory that was read again from its file, in the same way as
	// the caller has changed Inventory. It may be nil.
	PrepareInventory func(*hosts.Inventory)
	// Absolute path of the inventory file, which is read again when it changes; "": there is none.
	InventoryFile string
	// Connector makes the connector to the hosts. log receives the output of their helpers.
	Connector func(log func(host, line string)) (hosts.Connector, error)
	// Start sets Found, InstancePrefix, and, if it is 0, Seed.
	Policy sched.Config
	Env    []jobs.EnvVar
	// Hosts on one of which a standby dispatcher is kept; empty: no standby.
	Standby []*hosts.Host
	// Signal that is sent to jobs Policy.Warn before their time limit; 0: none.
	WarnSignal   int
	KeepChildren bool // leave processes alive that jobs left behind

	// Lines returns the next line of the input, or io.EOF after the last one. Any other error ends
	// the input. One goroutine calls it, which may stay blocked in it when the run ends. nil: the
	// run has no input.
	Lines func() (jobs.Line, error)
	Reply func(*Reply) // answers a line that is not a job; must not block
	Input rundir.Input // how far an earlier dispatcher has read the input
	// AcceptJobs lets Submit add jobs until CloseInput. Without AcceptJobs and Lines, the run ends
	// with the stored jobs.
	AcceptJobs bool
	Search     *Search // nil: no job depends on the results of others

	// EndOnly starts no jobs. With StopWhen, the jobs of waiting requests are left for the next
	// dispatcher. Without it, this is a cancel of the whole run, which cancels them, too.
	EndOnly bool
	// StopWhen is called after the stored jobs were submitted. The run stops when it returns, with
	// the returned reason. nil: the run ends with its last job.
	StopWhen func(ctx context.Context) (why string)

	Printer Printer // nil: messages are discarded
	JobLog  string  // path of another job log; "": only the one in the run directory

	// Signals returns the signals of the process. Start calls it when it begins to dispatch. nil:
	// signals are not handled.
	Signals          func() <-chan os.Signal
	InterruptCancels bool                     // the first Ctrl-C cancels instead of draining
	Interactive      bool                     // a person types on the terminal of this process
	Detach           func(*Run)               // continues without the terminal, which is gone
	ReportAbort      func(r *Run, why string) // reports an exit at the third Ctrl-C
	Exit             func()                   // exits at the third Ctrl-C

	Questions  *Questions // asks people on attached screens; nil: nobody is asked
	SocketBase string     // directory of the socket directories; "": the default
	NeedSocket bool       // fail if the socket cannot be created
	Program    string     // version of this program

	// PackFiles is the number of jobs from which on a run moves the small files of attempts into packs;
	// 0: it never does.
	PackFiles int
	// PackInterval is how often attempts to pack are looked for; 0: every 2 s. A shorter time is for tests, and
	// so is a number of attempts from which on launches wait for packs; 0: MaxUnpacked, or PackFiles if that is
	// more.
	PackInterval time.Duration
	MaxUnpacked  int

	// OnStart is called when the run is dispatched, before the first message is printed.
	OnStart func(*Run)
}

// Run is a run that this process dispatches. Its methods are safe for concurrent use,
// except Close, which is called once.
//
// Several goroutines use it. The signal handler never blocks. carryOutRequests carries out the
// requests of signals. The feeder submits jobs. The inbox receives requests. storeStatus writes to
// the run directory. The reporter prints, and only it waits for readers of that output.
type Run struct {
	opts           Options
	dir            *rundir.Run
	d              *dispatch.Dispatcher
	table          *jobs.Table // owned by the dispatcher until Close
	journal        *journal.Journal
	mirror         *mirror.Primary // mirror of the run directory for a standby
	filesUsed      atomic.Bool     // jobs get or return files of this machine
	printer        Printer
	began          time.Time
	earlierSeq     int64   // highest result number of earlier dispatchers
	numEarlierJobs jobs.ID // number of jobs that earlier dispatchers stored

	signals   *signalHandler
	inbox     *inbox.Inbox
	socket    *socket.Server // nil: commands cannot query the dispatcher
	publisher *publish.Publisher
	messages  *messages
	hostLogs  *hostLogs
	jobLogs   []*jobLog
	metrics   *metrics.Keeper // stores metrics of outputs that only their host has
	hostDirs  hostDirs
	inventory *Inventory
	instances *instances
	connector hosts.Connector
	searcher  *searcher // nil: there is no search
	acks      acks
	location  *rundir.Location
	snapshot  atomic.Pointer[dispatch.Snapshot] // newest snapshot
	slotTime  slotTime

	ctx      context.Context // ends when the run is over or is being closed
	cancel   context.CancelFunc
	over     chan struct{} // closed when the dispatcher and the journal are closed
	feeder   sync.WaitGroup
	reporter sync.WaitGroup
	tidiers  sync.WaitGroup // the inbox, which removes the requests that were carried out, and packFiles

	stored      []*jobs.Spec  // jobs that are submitted first
	storedDone  chan struct{} // closed when they have been submitted
	submitting  sync.Mutex
	closeInput  sync.Once
	inputClosed chan struct{}
	inputCtx    context.Context // ends when no more input is needed
	endInput    context.CancelFunc

	// The fields below are written by the feeder and then read by Close.
	input       rundir.Input
	inputErr    error
	inputUnread bool // not all jobs were read and submitted
	numRefused  int  // number of refused lines of the input

	isCanceled atomic.Bool // a person canceled the run
	isDeleted  atomic.Bool // the run directory was found deleted at the end
	// leavesFiles reports that the run has ended and its directory may have files for PackRest.
	leavesFiles bool
	isCopied    bool // the hosts know a later dispatcher than the run directory does
}

// Start begins to dispatch a run. If it returns no error, it owns o. Otherwise the caller must
// release o. The end of ctx ends the input and the waiting of the run, but not its jobs. To leave
// the run, call Close.
func Start(ctx context.Context, o *Owned, opts Options) (*Run, error) {
	r := &Run{
		opts:           opts,
		dir:            o.Run,
		table:          o.Table,
		stored:         o.stored,
		printer:        opts.Printer,
		location:       o.Run.Locate(),
		signals:        newSignalHandler(),
		messages:       newMessages(),
		hostLogs:       newHostLogs(o.Run),
		hostDirs:       hostDirs{run: o.Run},
		earlierSeq:     o.Table.Seq,
		numEarlierJobs: jobs.ID(o.numSpecs()),
		began:          time.Now(),
		over:           make(chan struct{}),
		input:          opts.Input,
		inputUnread:    true,
		storedDone:     make(chan struct{}),
		inputClosed:    make(chan struct{}),
	}
	if r.printer == nil {
		r.printer = noPrinter{}
	}
	r.slotTime.last = r.began
	r.signals.exit = opts.Exit
	if opts.ReportAbort != nil {
		r.signals.reportAbort = func(why string) { opts.ReportAbort(r, why) }
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.inputCtx, r.endInput = context.WithCancel(context.Background())
	if opts.Lines != nil || opts.AcceptJobs || opts.Search != nil && opts.Search.Proposer != nil {
		r.input.State = rundir.InputOpen
		if opts.Input.State != rundir.InputOpen {
			r.input.IsKeptOpen = opts.Lines == nil && opts.Search == nil
			if err := r.dir.WriteInput(r.input); err != nil {
				return nil, err
			}
		}
	}
	r.journal = o.journal
	stored := inbox.FindStored(o.Table, o.stored)
	var found action.Target
	if len(o.stored) == 0 && !opts.AcceptJobs && opts.Lines == nil {
		found, _ = o.Run.UndispatchedTarget(o.Table) // after an error, every request is carried out
	}
	_ = o.Run.MakeRequestsDir() // an error has no effect: clients create it, too
	if err := r.openJobLogs(); err != nil {
		return nil, err
	}
	r.inventory = newInventory(o.Run, &opts, o.Table, r.printWarning,
		func(text string) { r.d.Do(sched.Log{Text: text}) })
	r.instances = newInstances(r)
	if opts.Search != nil {
		r.searcher = newSearcher(r, o, opts.Search)
	}
	cfg, err := r.config(o)
	if err != nil {
		return nil, err
	}
	if err := r.ownMirror(ctx); err != nil {
		return nil, err
	}
	if err := r.listen(); err != nil {
		return nil, err
	}
	if opts.Signals != nil {
		go r.signals.listen(opts.Signals(), interrupts{cancelFirst: opts.InterruptCancels})
	}
	earlier := o.resultsOnHosts(r.inventory.Hosts()) // Start takes the table
	if r.d, err = dispatch.Start(cfg); err != nil {
		r.closeSocket()
		return nil, err
	}
	close(r.instances.started)
	r.inbox = r.newInbox(stored, found)
	r.acks.d, r.metrics = r.d, newMetricsKeeper(o.Run, r.d)
	for i := range earlier {
		r.metrics.Add(&earlier[i])
	}
	r.publish()
	r.announce()
	r.begin()
	return r, nil
}

// config makes the configuration of the dispatcher.
func (r *Run) config(o *Owned) (cfg dispatch.Config, err error) {
	opts, settings := &r.opts, r.dir.Settings
	connector, err := opts.Connector(r.hostLogs.Write)
	if err != nil {
		return cfg, err
	}
	policy := opts.Policy
	if policy.Seed == 0 {
		policy.Seed = uint64(time.Now().UnixNano())
	}
	policy.InstancePrefix = r.instances.prefix
	r.connector, r.instances.connector = connector, storingConnector{connector, &r.hostDirs}
	r.mirror = r.newMirror()
	if policy.Found, err = o.foundAttempts(r.printWarning); err != nil {
		return cfg, err
	}
	sent, err := r.filesOfRun(o)
	if err != nil {
		return cfg, err
	}
	mirrored, err := mirror.Continues(r.dir)
	if err != nil {
		return cfg, err
	}
	cwd := settings.Cwd
	r.filesUsed.Store(sent.IsUsed)
	if sent.IsUsed {
		cwd = "" // it need not exist on hosts
	}
	owned := mirroredJournal{r.journal, r.mirror}
	r.instances.fenced = owned.Fenced
	cfg = dispatch.Config{
		Files:  sent,
		RunUID: r.dir.UID(), RunName: r.dir.Name(), RunDir: r.dir.Dir, Created: jobs.StampOf(settings.Created),
		Sched: policy, Inspect: o.inspect, IsDeleted: r.location.Deleted, Inventory: opts.Inventory,
		Connector: r.instances.connector, Provide: r.instances.carryOut, Journal: owned, Table: o.Table,
		StoreSpecs: r.checkFiles(o.storeSpecs()),
		Open: hosts.Open{
			Version:      hosts.ProtocolVersion,
			Run:          r.dir.UID(),
			RunName:      r.dir.Name(),
			RunDir:       r.dir.Dir,
			Mirrored:     mirrored,
			Nonce:        r.dir.Nonce,
			Cwd:          cwd,
			Sends:        len(settings.Send) > 0,
			KeepFiles:    settings.KeepFiles,
			Shell:        settings.Shell,
			Setup:        settings.Setup,
			Env:          opts.Env,
			Signal:       opts.WarnSignal,
			WarnBefore:   policy.WarnTime,
			KeepChildren: opts.KeepChildren,
			Buffer:       policy.Buffer,
			ShareWeight:  policy.RunShare,
			Epoch:        o.Table.Epoch,
		},
		PackFiles: opts.PackFiles, MaxUnpacked: cmp.Or(opts.MaxUnpacked, max(MaxUnpacked, opts.PackFiles)),
		HostDirs: r.dir.HostDirs(), Notify: r.messages.notice, OnInventoryRequest: r.inventory.HandleRequest,
		RereadInventory: r.inventory.Reread,
	}
	if r.searcher != nil {
		cfg.OnResults, cfg.OnReport = r.searcher.HandleResults, r.searcher.HandleReport
	}
	return cfg, nil
}

// newInbox returns the inbox of requests.
func (r *Run) newInbox(stored map[string]inbox.Stored, found action.Target) *inbox.Inbox {
	return inbox.New(inbox.Options{
		Run: r.dir, Dispatcher: r.d, Stored: stored, Found: found, Print: r.printLater, Inventory: r.inventory,
		IsCanceled: r.isCanceled.Load, OnContinue: r.DrainEnded, DrainText: r.drainText,
		Cancel: func() {
			r.isCanceled.Store(true)
			r.endInput()
		},
		LeavesSubmits: func() bool { return r.opts.EndOnly && r.opts.StopWhen != nil },
		EndInput: func() {
			r.CloseInput()
			if r.opts.Lines == nil { // otherwise there may be more to read
				_ = r.dir.WriteInput(rundir.Input{State: rundir.InputDone}) // the feeder retries
			}
		},
		MakeDirsAbsolute: func(specs []*jobs.Spec) {
			paths := jobs.AbsoluteCwd{Base: r.dir.Settings.Cwd}
			for _, spec := range specs {
				paths.Resolve(spec)
			}
		},
	})
}

// begin starts the goroutines of the run.
func (r *Run) begin() {
	if r.opts.EndOnly {
		r.d.Do(sched.Hold{By: sched.HoldRequests, On: true})
	}
	r.feeder.Go(func() { r.feed(r.ctx) })
	go r.carryOutRequests()
	r.tidiers.Go(func() { r.inbox.Serve(r.over) })
	go r.storeStatus()
	r.tidiers.Go(r.packFiles)
	go r.inventory.serve(r.over, func(inv *hosts.Inventory) error {
		if slices.ContainsFunc(inv.Hosts, sendsFiles) {
			r.refuseMirror()
		}
		r.instances.addProviders(inv.Providers)
		return r.d.SetInventory(context.Background(), inv)
	})
	// The run may end before all jobs are submitted. In that case the feeder must end, too.
	go func() {
		select {
		case <-r.d.Finished():
			r.cancel()
		case <-r.ctx.Done():
		}
	}()
	if !r.opts.EndOnly {
		go (&standbys{run: r, heartbeats: map[string]lastHeartbeat{}, warned: map[string]bool{}}).serve()
	}
	if r.opts.OnStart != nil {
		r.opts.OnStart(r)
	}
	r.reporter.Go(r.report)
}

// WithTimeout runs f, which may hang, and reports whether it has returned. Until a person requests
// a stop, it waits forever. After that, it waits at most WriteTimeout.
func (r *Run) WithTimeout(f func()) bool { return r.signals.withTimeout(WriteTimeout, nil, f) }

// Stopping returns a channel that is closed when a person has requested a stop.
func (r *Run) Stopping() <-chan struct{} { return r.signals.stopping }

// Dir returns the run directory.
func (r *Run) Dir() *rundir.Run { return r.dir }

// Do carries out a request of this program. source is a word for its origin, such as "signal".
func (r *Run) Do(source string, q *action.Request) { r.inbox.Ask(source, q) }

// DrainEnded removes the causes of a drain that a person has ended: it removes the file STOP, and
// makes the next Ctrl-C drain again.
func (r *Run) DrainEnded() {
	r.signals.drainAgain.Store(true)
	if err := r.dir.Disk.Remove(r.dir.Path(rundir.StopFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.printText("the file " + rundir.StopFile + " cannot be removed: " + err.Error())
	}
}

// carryOutRequests carries out the requests that the signal handler has received.
func (r *Run) carryOutRequests() {
	for {
		select {
		case <-r.over:
			return
		case q := <-r.signals.requests:
			r.carryOut(q)
		}
	}
}

// carryOut carries out what a signal requests.
func (r *Run) carryOut(q request) {
	switch q.action {
	case actDrain:
		r.Do("signal", &action.Request{Do: action.DrainRun, Why: q.why})
	case actStop:
		r.Do("signal", &action.Request{Do: action.StopRun, Why: q.why})
	case actCancel:
		r.Do("signal", &action.Request{Do: action.Cancel, All: true, Why: q.why})
	case actDetach:
		if r.opts.Detach != nil {
			r.opts.Detach(r)
		}
	}
}

// drainText describes what a drain waits for. The dispatcher itself reports that it drains.
func (r *Run) drainText() string {
	snap := r.d.Snapshot()
	switch {
	case snap == nil:
		return "" // it is over
	case snap.Deleted:
		return "the run directory was deleted: dispatching stops, running jobs continue"
	case snap.Problem != "":
		return "waiting to record what has happened: " + snap.Problem +
			"; repeated Ctrl-C exits at once, resume continues the run"
	}
	running := 0
	for _, h := range snap.Hosts {
		running += h.Running
	}
	running = min(running, snap.Counts[jobs.Running])
	if running == 0 {
		running = snap.Counts[jobs.Running] // jobs sent to a host may have started by now
	}
	switch {
	case running == 0:
		return "no job is running"
	case !r.opts.Interactive:
		return "waiting for " + text.Plural(running, "running job")
	case running == 1:
		return "waiting for 1 running job; Ctrl-C again stops dispatching and leaves it running"
	default:
		return "waiting for " + text.Plural(running, "running job") +
			"; Ctrl-C again stops dispatching and leaves them running"
	}
}

// statusCheckInterval is the interval at which storeStatus checks for changes.
const statusCheckInterval = time.Second

// storeStatus stores data in the run directory that the journal does not contain. This is the
// reason why the dispatcher launches nothing, or the problem of the inventory file, in the owner
// file; and the directories of hosts. Only this goroutine waits for these files.
func (r *Run) storeStatus() {
	every := time.NewTicker(statusCheckInterval)
	defer every.Stop()
	stored := ""
	for {
		select {
		case <-r.over:
			return
		case <-r.d.Finished():
			return
		case <-every.C:
		}
		last := r.snapshot.Load()
		if last == nil {
			continue
		}
		r.hostDirs.retry(last.Hosts)
		if problem := cmp.Or(last.Problem, r.inventory.Problem()); problem != stored &&
			r.journal.SetProblem(problem) == nil {
			stored = problem
		}
	}
}
