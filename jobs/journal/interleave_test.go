package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// dispatcher is one of several that compete for a run. It is a machine with a program that may be
// anywhere in its work.
type dispatcher struct {
	name  string
	view  *memdisk.Mount
	work  chan func() // its next action; each file operation waits for its turn
	turn  chan bool   // allows one file operation; false: none ever again
	ready chan bool   // it waits for a turn (true), or is idle

	run   *rundir.Run
	j     *Journal
	specs []string // commands of the jobs that it knows
	jobs  int      // how many of them are accepted
	busy  bool
}

// race is a run that several dispatchers take from each other with --force. A seed determines the
// order of their file operations.
type race struct {
	t     *testing.T
	rng   *rand.Rand
	all   []*dispatcher
	dir   string
	acked map[string]bool    // reasons of events that a Sync has acknowledged
	jobs  map[jobs.ID]string // commands of accepted jobs that a Sync has acknowledged
	n     int
	took  int
	fence int
}

var errHalted = errors.New("the test is over")

func (c *race) start(name string, m *memdisk.Mount) *dispatcher {
	d := &dispatcher{name: name, view: m, work: make(chan func()), turn: make(chan bool), ready: make(chan bool)}
	m.Fault = func(string, string) error {
		d.ready <- true
		if !<-d.turn {
			return errHalted
		}
		return nil
	}
	go func() {
		for f := range d.work {
			f()
			d.ready <- false
		}
		close(d.ready)
	}()
	return d
}

// step lets one dispatcher do one file operation, or start a new action.
func (c *race) step(d *dispatcher) {
	if !d.busy {
		d.work <- c.choose(d)
	} else {
		d.turn <- true
	}
	d.busy = <-d.ready
}

// choose returns the next action of an idle dispatcher.
func (c *race) choose(d *dispatcher) func() {
	c.n++
	id := fmt.Sprintf("%s %d", d.name, c.n)
	if d.j == nil || c.rng.IntN(40) == 0 {
		return func() {
			r, err := rundir.OpenOn(d.view, c.dir)
			if err != nil {
				c.hears(d, err)
				return
			}
			j, table, report, err := Take(c.t.Context(), r, TakeOptions{Force: true, Who: machine(d.name), Token: id})
			var owned *OwnedError
			switch {
			case err == nil:
				d.run, d.j, d.specs, d.jobs = r, j, nil, len(table.Jobs)
				for _, s := range table.Specs {
					d.specs = append(d.specs, s.Command)
				}
				c.took++
				if report.Damaged {
					c.t.Errorf("%s: %+v", d.name, report)
				}
			case !errors.As(err, &owned) && !errors.Is(err, ErrFenced) && !errors.Is(err, errHalted):
				c.t.Errorf("%s cannot take: %v", d.name, err)
			}
		}
	}
	switch pick := c.rng.IntN(12); {
	case pick == 0:
		return func() { c.hears(d, d.j.Heartbeat()) }
	case pick == 1:
		return func() { c.hears(d, d.j.Close()); d.j = nil }
	case pick == 2:
		return func() { c.submit(d, id) }
	}
	return func() {
		_ = d.j.Append([]jobs.Record{{Kind: jobs.KindEvent, Reason: id}})
		err := d.j.Sync()
		if err == nil {
			c.acked[id] = true
		}
		c.hears(d, err)
	}
}

// submit stores a job and accepts all jobs that the dispatcher knows.
func (c *race) submit(d *dispatcher, command string) {
	err := d.run.AppendSpecs([]*jobs.Spec{{ID: jobs.ID(len(d.specs) + 1), Command: command, Options: jobs.NoOptions}})
	if err != nil {
		c.hears(d, err)
		return
	}
	d.specs = append(d.specs, command)
	from, to := d.jobs, len(d.specs)
	_ = d.j.Append([]jobs.Record{{Kind: jobs.KindAccepted, Job: jobs.ID(from + 1), Count: to - from}})
	d.jobs = to
	if err = d.j.Sync(); err == nil {
		for i := from; i < to; i++ {
			c.jobs[jobs.ID(i+1)] = d.specs[i]
		}
	}
	c.hears(d, err)
}

// hears handles an error of a dispatcher. A dispatcher that was fenced off takes the run again
// later. Any other error fails the test.
func (c *race) hears(d *dispatcher, err error) {
	switch {
	case errors.Is(err, ErrFenced):
		d.j = nil
		c.fence++
	case err != nil && !errors.Is(err, errHalted):
		c.t.Errorf("%s: %v", d.name, err)
	}
}

