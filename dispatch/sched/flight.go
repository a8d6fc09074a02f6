package sched

import (
	"time"

	"dcs-tui/jobs"
)

// flight is an open attempt: what the core must remember of it beyond the table.
type flight struct {
	id         jobs.AttemptID
	h          *host
	spec       *jobs.Spec
	prev, next *flight // the host's list, in the order of launching
	slots      int
	mem        int64
	gpus       []int
	wantGPUs   jobs.GPUs     // for more than len(gpus) devices: which it holds is not known (it was taken over)
	launchedAt time.Duration // Time.Mono
	startedAt  time.Duration // Time.Mono, when started
	started    bool
	undated    bool          // … or only in a supervisor's hands, which may still have to start it
	withdrawn  bool          // asked back, no answer yet
	killed     bool          // to be ended, no answer yet
	warned     bool          // it was sent the warning signal
	requeue    bool          // killed only to run elsewhere
	over       bool          // its outcome is here and is being recorded
	took, cpu  time.Duration // its run time and its CPU time as its host says; 0: not known
	extra      float64       // CPU seconds charged beyond its slots' time while it runs (share.go)
	proved     bool          // the host has shown that it is over
	straggles  bool          // straggler.go
	stats      *runStats
	ran        time.Duration // before startedAt, under an earlier dispatcher
	held       time.Duration // host.suspended when it started; 0 if it was taken over
	said       progress      // what the job says of itself
}

// single says that it may share a buffer: it takes a slot and nothing else.
func (f *flight) single() bool { return f.slots == 1 && f.mem == 0 && f.wantGPUs == 0 }

// waiting says that it is handed over, not known to have started, and wanted.
func (f *flight) waiting() bool { return !f.started && !f.withdrawn && !f.killed && !f.over }

// fly enters an attempt into the books; the caller adds h.count(f) when the
// flight is filled in.
func (c *Core) fly(h *host, id jobs.AttemptID, s *jobs.Spec) *flight {
	f := &flight{id: id, h: h, spec: s, slots: s.SlotCount(), mem: c.memory(c.table.Job(id.Job)), wantGPUs: s.GPUs, launchedAt: c.now.Mono,
		stats: c.statsOf(s)}
	c.flights[id] = f
	if f.prev = h.tail; f.prev != nil {
		f.prev.next = f
	} else {
		h.head = f
	}
	h.tail = f
	h.open++
	c.use(f, 1)
	c.takes(f)
	return f
}

// land takes an attempt out of the books.
func (c *Core) land(f *flight) {
	h := f.h
	delete(c.flights, f.id)
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		h.head = f.next
	}
	if f.next != nil {
		f.next.prev = f.prev
	} else {
		h.tail = f.prev
	}
	h.open--
	c.use(f, -1)
	c.leaves(f)
	if f.straggles {
		c.straggling--
	}
	h.uncount(f)
}

// count adds what a flight uses to its host's sums.
func (h *host) count(f *flight) {
	h.occupied += f.slots
	h.mem += f.mem
	if f.started {
		h.running += f.slots
	}
	if !f.single() {
		h.special++
	}
	if f.wantGPUs.Devices() > len(f.gpus) {
		h.vagueGPUs++
	}
	for _, g := range f.gpus {
		h.gpu(g).ours += halvesOf(f.wantGPUs)
	}
}

// uncount takes it off again.
func (h *host) uncount(f *flight) {
	h.occupied -= f.slots
	h.mem -= f.mem
	if f.started {
		h.running -= f.slots
	}
	if !f.single() {
		h.special--
	}
	if f.wantGPUs.Devices() > len(f.gpus) {
		h.vagueGPUs--
	}
	for _, g := range f.gpus {
		h.gpu(g).ours -= halvesOf(f.wantGPUs)
	}
}

// begins notes that a flight has started.
func (c *Core) begins(f *flight) {
	f.withdrawn = false // it was too late for that
	if !f.started {
		c.moves(f, 0)
		f.started, f.startedAt, f.held = true, c.now.Mono, f.h.suspended(c.now.Mono)
		f.h.running += f.slots
	}
}

// otherOpen returns whether another attempt of the job may be alive.
func otherOpen(j *jobs.Job, n int) bool {
	for _, a := range j.Attempts {
		if a.State.Open() && a.ID.N != n {
			return true
		}
	}
	return false
}

// launch records an attempt and hands it to the host at the end of the step.
func (c *Core) launch(id jobs.ID, h *host) {
	j := c.table.Job(id)
	a := jobs.AttemptID{Job: id, N: c.nextNumber(j)}
	c.emit(jobs.Record{Kind: jobs.KindLaunching, Job: id, N: a.N, Host: h.spec.Name})
	f := c.fly(h, a, j.Spec)
	h.out.urgent = h.out.urgent || h.free() > 0
	f.gpus = h.takeGPUs(f.wantGPUs)
	h.count(f)
	h.out.launch = append(h.out.launch, Placed{Attempt: a, Spec: j.Spec, Timeout: grown(c.timeout(j.Spec), c.cfg.TimeoutGrowth, j), Mem: f.mem, GPUs: f.gpus, Restart: restarts(j)})
}

// restarts returns how many attempts of the job ran before its newest in this round.
func restarts(j *jobs.Job) (n int) {
	for _, a := range j.Attempts[:len(j.Attempts)-1] {
		if a.Round == j.Round && !a.NeverRan() {
			n++
		}
	}
	return n
}
