package sched

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// world is a deterministic model of the hosts, links, and engine around the core. One seed yields
// one schedule. fakehost_test.go holds the host's side. The model checks the invariants after each
// step, and that every run ends.
type world struct {
	t    testing.TB
	seed uint64
	rng  *rand.Rand
	// For load and quiet hours, so that they do not change the schedules drawn from rng.
	more  *rand.Rand
	gpus  *rand.Rand // for other runs that use GPUs
	cfg   Config
	specs []*jobs.Spec
	inv   []*hosts.Host

	core    *Core
	journal []jobs.Record
	now     time.Duration
	queue   happenings
	n       int // number of happenings so far, for a stable order
	hosts   map[string]*fakeHost
	order   []*fakeHost
	life    int // generation of the dispatcher; messages to an earlier one are lost
	wake    time.Duration

	launched map[jobs.AttemptID]bool
	recorded map[jobs.AttemptID]bool
	givenUp  map[jobs.AttemptID]bool
	finished *Finish
	crashes  int // number left
	faults   int // number left
	meddling int // number of user requests left
	steps    int
	dead     bool          // no dispatcher runs
	stall    time.Duration // the dispatcher is suspended until then
	perFail  int           // one in perFail jobs fails; 0 means none
	log      []string
}

// happening is a function to call at a time. n makes the order of simultaneous ones stable.
type happening struct {
	at time.Duration
	n  int
	do func()
}

// happenings is a heap, ordered by time.
type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

const wallStart = jobs.Stamp(1_700_000_000_000_000_000)

func (w *world) wall() jobs.Stamp { return wallStart + jobs.Stamp(w.now) }

func (w *world) after(d time.Duration, do func()) {
	w.n++
	heap.Push(&w.queue, happening{w.now + d, w.n, do})
}

func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)+1))
}

func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	from := max(0, len(w.log)-60)
	for _, l := range w.log[from:] {
		w.t.Log(l)
	}
	w.t.Fatalf("seed %d at %v: %s", w.seed, w.now, fmt.Sprintf(format, args...))
}

func (w *world) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%12v ", w.now)+fmt.Sprintf(format, args...))
}

// newWorld generates a world from a seed.
func newWorld(t testing.TB, seed uint64, nHosts, nJobs int) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), more: rand.New(rand.NewPCG(seed, 2)), gpus: rand.New(rand.NewPCG(seed, 3)), hosts: make(map[string]*fakeHost),
		launched: make(map[jobs.AttemptID]bool), recorded: make(map[jobs.AttemptID]bool), givenUp: make(map[jobs.AttemptID]bool), perFail: 6}
	w.cfg = Config{Seed: seed, Tries: 1 + w.rng.IntN(3), GiveUp: 2 * time.Hour}
	for i := range nHosts {
		name := fmt.Sprintf("melon%d", i+1)
		h := &hosts.Host{Name: name, Slots: hosts.SlotRule{Fixed: 1 + w.rng.IntN(4)}, GPUs: w.rng.IntN(2), Link: "ssh", Yield: w.chance(2)}
		if i == 0 || w.chance(2) {
			h.Tags = []string{"big"}
		}
		w.inv = append(w.inv, h)
		f := &fakeHost{w: w, spec: h, slots: h.Slots.Fixed, up: true, attempts: make(map[jobs.AttemptID]*fakeAttempt)}
		w.rests(f)
		w.hosts[name] = f
		w.order = append(w.order, f)
	}
	opts := []*jobs.Options{
		jobs.NoOptions, jobs.NoOptions, {Slots: 2}, {Tags: []string{"big"}}, {Priority: -1}, {GPUs: 1}, {Timeout: 20 * time.Second},
		{OnLost: jobs.OnLostWait}, {MemBytes: 3 << 30},
	}
	for i := range nJobs {
		o := opts[w.rng.IntN(len(opts))]
		if w.chance(12) && i > 0 {
			o = &jobs.Options{After: []jobs.ID{jobs.ID(1 + w.rng.IntN(i))}}
		}
		w.specs = append(w.specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: o})
	}
	return w
}

// start starts a dispatcher from the journal.
func (w *world) start() {
	w.life++
	w.dead, w.stall = false, 0
	t := &jobs.Table{}
	t.Specs = append(t.Specs, w.specs...)
	for i := range w.journal {
		if err := jobs.Fold(t, &w.journal[i]); err != nil {
			w.fatalf("replay of record %d: %v", i, err)
		}
	}
	cfg := w.cfg
	cfg.Seed += uint64(w.life)
	w.core = New(cfg, t, w.inv)
	w.wake = 0
	rest := w.specs[len(t.Jobs):]
	life := w.life
	for len(rest) > 0 && w.life == life {
		n := min(len(rest), 1+w.rng.IntN(20))
		w.step(Submit{Specs: rest[:n]})
		rest = rest[n:]
	}
	if w.life == life {
		w.step(Submit{Last: true})
	}
}

