package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sched/fairshare"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir/memdisk"
)

// World is one simulated run with its environment.
type World struct {
	choices *Choices
	size    *size
	verbose bool
	log     []string
	now     time.Duration // true time since the beginning; it is no machine's clock
	agenda  agenda

	cfg           sched.Config
	inventoryFile []*hosts.Host // the hosts of the inventory file; elements are never changed in place
	providers     []*hosts.Provider
	tokens        []jobs.Token
	specs         []*jobs.Spec // every job that people are going to submit
	numSubmitted  int          // how many of specs were submitted

	server        *memdisk.Server          // of the run directory
	share         *memdisk.Server          // of the shared directory of attempts
	machines      []*machine               // where a dispatcher may run
	hosts         []*host                  // every machine that is or was behind the name of a host
	hostByAddress map[string]*host         // by address
	cloud         *cloud                   // nil: there is no provider
	numAdded      int                      // number of hosts that were added
	knownSpecs    map[string]*hosts.Host   // by name: the newest known specification
	maxRuleSlots  map[string]int           // by name: the most slots that its rule ever gave it
	maxGivenSlots map[string]int           // by name: the most slots that people ever gave it
	minLostAfter  map[string]time.Duration // by name: the shortest lost_after that it ever had
	dispatcher    *dispatcher              // the running dispatcher; nil while there is none
	dispatchers   []*dispatcher
	numTakeovers  int  // number of takeovers; a full disk prevents many
	isStarting    bool // a dispatcher is going to start

	people   people
	consumer consumer
	truth    truth
	ledger   ledger

	mayBeDamaged   bool   // the journal may be damaged
	isBattered     bool   // the journal is damaged again and again
	onlyCuts       bool   // the only faults are deaths of dispatchers and journals that end early
	blame          *blame // nil: it is no world of bad hosts
	copied         *copied
	damaged        bool // the journal was damaged
	isDamageUnread bool // no dispatcher has read the damaged journal yet

	losesHosts bool // hosts may die for good (hostdeaths.go)
	faultsLeft int  // number of faults still to come
	// The next fault, if it has not happened, is injected after momentsLeft moments (passMoment).
	injectNext  func()
	momentsLeft int
	faultCounts []int
	numTurns    int
	numPacked   int // number of attempts whose files went into packs
	numPacks    int // number of names of packs that were given out
	failed      *Failure
	over        bool
}

const (
	runDir    = "/runs/r"
	runUID    = "simrun"
	wallStart = jobs.Stamp(1_700_000_000_000_000_000)
	// maxTime bounds a run. The faults are over after minutes, and their effects must be over
	// after hours.
	maxTime        = 12 * time.Hour
	maxDispatchers = 200
)

// Failure describes a broken invariant.
type Failure struct {
	Invariant string
	At        time.Duration
	Text      string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s at %v: %s", f.Invariant, f.At, f.Text)
}

// fail ends the world because an invariant does not hold.
func (w *World) fail(invariant, format string, args ...any) {
	panic(&Failure{invariant, w.now, fmt.Sprintf(format, args...)})
}

func (w *World) logf(format string, args ...any) {
	if w.verbose {
		w.log = append(w.log, fmt.Sprintf("%14v ", w.now)+fmt.Sprintf(format, args...))
	}
}

func (w *World) after(d time.Duration, do func()) { w.agenda.add(w.now+max(0, d), do) }

func (w *World) between(lo, hi time.Duration) time.Duration { return w.choices.Between(lo, hi) }

// faultsAreOver reports whether there are no more faults to come.
func (w *World) faultsAreOver() bool { return w.faultsLeft <= 0 }

// oneInWhileFaults returns true once in n times while there are faults. It is for the small faults
// that happen all the time.
func (w *World) oneInWhileFaults(n int) bool {
	return !w.faultsAreOver() && !w.onlyCuts && w.blame == nil && w.choices.OneIn(n)
}

// Result is the outcome of a world.
type Result struct {
	Failure     *Failure // nil if no invariant was broken
	Faults      map[string]int
	Turns       int           // of all dispatchers
	Dispatchers int           // number of dispatchers
	Packed      int           // number of attempts whose files went into packs
	Took        time.Duration // virtual time
	Journal     string        // the journal files, concatenated
	Log         []string      // if it was requested
}

