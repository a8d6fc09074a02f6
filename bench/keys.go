package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/jobs/rundir"
)

// keyKinds are the keys that the experiment keys measures. The keys before and after them are not
// measured: they open what the keys need, and return to the list of jobs. Each key must change the
// screen: the next second of a clock would be taken for the reaction to one that changes nothing.
var keyKinds = []struct {
	what   string
	before []string
	keys   []string
	after  []string
}{
	{what: "move the cursor", before: []string{"g"},
		keys: []string{"j", "j", "k", "\x04", "\x15", "G", "k", "\x1b[5~", "\x1b[6~", "g"}},
	{what: "sort the jobs, and reverse", keys: []string{"s", "s", "S", "s", "s", "s", "S", "s", "s"}},
	{what: "filter the jobs, letter by letter", before: []string{"/"},
		keys:  []string{"s", "e", "e", "d", " ", "4", "\x7f", "3", "\x15", "a", "c", "c", ">", "0"},
		after: []string{"\x1b", "\x1b"}},
	{what: "change the view", keys: []string{"2", "3", "4", "5", "1"}},
	{what: "hosts: move, sort, details", before: []string{"2"},
		keys: []string{"j", "s", "G", "S", "g", "\r", "\r", "s", "s", "s"}, after: []string{"\x1b", "1"}},
	{what: "results: move, sort", before: []string{"4", "j"}, keys: []string{"g", "j", "s", "S", "G", "s", "S"},
		after: []string{"1"}},
	{what: "results: groups, and back", before: []string{"4", ":group C\r"}, keys: []string{"m", "m"},
		after: []string{"1"}},
	{what: "heat map: open, and close", before: []string{"4", ":pivot C kernel acc\r", "h"},
		keys: []string{"h", "h"}, after: []string{"1"}},
	{what: "heat map: move", before: []string{"4", "h"},
		keys: []string{"j", "\x1b[C", "k", "\x1b[D"}, after: []string{"h", "1"}},
	{what: "open the output of a job", before: []string{"4", "g"}, keys: []string{"l"}, after: []string{"\x1b", "1"}},
}

const (
	keyJobs  = 100_000 // half of which have ended
	keyHosts = 200
	keySlots = 4
)

// keys measures the screen of a run of many jobs on many hosts. The dispatcher and the hosts are in
// this process, and the screen is in its own.
func keys(l *lab, r *report) error {
	f, end, err := l.dispatchFleet()
	if err != nil {
		return err
	}
	defer end()
	s, err := l.open(160, 48, f.dir, "attach", f.dir)
	if err != nil {
		return err
	}
	defer s.leave()
	s.send("4") // reads the metrics of the results
	time.Sleep(15 * time.Second)
	s.send("1")
	s.quiet(80 * time.Millisecond)

	type times struct{ first, last, cpu []time.Duration }
	measured := make([][2]times, len(keyKinds))
	var cpu [2]time.Duration
	var sent [2]int64
	const span = 30 * time.Second
	for phase := range 2 {
		if phase == 1 {
			stop := f.endJobs(50)
			defer stop()
		}
		for range max(2, l.rounds) {
			for i, kind := range keyKinds {
				s.send(kind.before...)
				for _, key := range kind.keys {
					before, _ := readProc(s.cmd.Process.Pid)
					if first, last, ok := s.press(key); ok {
						after, _ := readProc(s.cmd.Process.Pid)
						t := &measured[i][phase]
						t.first, t.last = append(t.first, first), append(t.last, last)
						t.cpu = append(t.cpu, after.cpu-before.cpu)
					}
				}
				s.send(kind.after...)
			}
		}
		s.quiet(80 * time.Millisecond)
		time.Sleep(3 * time.Second)
		if cpu[phase], sent[phase], _, err = s.useOver(span); err != nil {
			return err
		}
	}
	p, err := readProc(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	r.table("keys", "presses", "first byte", "last byte", "CPU", "while jobs end: first byte", "last byte", "CPU")
	cell := func(d []time.Duration) string {
		return fmt.Sprintf("%.0f, %.0f ms", float64(median(d))/1e6, float64(quantile(d, 1))/1e6)
	}
	for i, kind := range keyKinds {
		idle, busy := measured[i][0], measured[i][1]
		r.row(kind.what, fmt.Sprint(len(idle.first)+len(busy.first)), cell(idle.first), cell(idle.last),
			cell(idle.cpu), cell(busy.first), cell(busy.last), cell(busy.cpu))
	}
	fmt.Fprintln(&r.b)
	r.table("the screen, over 30 s", "CPU of a core", "bytes/s")
	phases := []string{"no job ends, 200 hosts report their load", "50 jobs end and 50 start each second"}
	for phase, what := range phases {
		r.row(what, share(cpu[phase], span), fmt.Sprint(sent[phase]/int64(span.Seconds())))
	}
	r.say("It has %s resident at the end, at most %s.", mib(p.rss), mib(p.peak))
	return nil
}

// send sends keys, and waits after each until nothing follows from it.
func (s *watched) send(keys ...string) {
	for _, key := range keys {
		s.person.WriteString(key)
		time.Sleep(80 * time.Millisecond) // after esc, the program waits for the rest of a sequence
		s.quiet(80 * time.Millisecond)
	}
}

// simulatedFleet is a run on simulated hosts.
type simulatedFleet struct {
	dir string

	mu      sync.Mutex
	workers []*fleetWorker
}

// dispatchFleet dispatches a run of keyJobs jobs in this process until end is called.
func (l *lab) dispatchFleet() (f *simulatedFleet, end func(), err error) {
	f = &simulatedFleet{dir: l.runDir()}
	if err := bigRun(f.dir, keyJobs/2, keyJobs/2); err != nil {
		return nil, nil, err
	}
	made, err := rundir.Open(f.dir)
	if err != nil {
		return nil, nil, err
	}
	connector := &fleetConnector{slots: keySlots, onConnect: func(w *fleetWorker) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.workers = append(f.workers, w)
	}, changeHeartbeat: func(b *hosts.Heartbeat) {
		b.Busy = keySlots * rand.Float64()
		b.Ours, b.Load = b.Busy, [3]float64{b.Busy, b.Busy, b.Busy}
		b.MemFree -= rand.Int64N(b.MemFree)
	}}
	running, err := l.dispatch(made, run.Options{Inventory: simulatedHosts("ws%02d", keyHosts, keySlots),
		Connector: fixed(connector)})
	if err != nil {
		return nil, nil, err
	}
	acknowledge(running)
	return f, func() { running.Close() }, nil
}

// endJobs ends jobs, at a number per second, until stop is called.
func (f *simulatedFleet) endJobs(perSecond int) (stop func()) {
	tick, done := time.NewTicker(time.Second/time.Duration(perSecond)), make(chan struct{})
	go func() {
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			f.mu.Lock()
			w := f.workers[n%len(f.workers)]
			f.mu.Unlock()
			w.endOldest()
		}
	}()
	return func() { close(done) }
}