// end stops all dispatchers where they are.
func (c *race) end() {
	for _, d := range c.all {
		for d.busy {
			d.turn <- false
			d.busy = <-d.ready
		}
		close(d.work)
		<-d.ready
	}
}

// TestInterleavedTakersLoseNothing checks several dispatchers that repeatedly take a run from each
// other. Their file operations are interleaved arbitrarily, so that each is sometimes paused in the
// middle of an action and continues later. What a Sync acknowledged stays a fact, in the order of
// the epochs. Nothing is damaged, and all readers and takers see the same history (E7, promises 1
// and 2).
func TestInterleavedTakersLoseNothing(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() || raceDetector {
		seeds = 60
	}
	took, fenced, acked, accepted := 0, 0, 0, 0
	for seed := range seeds {
		server := memdisk.New()
		server.NamesDurable = true
		plain := server.Mount("looks on")
		r := simulated(t, plain)
		must(t, r.AppendSpecs(jobstest.Specs(1)))
		c := &race{t: t, rng: rand.New(rand.NewPCG(seed, 11)), dir: r.Dir, acked: map[string]bool{},
			jobs: map[jobs.ID]string{}}
		for i := range 2 + c.rng.IntN(2) {
			name := fmt.Sprint("melon", i)
			c.all = append(c.all, c.start(name, server.Mount(name)))
		}
		for i := range 1500 {
			// Usually the same dispatcher continues, then another one gets its turn.
			d := c.all[0]
			c.step(d)
			if c.rng.IntN(8) == 0 {
				k := c.rng.IntN(len(c.all))
				c.all[0], c.all[k] = c.all[k], c.all[0]
			}
			if i%100 == 99 {
				c.facts(plain, fmt.Sprintf("seed %d, step %d", seed, i))
			}
			if t.Failed() {
				break
			}
		}
		c.end()
		c.facts(plain, fmt.Sprintf("seed %d, at the end", seed))
		c.owner()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		took, fenced, acked = took+c.took, fenced+c.fence, acked+len(c.acked)
		accepted += len(c.jobs)
	}
	t.Logf("%d seeds: taken %d times, fenced off %d times, %d records and %d jobs acknowledged", seeds, took, fenced,
		acked, accepted)
	if took < int(seeds) || fenced < int(seeds)/2 {
		t.Error("too little has happened")
	}
}

// owner checks that, once all is quiet, at most one dispatcher is not fenced off, that of the
// newest epoch, and that it can prove it, whatever others last wrote to the file owner.
func (c *race) owner() {
	free := 0
	for _, d := range c.all {
		d.view.Fault = nil
		if d.j == nil {
			continue
		}
		if n, err := d.j.Fenced(); err != nil || n > 0 {
			continue
		}
		if free++; free > 1 {
			c.t.Errorf("%s owns the run, too", d.name)
		}
		if err := d.j.Heartbeat(); err != nil {
			c.t.Errorf("%s owns the run, and cannot say so: %v", d.name, err)
		}
		if o, err := ReadOwner(d.run); err != nil || o.Epoch != d.j.Epoch() || o.Left {
			c.t.Errorf("%s owns the run in epoch %d, and the file owner says %+v, %v", d.name, d.j.Epoch(), o, err)
		}
	}
}

// facts checks that all acknowledged records are present exactly once.
func (c *race) facts(view *memdisk.Mount, at string) {
	c.t.Helper()
	r, err := rundir.OpenOn(view, c.dir)
	if err != nil {
		c.t.Errorf("%s: %v", at, err)
		return
	}
	table, report, err := replayAll(r)
	if err != nil || report.Damaged {
		c.t.Errorf("%s: %+v, %v", at, report, err)
		return
	}
	for id, command := range c.jobs {
		if j := table.Job(id); j == nil || j.Spec.Command != command {
			c.t.Errorf("%s: job %d was accepted as %q, and is %+v", at, id, command, j)
		}
	}
	told, last := map[string]int{}, 0
	if _, err := Follow(r).Poll(Limit{End: true}, func(epoch int, rec *jobs.Record) {
		told[rec.Reason]++
		if epoch < last {
			c.t.Errorf("%s: epoch %d after %d", at, epoch, last)
		}
		last = epoch
	}); err != nil {
		c.t.Errorf("%s: %v", at, err)
	}
	for id := range c.acked {
		if told[id] != 1 {
			c.t.Errorf("%s: the record %q was acknowledged, and is told %d times", at, id, told[id])
		}
	}
}