// Run simulates a world with the given choices until it ends.
func Run(t *Choices, verbose bool) (res *Result) {
	w := newWorld(t, verbose)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Failure:
			w.failed = r
			w.logf("BROKEN %s: %s", r.Invariant, r.Text)
		default:
			panic(r)
		}
		res = w.result()
	}()
	w.run()
	return nil
}

// maxEventsAtOnce bounds the events at one instant. Without a defect, there are some hundreds.
const maxEventsAtOnce = 100_000

func (w *World) run() {
	w.startDispatcher(w.machines[0])
	w.feed()
	w.injectFaults()
	numNow := 0 // number of events at this instant
	for !w.over {
		h, ok := w.agenda.next()
		if !ok || h.at > maxTime {
			w.failStuck()
		}
		if h.at > w.now {
			numNow = 0
		}
		numNow++
		if numNow > maxEventsAtOnce {
			w.fail(TimeGoesOn, "there is no end of events at %v", w.now)
		}
		w.now = h.at
		h.do()
	}
	w.atEnd()
}

func (w *World) result() *Result {
	r := &Result{Failure: w.failed, Faults: map[string]int{}, Turns: w.numTurns,
		Dispatchers: len(w.dispatchers), Packed: w.numPacked,
		Took: w.now, Log: w.log}
	for i, n := range w.faultCounts {
		if n > 0 {
			r.Faults[faultKinds[i].name] += n
		}
	}
	for e := range w.ledger.files {
		r.Journal += string(w.readJournal(e + 1))
	}
	return r
}

// failStuck describes what the run waits for.
func (w *World) failStuck() {
	open := 0
	if l := w.dispatcher; l != nil {
		t := l.core.Table()
		for i := range t.NumJobs() {
			if id := jobs.ID(i + 1); !t.State(id).Terminal() {
				open++
				w.logf("job %d: %s", id, l.core.Why(l.now(), id))
			}
		}
		for _, v := range l.core.Hosts() {
			w.logf("%s %s %s slots %d usable %v running %d buffered %d", v.Name, v.State, v.Reason, v.Slots, v.Usable,
				v.Running, v.Buffered)
		}
	}
	if open > 0 && w.losesHosts {
		w.fail(JobsEnd, "%d jobs of %d have no result, and a host is usable", open, len(w.specs))
	}
	w.fail(RunEnds, "the run does not end (%d of %d jobs submitted, dispatcher %v)", w.numSubmitted, len(w.specs),
		w.dispatcher != nil)
}

// plannedEvent is a planned event.
type plannedEvent struct {
	at time.Duration
	do func()
}

// agenda holds the planned events, the next one last. Events of the same instant happen in the
// order in which they were planned.
type agenda []plannedEvent

func (a *agenda) add(at time.Duration, do func()) {
	i, _ := slices.BinarySearchFunc(*a, at, func(h plannedEvent, at time.Duration) int { return cmp.Compare(at, h.at) })
	*a = slices.Insert(*a, i, plannedEvent{at, do})
}

func (a *agenda) next() (h plannedEvent, ok bool) {
	last := len(*a) - 1
	if last < 0 {
		return h, false
	}
	h = (*a)[last]
	*a = slices.Delete(*a, last, last+1)
	return h, true
}

// Choices is the source of every choice of a world. It is either endless, from a seed, or a slice
// of bytes. When the bytes are used up, every further choice is 0, which is always the harmless
// one.
type Choices struct {
	rng   *rand.PCG // nil: the choices come from bytes
	bytes []byte
}

// Seeded returns the endless choices of a seed.
func Seeded(seed uint64) *Choices { return &Choices{rng: rand.NewPCG(seed, 0x73696d)} }

// Bytes returns the choices that b encodes.
func Bytes(b []byte) *Choices { return &Choices{bytes: b} }

// Over reports whether choices from bytes are used up.
func (t *Choices) Over() bool { return t.rng == nil && len(t.bytes) == 0 }

// Draw returns one of n choices, from 0 to n-1. n is at least 1.
func (t *Choices) Draw(n int) int {
	if n <= 1 {
		return 0
	}
	if t.rng != nil {
		return int(t.rng.Uint64() >> 1 % uint64(n))
	}
	v := t.byte()
	for most := 256; most < n; most *= 256 {
		v = v<<8 | t.byte()
	}
	return v % n
}

