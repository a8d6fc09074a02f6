package sim

import (
	"fmt"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir/memdisk"
)

// World is one simulated run with everything around it.
type World struct {
	tape    *Tape
	verbose bool
	log     []string
	now     time.Duration // true time since the beginning; no machine's clock
	agenda  agenda

	cfg   sched.Config
	inv   []*hosts.Host // of the inventory file at present; never changed in place
	specs []*jobs.Spec  // all that people are going to submit
	fed   int           // of them, submitted

	server   *memdisk.Server          // of the run directory
	share    *memdisk.Server          // of the attempts' shared directory
	machines []*machine               // that a dispatcher may run on
	hosts    []*host                  // every machine that is or was behind the name of a host
	at       map[string]*host         // by address
	cloud    *cloud                   // nil: there is no provider
	extra    int                      // hosts that were added
	known    map[string]*hosts.Host   // by name: as it was known last
	ruled    map[string]int           // by name: the most slots that it ever had by its rule …
	given    map[string]int           // … and by people
	patience map[string]time.Duration // by name: the shortest lost_after that it ever had
	life     *life                    // the dispatcher that runs; nil while there is none
	lives    []*life
	takes    int  // how many of them took the run over; a full disk keeps many from it
	coming   bool // a dispatcher is going to start

	people   people
	consumer consumer
	truth    truth
	ledger   ledger

	fragile  bool // its journal may be damaged
	battered bool // and is, again and again
	cuts     bool // the only faults are deaths of dispatchers and journals that end early
	copied   *copied
	damaged  bool // it was
	unread   bool // and no dispatcher has seen that yet

	budget int // faults still to come
	faults []int
	turns  int
	failed *Failure
	over   bool
}

const (
	runDir    = "/runs/r"
	runUID    = "simrun"
	wallStart = jobs.Stamp(1_700_000_000_000_000_000)
	// mostTime bounds a run: the faults are over after minutes, and what they leave
	// behind must be after hours.
	mostTime  = 12 * time.Hour
	mostLives = 200
)

// Failure is a broken invariant.
type Failure struct {
	Invariant string
	At        time.Duration
	Text      string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s at %v: %s", f.Invariant, f.At, f.Text)
}

// broken ends the world: an invariant does not hold.
func (w *World) broken(invariant, format string, args ...any) {
	panic(&Failure{invariant, w.now, fmt.Sprintf(format, args...)})
}

func (w *World) logf(format string, args ...any) {
	if w.verbose {
		w.log = append(w.log, fmt.Sprintf("%14v ", w.now)+fmt.Sprintf(format, args...))
	}
}

func (w *World) after(d time.Duration, do func()) { w.agenda.add(w.now+max(0, d), do) }

func (w *World) between(lo, hi time.Duration) time.Duration { return w.tape.Between(lo, hi) }

// calm says that no more faults come.
func (w *World) calm() bool { return w.budget <= 0 }

// noise says yes once in n times while there are faults: for the small things that
// go wrong all the time.
func (w *World) noise(n int) bool { return !w.calm() && !w.cuts && w.tape.OneIn(n) }

// Result is what became of a world.
type Result struct {
	Failure *Failure // nil if all is well
	Faults  map[string]int
	Turns   int           // of all dispatchers
	Lives   int           // dispatchers that took the run over
	Took    time.Duration // virtual time
	Journal string        // every journal file, one after the other
	Log     []string      // if asked for
}

// Run plays a tape to its end.
func Run(t *Tape, verbose bool) (res *Result) {
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
	w.play()
	return nil
}

func (w *World) play() {
	w.begin(w.machines[0])
	w.feed()
	w.plague()
	for !w.over {
		h, ok := w.agenda.next()
		if !ok || h.at > mostTime {
			w.stuck()
		}
		w.now = h.at
		h.do()
		w.checkOwners()
	}
	w.atEnd()
}

func (w *World) result() *Result {
	r := &Result{Failure: w.failed, Faults: map[string]int{}, Turns: w.turns, Lives: len(w.lives), Took: w.now, Log: w.log}
	for i, n := range w.faults {
		if n > 0 {
			r.Faults[plagues[i].name] += n
		}
	}
	for e := range w.ledger.files {
		r.Journal += string(w.readJournal(e + 1))
	}
	return r
}

// stuck says what the run waits for.
func (w *World) stuck() {
	if l := w.life; l != nil {
		t := l.core.Table()
		for i := range t.Jobs {
			if !t.Jobs[i].State.Terminal() {
				w.logf("job %d: %s", i+1, l.core.Why(l.now(), jobs.ID(i+1)))
			}
		}
		for _, v := range l.core.Hosts() {
			w.logf("%s %s %s slots %d usable %v running %d buffered %d", v.Name, v.State, v.Reason, v.Slots, v.Usable, v.Running, v.Buffered)
		}
	}
	w.broken(RunEnds, "the run does not end (%d of %d jobs submitted, dispatcher %v)", w.fed, len(w.specs), w.life != nil)
}
