package sched

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"dcs-tui/dispatch/sched/after"
	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/dispatch/sched/fairshare"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/dispatch/sched/hardness"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Config holds the choices of a run that the core needs.
type Config struct {
	Seed    uint64        // seed of the jitter
	Tries   int           // default number of attempts per job; 0: 3
	Timeout time.Duration // default timeout of a job; 0: none
	// Delay before a retry on the same host; nil: by run time (retry.go).
	RetryDelay    *time.Duration
	RetryTimeouts bool // a timeout is not final
	// Reports whether an outcome is final, so that its job is not retried; nil: see RetryTimeouts.
	IsFinal func(*jobs.Outcome) bool
	// Time from the warning signal to the end of a job that its host causes; 0: no signal.
	WarnTime time.Duration
	// Failures on hosts that turn out to be bad do not count even if a job has a single try.
	ForgiveHosts bool
	MaxPostpone  int // how often exit code 75 uses up no try (retry.go)
	// Factor for a job's timeout after each failure; up to 1: it stays.
	TimeoutGrowth float64
	MemGrowth     float64     // the same for its memory
	OnLost        jobs.OnLost // default for jobs; zero value: requeue
	// Maximum number of busy slots over all hosts; 0: no limit.
	MaxSlots int
	Tokens   []jobs.Token // of the command line, instead of those of the inventory (reserve.go)
	// How long hosts must stay busy without this dispatcher; 0: less than 1 s.
	Buffer time.Duration
	Halt   halt.Rule // when to drain because of results
	// Maximum number of live attempts of a job (copies.go); 0 or 1: no copies.
	Copies int
	CopyAt CopyAt // when a job that is no straggler is copied
	CopyOn CopyOn // which hosts may run a copy
	// A job is a straggler from this multiple of its expected run time and from this age on; 0: as its
	// host has it, else 2, 5 s.
	StragglerFactor float64
	StragglerAge    time.Duration
	LaunchDelay     time.Duration // minimum time between two launches; 0: none
	MaxLaunches     int           // maximum number of launches of a Step (place.go); 0: 1,000
	// Finish when nothing was possible for this long (see isAnythingPossible); 0: 10 min.
	GiveUpAfter time.Duration
	// Attempts found in the run directory; used only after damage to the journal.
	Found    []Found
	HalfLife time.Duration // half-life of fair-share usage; 0: 1 h
	// How the next queue is chosen among those of the same priority.
	QueuePolicy fairshare.Policy
	// Weight of the run on shared hosts; 0: their slots are not shared.
	RunShare   int
	MaxBackoff time.Duration // maximum delay between connection attempts; 0: 1 min

	// Prefix of the names of the run's instances, without the dash; see hosts.InstancePrefix.
	InstancePrefix string
}

// Core is the state machine. It is not safe for concurrent use: one goroutine owns it and its
// table. Its parts are declared in the files of the policies that use them.
type Core struct {
	cfg   Config
	table *jobs.Table
	rows  jobs.RowReader // of peek
	rng   *rand.Rand
	fleet
	hostInputs
	// Machines with open or lost attempts that cannot be queried (hostset.go).
	absent []*host
	byName map[string]*host // those in hosts

	attempts
	queue queue
	pools
	hardness     *hardness.Index
	dependencies *after.Index
	requests     []*pendingRequest // not completed yet
	allQueues                      // queuestats.go
	results      blame.Results
	kinds        blame.KindIndex
	stragglers        // straggler.go
	hybrid       bool // local slots take the shortest job first (hybrid.go)
	etaCache     etaCache
	deadlines    deadlines
	provisions   provisions // provide.go
	claims       claims     // claims.go
	shares       *fairshare.Shares
	reconciling
	lifetime
	surplusSearch // buffer.go
	step

	requestsDelayed bool          // see DelayRequests
	launchAfter     time.Duration // when the next job may be launched, for Config.LaunchDelay
	// The first result number that this dispatcher may give; 0: any (reconcile.go).
	firstSeq        int64
	stallReportedAt time.Duration // 0: never
	// The time until which jobs that no host can run wait, because the set of hosts has changed. 0:
	// they do not wait.
	failUnsatisfiableAt time.Duration

	// Defects counts records that did not fit the table. A number other than 0 is a bug of this
	// package.
	Defects int
}