func (t *Choices) byte() int {
	if len(t.bytes) == 0 {
		return 0
	}
	b := t.bytes[0]
	t.bytes = t.bytes[1:]
	return int(b)
}

// OneIn returns true once in n times.
func (t *Choices) OneIn(n int) bool { return t.Draw(n) == n-1 && n > 1 }

// Between returns a duration from lo to hi.
func (t *Choices) Between(lo, hi time.Duration) time.Duration {
	const parts = 1 << 16
	return lo + time.Duration(float64(hi-lo)*float64(t.Draw(parts))/(parts-1))
}

// batterAll damages the journal of every world again and again.
var batterAll bool

// newWorld chooses the hosts, the jobs, and the run's options.
func newWorld(t *Choices, verbose bool) *World {
	w := &World{choices: t, size: ordinary, verbose: verbose,
		hostByAddress: map[string]*host{}, knownSpecs: map[string]*hosts.Host{},
		maxRuleSlots: map[string]int{}, maxGivenSlots: map[string]int{}, minLostAfter: map[string]time.Duration{},
		server: memdisk.New(), share: memdisk.New(), faultCounts: make([]int, len(faultKinds))}
	if allSmall {
		w.size = small
	}
	w.share.NamesDurable = true
	w.server.NamesDurable = t.Draw(2) == 0
	w.people.canceled, w.people.removed = map[jobs.ID]bool{}, map[string]bool{}
	w.truth.init()
	w.ledger.init()
	w.consumer.init()
	w.onlyCuts = cutAllJournals
	if blameAll {
		w.machines = newMachines()
		w.drawBlame()
		w.makeRun()
		return w
	}
	w.mayBeDamaged = t.OneIn(8) || batterAll || cutAllJournals
	w.isBattered = !cutAllJournals && w.mayBeDamaged && t.OneIn(2) || batterAll
	w.faultsLeft = w.size.minFaults + t.Draw(w.size.maxFaults-w.size.minFaults+1)
	w.cfg = sched.Config{Tries: 1 + t.Draw(3), GiveUpAfter: 100 * time.Hour}
	if w.faultsLeft%4 == 3 { // no draw of its own, which would change all worlds
		w.cfg.QueuePolicy = fairshare.Lottery
	}
	w.cfg.CopyAt, w.cfg.CopyOn = sched.CopyAt(w.faultsLeft%3/2), sched.CopyOn(w.faultsLeft%5/3)
	if t.OneIn(6) {
		w.cfg.Buffer = w.size.buffers[t.Draw(len(w.size.buffers))]
	}
	if t.OneIn(4) {
		w.cfg.OnLost = jobs.OnLostWait
	}
	w.cfg.RetryTimeouts = t.OneIn(3)
	if t.OneIn(4) && !cutAllJournals {
		w.cfg.Copies = 2 + t.Draw(2)
	}
	if t.OneIn(12) {
		n := w.size.minHalt + t.Draw(4)
		w.cfg.Halt = halt.Rule{Jobs: n, Now: n%2 == 1}
	}
	w.machines = newMachines()
	for i, n := 0, 1+t.Draw(w.size.maxHosts); i < n; i++ {
		w.drawHost(i)
	}
	w.cfg.MaxLaunches = []int{0, 1, 4}[w.faultsLeft%7%3] // no draw of its own
	if t.OneIn(6) {
		w.cfg.MaxSlots = 3 + t.Draw(4)
	}
	w.tokens = w.drawTokens()
	w.drawCloud()
	w.drawDeaths()
	w.drawJobs(w.size.minJobs + t.Draw(w.size.maxJobs-w.size.minJobs+1))
	if w.hasOtherUsers() {
		w.cfg.RunShare = 1
	}
	w.makeRun()
	return w
}

// newMachines returns the machines on which a dispatcher may run.
func newMachines() (list []*machine) {
	for i := range 3 {
		list = append(list, &machine{name: fmt.Sprintf("desk%d", i+1)})
	}
	return list
}

