package sim

import (
	"fmt"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir/memdisk"
)

// How many faults a world has at least and at most.
const (
	leastFaults = 40
	mostFaults  = 60
)

// batterAll damages the journal of every world again and again.
var batterAll bool

// newWorld draws the hosts, the jobs and the run's options.
func newWorld(t *Tape, verbose bool) *World {
	w := &World{tape: t, verbose: verbose, at: map[string]*host{}, known: map[string]*hosts.Host{}, ruled: map[string]int{}, given: map[string]int{}, patience: map[string]time.Duration{},
		server: memdisk.New(), share: memdisk.New(), faults: make([]int, len(plagues))}
	w.share.NamesDurable = true
	w.server.NamesDurable = t.Draw(2) == 0
	w.truth.init()
	w.ledger.init()
	w.consumer.init()
	w.cuts = cutAll
	w.fragile = t.OneIn(8) || batterAll || cutAll
	w.battered = !cutAll && w.fragile && t.OneIn(2) || batterAll
	w.budget = leastFaults + t.Draw(mostFaults-leastFaults+1)
	w.cfg = sched.Config{Tries: 1 + t.Draw(3), GiveUp: 100 * time.Hour}
	if t.OneIn(6) {
		w.cfg.Buffer = []time.Duration{20 * time.Second, 100 * time.Second}[t.Draw(2)]
	}
	if t.OneIn(4) {
		w.cfg.OnLost = jobs.OnLostWait
	}
	w.cfg.RetryTimeouts = t.OneIn(3)
	if t.OneIn(4) && !cutAll {
		w.cfg.Copies = 2 + t.Draw(2)
	}
	if t.OneIn(12) {
		n := 4 + t.Draw(4)
		w.cfg.Halt = sched.Halt{Jobs: n, Now: n%2 == 1}
	}
	for i := range 3 {
		w.machines = append(w.machines, &machine{name: fmt.Sprintf("desk%d", i+1)})
	}
	for i, n := 0, 1+t.Draw(6); i < n; i++ {
		w.drawHost(i)
	}
	if t.OneIn(6) {
		w.cfg.MaxSlots = 3 + t.Draw(4)
	}
	w.cfg.Tokens = w.drawTokens()
	w.drawCloud()
	w.drawJobs(30 + t.Draw(70))
	if w.shared() {
		w.cfg.RunShare = 1
	}
	w.makeRun()
	return w
}

func (w *World) drawHost(i int) {
	t := w.tape
	spec := &hosts.Host{Name: fmt.Sprintf("melon%d", i+1), Slots: hosts.SlotRule{Fixed: 1 + t.Draw(4)}, GPUs: t.Draw(2), Link: "ssh", Yield: t.OneIn(3)}
	if i == 0 || t.Draw(2) == 0 {
		spec.Tags = []string{"big"}
	}
	if t.OneIn(4) {
		spec.LostAfter = 25 * time.Second
	}
	if t.OneIn(8) {
		spec.MaxLoad = 3
	}
	if t.OneIn(8) { // quiet hours that begin and end during the run
		now := time.Duration(wallStart) % (24 * time.Hour)
		from := (now + w.between(0, 15*time.Minute)) % (24 * time.Hour)
		spec.Quiet = []hosts.Quiet{{From: from, To: (from + w.between(time.Minute, 10*time.Minute)) % (24 * time.Hour)}}
	}
	if i == 1 && spec.GPUs > 0 {
		spec.Link, spec.File = "local", "hosts.toml" // of an inventory: the hybrid order (D5), and no more than its slots when alone
	}
	if i > 0 && t.OneIn(4) {
		spec.Queues = w.drawKept(spec.Slots.Fixed)
	}
	if i == 0 {
		mustMkdir(w.share.Mount("maker"), "/share", "/share/attempts", "/share/attempts/000")
	}
	_, address := w.newMachine(spec.Name, spec.GPUs)
	spec.Addresses = []string{address}
	w.inv = append(w.inv, spec)
	w.knows(spec)
}

var jobOptions = []*jobs.Options{
	jobs.NoOptions, jobs.NoOptions, jobs.NoOptions, {Slots: 2}, {Tags: []string{"big"}}, {Priority: -1}, {GPUs: 1}, {Timeout: 20 * time.Second},
	{OnLost: jobs.OnLostWait}, {OnLost: jobs.OnLostRequeue}, {MemBytes: 3 << 30}, {Tries: 2, Estimate: 2 * time.Second},
	{Queue: "second", Share: 2, Deadline: wallStart.Time().Add(10 * time.Minute)},
}

var halfGPU = &jobs.Options{GPUs: jobs.HalfGPU}

func (w *World) drawJobs(n int) {
	for i := range n {
		o := jobOptions[w.tape.Draw(len(jobOptions))]
		if w.tape.OneIn(4) {
			o = hardOptions[w.tape.Draw(len(hardOptions))]
		}
		if w.tape.OneIn(4) {
			o = limitedOptions[w.tape.Draw(len(limitedOptions))]
		}
		if i > 0 && w.tape.OneIn(12) {
			o = &jobs.Options{After: []jobs.ID{jobs.ID(1 + w.tape.Draw(i))}}
			if on := jobs.Condition(w.tape.Draw(5)); on <= jobs.AfterFailure {
				o.AfterOn = []jobs.Condition{on}
			}
		}
		if o.GPUs > 0 && i%2 == 1 {
			o = halfGPU
		}
		w.specs = append(w.specs, &jobs.Spec{ID: jobs.ID(i + 1), Line: i + 1, Command: "true", Options: o})
	}
}