// step is the input of the current Step, and what it gathers.
type step struct {
	now         Time
	records     []jobs.Record
	finish      []Command
	inspections []Command  // Inspect
	leaves      []Command  // Leave
	rereads     []Command  // RereadInventory, at most one
	ended       []endedJob // jobs that became terminal, whose dependents were not handled yet
	cause       string     // name of the request that causes the records; "": none
	numLaunched int        // number of launches
	submitted   []jobs.ID  // launched from the queue, with CopyAtSubmit
	deferring   bool       // emit adds queued jobs to deferred instead of enqueuing them
	deferred    []jobs.ID
}

// New returns a core for a folded table. The fate of open attempts in the table is unknown until
// their hosts have been probed: recovery is the normal start. The first Step, whatever its event,
// connects to all hosts.
//
// A resumed run gets Submit{Last: true} like any other run, without jobs if there are no new ones.
// Until then the core waits for more jobs.
func New(cfg Config, t *jobs.Table, inv *hosts.Inventory) *Core {
	hs, _ := inv.With(t.Inventory, nil) // the first Step reports the errors
	c := &Core{
		cfg: cfg, table: t,
		rng:        rand.New(rand.NewPCG(cfg.Seed, 0x64637374)),
		hostInputs: hostInputs{inventory: inv},
		byName:     make(map[string]*host, len(hs)),
		attempts: attempts{
			inFlight:     make(map[jobs.AttemptID]*inFlight),
			orphaned:     make(map[jobs.AttemptID]bool),
			orphanCharge: make(map[jobs.AttemptID]float64),
			toKill:       make(map[jobs.AttemptID]bool),
			stillRunning: make(map[jobs.AttemptID]bool),
		},
		queue: queue{
			classes:       make(map[classKey]*class),
			fits:          make(map[needs]*fits),
			timerAt:       make(map[jobs.ID]time.Duration),
			avoidanceOver: make(map[jobs.ID]bool),
			tried:         make(map[jobs.ID]bool),
		},
		dependencies: after.New(t),
		kinds:        blame.KindIndex{},
		allQueues:    allQueues{stats: make(map[string]*queueStats)},
		hybrid:       hasLocalAndRemote(hs),
	}
	c.halt = halt.Counter{Rule: cfg.Halt, Results: &t.Results}
	c.hardness = hardness.New(t, hardness.Limits{Of: c.timeout, UsedBy: c.timeoutUsed})
	c.cfg.Tries = orDefault(cfg.Tries, jobs.DefaultTries)
	c.cfg.MaxLaunches = orDefault(cfg.MaxLaunches, maxLaunches)
	c.cfg.GiveUpAfter = orDefault(cfg.GiveUpAfter, 10*time.Minute)
	c.cfg.HalfLife = orDefault(cfg.HalfLife, defaultHalfLife)
	c.shares = fairshare.New(cfg.QueuePolicy, c.cfg.HalfLife, cfg.Seed)
	c.cfg.MaxBackoff = orDefault(cfg.MaxBackoff, time.Minute)
	c.slots = pool{unit: "slot", rule: "--max-slots allows", limit: cmp.Or(cfg.MaxSlots, -1)}
	c.setTokens()
	for _, s := range hs {
		h := newHost(s, len(c.hosts))
		h.machine = t.At[s.Name]
		c.hosts = append(c.hosts, h)
		c.byName[s.Name] = h
		c.queue.addColumn(h)
	}
	c.rebuild()
	return c
}

func orDefault[T int | float64 | time.Duration](x, otherwise T) T {
	if x <= 0 {
		return otherwise
	}
	return x
}

// Table returns the run's state; the caller must not change it. If the table is packed, a row that
// it returns is that of the job until the next Step.
func (c *Core) Table() *jobs.Table { return c.table }

// peek returns the row of a job for reading until the next peek. It is for loops over many jobs,
// whose rows stay packed.
func (c *Core) peek(id jobs.ID) *jobs.Job { return c.rows.Job(c.table, id) }

// maxReusedRecords is the number of records for which Step keeps memory.
const maxReusedRecords = 4096