func (w *World) drawHost(i int) {
	t := w.choices
	spec := &hosts.Host{Name: fmt.Sprintf("melon%d", i+1), Slots: hosts.SlotRule{Fixed: 1 + t.Draw(w.size.maxSlots)},
		GPUs: t.Draw(2),
		Link: "ssh", Yield: t.OneIn(3)}
	if i == 0 || t.Draw(2) == 0 {
		spec.Tags = []string{"big"}
	}
	if t.OneIn(w.size.oneLostEarlyIn) {
		spec.LostAfter = w.size.lostAfter
	}
	switch w.faultsLeft % 7 * (i % 2) { // no draws of their own
	case 5:
		spec.Heartbeat, spec.SuspectAfter = time.Second, 6*time.Second
	case 6:
		spec.Heartbeat, spec.SuspectAfter = 10*time.Second, 25*time.Second
	}
	if t.OneIn(8) {
		spec.MaxLoad = 3
	}
	if t.OneIn(8) { // quiet hours begin and end during the run
		now := time.Duration(wallStart) % (24 * time.Hour)
		from := (now + w.between(0, 15*time.Minute)) % (24 * time.Hour)
		spec.Quiet = []hosts.Quiet{{From: from, To: (from + w.between(time.Minute, 10*time.Minute)) % (24 * time.Hour)}}
	}
	if i == 1 && spec.GPUs > 0 {
		// A local host of an inventory: it uses the hybrid order, and at most its slots when alone.
		spec.Link, spec.File = "local", "hosts.toml"
	}
	if i > 0 && t.OneIn(4) {
		spec.Queues = w.drawKeptPart(spec.Slots.Fixed)
	}
	if i == 0 {
		mustMkdir(w.share.Mount("maker"), "/share", "/share/attempts", "/share/attempts/000")
	}
	_, address := w.newMachine(spec.Name, spec.GPUs)
	spec.Addresses = []string{address}
	w.inventoryFile = append(w.inventoryFile, spec)
	w.recordSpec(spec)
}

var jobOptions = []*jobs.Options{
	jobs.NoOptions, jobs.NoOptions, jobs.NoOptions, {Slots: 2}, {Tags: []string{"big"}}, {Priority: -1},
	{GPUs: jobs.WholeGPU}, {Timeout: 20 * time.Second},
	{OnLost: jobs.OnLostWait}, {OnLost: jobs.OnLostRequeue}, {MemBytes: 3 << 30}, {Tries: 2, Estimate: 2 * time.Second},
	{Queue: "second", Share: 2, Deadline: wallStart.Time().Add(10 * time.Minute)},
}

// notCopied are options of jobs that are not copied in a run with copies.
var notCopied = &jobs.Options{NoCopies: true}

// gpuOptions are options of jobs with a whole device, of which every second gets a part.
var gpuOptions = []*jobs.Options{{GPUs: jobs.WholeGPU}}

// partGPUs are options of jobs with a part of a device.
var partGPUs = []*jobs.Options{{GPUs: 500}, {GPUs: 250}, {GPUs: 500}, {GPUs: 334}}

func (w *World) drawJobs(n int) {
	var theme []*jobs.Options // all jobs have these; nil: any
	if w.size.hasThemes {
		themes := [][]*jobs.Options{nil, nil, nil, hardOptions, limitedOptions, gpuOptions}
		theme = themes[w.choices.Draw(len(themes))]
	}
	for i := range n {
		o := jobOptions[w.choices.Draw(len(jobOptions))]
		if w.choices.OneIn(4) {
			o = hardOptions[w.choices.Draw(len(hardOptions))]
		}
		if w.choices.OneIn(4) {
			o = limitedOptions[w.choices.Draw(len(limitedOptions))]
		}
		if theme != nil {
			o = theme[w.choices.Draw(len(theme))]
		}
		var after jobs.Dependencies
		if i > 0 && w.choices.OneIn(12) {
			o = new(jobs.Options)
			dep := jobs.ID(1 + w.choices.Draw(i))
			on := jobs.Condition(w.choices.Draw(5))
			if on > jobs.AfterFailure {
				on = jobs.AfterSuccess
			}
			after.Add(dep, on)
		}
		if o.GPUs > 0 && i%2 == 1 {
			o = partGPUs[i/2%len(partGPUs)]
		}
		if w.losesHosts && o.OnLost == jobs.OnLostWait {
			o = jobs.NoOptions
		}
		if o == jobs.NoOptions && i%3 == 2 && w.cfg.Copies > 1 {
			o = notCopied
		}
		w.specs = append(w.specs, &jobs.Spec{ID: jobs.ID(i + 1), Line: i + 1, Command: "true",
			Labels: jobs.NewLabels("", nil, after...), Options: o})
	}
}