// step passes an event to the core as the engine does: records first, then commands. The dispatcher
// may be killed between the two.
func (w *world) step(ev Event) {
	life := w.life
	if w.now < w.stall {
		w.after(w.stall-w.now, func() {
			if w.life == life {
				w.step(ev)
			}
		})
		return
	}
	w.steps++
	records, commands := w.core.Step(Time{w.now, w.wall()}, ev)
	switch ev := ev.(type) {
	case HostUp:
		w.confirm(ev.Host, ev.Hello.Uptime)
	case HostBeat:
		w.confirm(ev.Host, ev.Beat.Uptime)
	}
	if _, beat := ev.(HostBeat); !beat {
		w.logf("%T%+v", ev, ev)
	}
	if w.crashes > 0 && w.chance(300) {
		w.crashes--
		if w.chance(2) {
			w.keep(records) // durable, but no command was sent
		}
		w.logf("dispatcher killed")
		for _, h := range w.order {
			h.cutLink()
		}
		w.life++ // no dispatcher receives messages now
		w.dead = true
		w.after(w.between(time.Second, 2*time.Minute), w.start)
		return
	}
	w.keep(records)
	for _, o := range commands {
		w.carryOut(o)
	}
	w.check()
	if life != w.life {
		return
	}
	if at, ok := w.core.Next(); ok && at != w.wake {
		if at <= w.now && at != 0 {
			w.fatalf("Next asks for a tick at %v, which is past", at)
		}
		w.wake = at
		w.after(max(0, at-w.now), func() {
			if w.life == life && w.wake == at {
				w.wake = 0
				w.step(Tick{})
			}
		})
	}
}

func (w *world) keep(records []jobs.Record) {
	for _, r := range records {
		w.journal = append(w.journal, r)
		if r.Kind == jobs.KindLaunching {
			w.recorded[r.Attempt()] = true
		}
		if r.Kind == jobs.KindLost {
			w.givenUp[r.Attempt()] = true
		}
		if r.Kind != jobs.KindEvent || r.Host != "" {
			w.logf("  record %s %s %s next=%s %s", r.Kind, r.Attempt(), r.Host, r.Next, r.Reason)
		}
	}
}

func (w *world) carryOut(o Command) {
	w.logf("  order %T%+v", o, o)
	switch o := o.(type) {
	case Connect:
		w.hosts[o.Host].connect()
	case Disconnect:
		w.hosts[o.Host].cutLink()
	case Finish:
		w.finished = &o
	case Launch:
		h := w.hosts[o.Host]
		if h.linked && !h.limitSent {
			w.fatalf("launch on %s before any limit was set", o.Host)
		}
		for _, p := range o.Jobs {
			if w.launched[p.Attempt] {
				w.fatalf("attempt %s is launched twice", p.Attempt)
			}
			if !w.recorded[p.Attempt] {
				w.fatalf("attempt %s is launched without a record", p.Attempt)
			}
			if len(p.GPUs) != p.Spec.GPUs.Devices() {
				w.fatalf("attempt %s gets GPUs %v and wants %s", p.Attempt, p.GPUs, p.Spec.GPUs)
			}
			w.launched[p.Attempt] = true
		}
		h.send(func() { h.launch(o.Jobs) })
	case SetLimit:
		h := w.hosts[o.Host]
		if o.Slots > h.slots || o.Slots < 0 {
			w.fatalf("%s may have %d slots busy and has %d", o.Host, o.Slots, h.slots)
		}
		h.send(func() { h.limit = o.Slots; h.fill() })
		if !h.limitSent {
			h.limitSent = true
			h.extend()
		}
	case Withdraw:
		h := w.hosts[o.Host]
		h.send(func() { h.withdraw(o.Attempts) })
	case Kill:
		h := w.hosts[o.Host]
		h.send(func() { h.kill(o.Attempts) })
	case Probe:
		h := w.hosts[o.Host]
		h.send(func() { h.probe(o.Attempts) })
	}
}

// run runs the world until the core has finished, for at most a day.
func (w *world) run() {
	w.start()
	for w.finished == nil {
		if len(w.queue) == 0 || w.now > 24*time.Hour {
			w.stuck()
		}
		h := heap.Pop(&w.queue).(happening)
		w.now = h.at
		h.do()
	}
	w.atEnd()
}

var errRefused = &hosts.Error{Host: "melon", Class: hosts.Unreachable, Err: errors.New("connection refused")}

// worldOf generates a world with faults and user requests from a seed.
func worldOf(t testing.TB, seed uint64) *world {
	w := newWorld(t, seed, 1+int(seed%5), 10+int(seed%40))
	if seed%3 > 0 {
		w.faults = 12
	}
	if seed%4 == 3 {
		w.crashes = 3
	}
	w.unrest()
	if seed%2 == 1 {
		w.meddling = 10
		w.meddle()
	}
	return w
}

// TestWorld runs several hundred seeded schedules with crashing hosts, broken or silent links,
// duplicate reports, refusals, users who change their minds, and a dispatcher that is killed
// (promises 1, 2, and 4; D6, E6, B1, P2, K8, K9).
func TestWorld(t *testing.T) {
	seeds := 500 // dispatch/sim runs thousands
	if testing.Short() {
		seeds = 300
	}
	for seed := range uint64(seeds) {
		worldOf(t, seed).run()
	}
}

// TestSameSeedSameRun checks that the core depends only on its events and its seed.
func TestSameSeedSameRun(t *testing.T) {
	for seed := range uint64(60) {
		a, b := worldOf(t, seed), worldOf(t, seed)
		a.run()
		b.run()
		if !reflect.DeepEqual(a.journal, b.journal) {
			t.Fatalf("seed %d gives two different runs", seed)
		}
	}
}

// FuzzWorld lets the fuzzer choose the seeds.
func FuzzWorld(f *testing.F) {
	for _, seed := range []uint64{0, 7, 71, 416, 551} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { worldOf(t, seed).run() })
}