// Step handles events. It returns the records to make durable, and the commands to carry out after
// that. Decisions about the whole run, such as where to launch, are made once, after the last
// event. The records have been folded into the table and are valid until the next Step. The caller
// owns the commands.
func (c *Core) Step(now Time, evs ...Event) (records []jobs.Record, commands []Command) {
	c.table.PackIdle()
	now.Mono = max(now.Mono, c.now.Mono) // time never goes back here
	gap := now.Mono - c.now.Mono
	if clear(c.records); cap(c.records) > maxReusedRecords {
		c.records = nil
	}
	c.step = step{now: now, records: c.records[:0], deferred: c.deferred[:0]}
	c.provisions.commands = nil
	c.beginVisits()
	switch {
	case !c.hasBegun:
		c.takeOverTable()
	case gap > stallAfter && !c.stopped && !c.fenced:
		c.handleStall(gap)
	}
	for _, ev := range evs {
		c.touchFor(ev)
		if c.admit(ev) {
			ev.apply(c)
		}
		c.handleDependents()
	}
	c.handleTimers()
	c.handleDependents()
	c.checkHalt()
	c.place()
	c.handleDependents()
	c.provide()
	c.finishRun()
	commands = slices.Concat(c.leaves, c.collectCommands(), c.inspections, c.rereads, c.provisions.commands, c.finish)
	c.endVisits()
	return c.records, commands
}

// emit folds a record into the table and keeps it for the journal. Only emit makes the queue follow
// the state of a job. It returns false if the record does not fit the table. Then nothing has
// changed, and an event reports the bug.
func (c *Core) emit(r jobs.Record) bool {
	r.At, r.Request = c.now.Wall, cmp.Or(r.Request, c.cause)
	if cancel, ok := c.table.Cancels[r.Job]; ok && r.Next == jobs.Canceled {
		r.Request, r.How = cancel.Request, string(cancel.ReasonKind)
	}
	moves := false
	switch r.Kind {
	case jobs.KindLaunching, jobs.KindRunning, jobs.KindExited, jobs.KindLost, jobs.KindSuperseded,
		jobs.KindCanceled, jobs.KindJob, jobs.KindRound, jobs.KindPriority, jobs.KindEdited, jobs.KindForgiven:
		moves = true
	}
	j := c.table.Job(r.Job)
	open, was := false, jobs.Queued
	if moves && j != nil {
		was = j.State
		c.removeFromQueue(r.Job)
		c.addWaiting(j, -1)
		open = !j.State.Terminal()
		if open && r.Next.Terminal() {
			r.Seq = max(c.table.Seq+1, c.firstSeq)
		}
	}
	err := jobs.Fold(c.table, &r)
	if err != nil {
		c.Defects++
		c.records = append(c.records, jobs.Record{Kind: jobs.KindEvent, At: r.At, Job: r.Job, N: r.N, Host: r.Host,
			Reason: fmt.Sprintf("internal error: a decision did not fit the facts: %v", err)})
	} else {
		c.records = append(c.records, r)
	}
	if !moves || j == nil {
		return err == nil
	}
	if err == nil && r.Kind == jobs.KindExited {
		c.halt.CountAttempt(&r)
	}
	c.addWaiting(j, 1)
	c.pruneStillRunning(j)
	c.hardness.Update(r.Job, j, was, err == nil && r.Kind == jobs.KindEdited)
	switch {
	case j.State == jobs.Queued && c.deferring:
		c.deferred = append(c.deferred, r.Job)
	case j.State == jobs.Queued:
		c.enqueue(r.Job)
	case open && j.State.Terminal():
		c.ended = append(c.ended, endedJob{r.Job, r.Request})
	}
	return err == nil
}

// logf records an event for people.
func (c *Core) logf(host string, job jobs.ID, format string, args ...any) {
	c.emit(jobs.Record{Kind: jobs.KindEvent, Host: host, Job: job, Reason: fmt.Sprintf(format, args...)})
}

// reportUp records that a host came up.
func (c *Core) reportUp(h *host) {
	name := h.spec.Name
	c.emit(jobs.Record{Kind: jobs.KindEvent, Host: name, How: string(jobs.ReasonHostUp), Reason: name + " is up"})
}

// allHosts returns the hosts of the inventory, then the absent ones.
func (c *Core) allHosts() []*host {
	c.numVisits += len(c.hosts)
	if len(c.absent) == 0 {
		return c.hosts
	}
	return append(c.hosts[:len(c.hosts):len(c.hosts)], c.absent...)
}

// Linked reports whether the core considers the host's link alive: from HostUp until it has issued
// Disconnect or received HostDown. It is false for a link to a helper that never sends heartbeats.
// Only heartbeats that arrive while Linked is true may extend a lease.
func (c *Core) Linked(name string) bool {
	h := c.byName[name]
	return h != nil && h.linked && !h.isSilent()
}
