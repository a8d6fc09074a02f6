package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

const (
	fleetHosts = 1000
	fleetSlots = 128
	fleetJob   = 60 * time.Second
)

// newRun creates a run without jobs.
func (l *lab) newRun(name string) *rundir.Run {
	made, err := rundir.CreateAt(l.runDir(), name, rundir.Settings{Created: time.Now(), Cwd: l.dir})
	if err != nil {
		panic(err) // a benchmark on a full disk would measure nothing
	}
	return made
}

// dispatch dispatches a run in this process.
func (l *lab) dispatch(made *rundir.Run, o run.Options) (*run.Run, error) {
	owned, err := run.Take(context.Background(), made, journal.TakeOptions{})
	if err != nil {
		return nil, err
	}
	o.SocketBase = l.dir
	running, err := run.Start(context.Background(), owned, o)
	if err != nil {
		owned.Release()
	}
	return running, err
}

// fixed is an option of a run: the connector that it uses.
func fixed(c hosts.Connector) func(func(host, line string)) (hosts.Connector, error) {
	return func(func(host, line string)) (hosts.Connector, error) { return c, nil }
}

// lines is an option of a run: its n jobs, numbered from 1.
func lines(n int, command func(i int) string) func() (jobs.Line, error) {
	i := 0
	return run.JobLines(func() (*jobs.Spec, error) {
		if i == n {
			return nil, io.EOF
		}
		i++
		return &jobs.Spec{Command: command(i), Options: jobs.NoOptions}, nil
	})
}

// trainCommand is the command of a job that simulated hosts are said to run.
func trainCommand(i int) string {
	return fmt.Sprintf("python train.py --C %d --gamma %d --seed %d", i/1000, i%1000, i%7)
}

// fleet measures a dispatcher of many hosts. The hosts are simulated in this process, so the
// measured CPU time and memory are those of the dispatcher and of all simulated hosts. The
// measurement excludes ssh and the encoding and decoding of messages.
func fleet(l *lab, r *report) error {
	const warmUp, span = 20 * time.Second, 30 * time.Second
	const numJobs = fleetHosts*fleetSlots + int((warmUp+2*span)/fleetJob+1)*fleetHosts*fleetSlots
	running, err := l.dispatch(l.newRun("fleet"), run.Options{
		Inventory: simulatedHosts("node%04d", fleetHosts, fleetSlots),
		Connector: fixed(&fleetConnector{slots: fleetSlots, took: func() time.Duration { return fleetJob }}),
		Lines:     lines(numJobs, trainCommand),
	})
	if err != nil {
		return err
	}
	results, _ := acknowledge(running)
	begin := usedCPU(syscall.RUSAGE_SELF)
	time.Sleep(warmUp)
	before, done := usedCPU(syscall.RUSAGE_SELF), results.Load()
	time.Sleep(span)
	after, all := usedCPU(syscall.RUSAGE_SELF), results.Load()
	p, err := readProc(os.Getpid())
	if err != nil {
		return err
	}
	r.table("measure", "goal", "measured")
	r.row("results a second", fmt.Sprintf("%.0f", fleetHosts*fleetSlots/fleetJob.Seconds()),
		fmt.Sprintf("%.0f", float64(all-done)/span.Seconds()))
	r.row("CPU, simulated hosts included", "below 1 core",
		fmt.Sprintf("%.2f cores", (after-before).Seconds()/span.Seconds()))
	r.row(fmt.Sprintf("CPU of the first %.0f s, in which all slots are filled", warmUp.Seconds()), "",
		fmt.Sprintf("%.1f s", (before-begin).Seconds()))
	r.row("resident memory, simulated hosts included", "below 500 MiB", mib(p.rss)+", at most "+mib(p.peak))
	_, err = running.Close() // Close leaves running jobs alone; there are none
	return err
}

// acknowledge receives and counts the results of a run until it ends.
func acknowledge(running *run.Run) (results *atomic.Int64, ended <-chan struct{}) {
	results = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			result, err := running.Next(context.Background())
			if err != nil {
				return
			}
			running.Ack(result.Seq)
			results.Add(1)
		}
	}()
	return results, done
}

// simulatedHosts returns an inventory of n hosts, whose numbers are in their names.
func simulatedHosts(name string, n, slots int) *hosts.Inventory {
	list := make([]*hosts.Host, n)
	for i := range list {
		list[i] = &hosts.Host{Name: fmt.Sprintf(name, i), Link: "local", Slots: hosts.SlotRule{Fixed: slots}, Weight: 1,
			GPUs: -1}
	}
	return &hosts.Inventory{Hosts: list}
}

// fleetConnector connects to simulated hosts.
type fleetConnector struct {
	slots int
	// took returns how long a job that starts now takes. It must not block. nil: a job ends when
	// endOldest is called.
	took func() time.Duration
	// onConnect is called with each host; nil: nobody needs them.
	onConnect func(*fleetWorker)
	// changeHeartbeat changes the heartbeats of all hosts before they are reported; nil: none.
	changeHeartbeat func(*hosts.Heartbeat)
}

func (c *fleetConnector) Connect(_ context.Context, h *hosts.Host, _ *hosts.Open) (hosts.Worker, error) {
	w := c.newWorker(hosts.Hello{BootID: h.Name, Shared: true, Dir: "/run"})
	if c.onConnect != nil {
		c.onConnect(w)
	}
	return w, nil
}

// newWorker completes the hello of a host.
func (c *fleetConnector) newWorker(hello hosts.Hello) *fleetWorker {
	hello.Version, hello.OS, hello.WallClock = hosts.ProtocolVersion, "linux", jobs.StampOf(time.Now())
	hello.Cores, hello.Slots, hello.MemBytes = c.slots, c.slots, 1<<38
	return &fleetWorker{fleetConnector: c, first: c.slots, Worker: hosttest.NewWorker(hello, 0, c.changeHeartbeat)}
}

// fleetWorker runs nothing and reports that each job took the time of its connector. The first jobs
// are shortened by a random time, so that jobs end evenly from the start.
type fleetWorker struct {
	*hosttest.Worker
	*fleetConnector

	mu      sync.Mutex
	queue   []jobs.AttemptID
	running []hosts.StartedJob // in the order in which they started
	first   int                // number of jobs still to be shortened
	slot    int
}

func (w *fleetWorker) Send(ms ...hosts.Message) error {
	for _, m := range ms {
		switch m := m.(type) {
		case *hosts.Launch:
			w.mu.Lock()
			for i := range m.Jobs {
				w.queue = append(w.queue, m.Jobs[i].Attempt)
			}
			started := w.fill()
			w.mu.Unlock()
			if len(started) > 0 {
				w.Say(&hosts.Started{Jobs: started})
			}
		case *hosts.Withdraw:
			w.Say(&hosts.Withdrawn{Attempts: w.withdraw(m.Attempts)})
		case *hosts.Ping:
			w.Answer(m)
		case *hosts.Bye:
			w.Cut(nil)
		}
	}
	return nil
}

// fill starts queued jobs on the free slots. The caller holds w.mu.
func (w *fleetWorker) fill() (started []hosts.StartedJob) {
	for len(w.queue) > 0 && len(w.running) < w.slots {
		id := w.queue[0]
		w.queue = w.queue[1:]
		w.slot = w.slot%w.slots + 1
		job := hosts.StartedJob{Attempt: id, Slot: w.slot, At: jobs.StampOf(time.Now())}
		started, w.running = append(started, job), append(w.running, job)
		if w.took == nil {
			continue
		}
		took := w.took()
		if w.first > 0 {
			w.first--
			took = rand.N(took)
		}
		time.AfterFunc(took, func() { w.end(job.Attempt) })
	}
	return started
}

// endOldest ends the job that has run longest, if one runs.
func (w *fleetWorker) endOldest() {
	w.mu.Lock()
	var id jobs.AttemptID
	if len(w.running) > 0 {
		id = w.running[0].Attempt
	}
	w.mu.Unlock()
	w.end(id)
}

// end ends a job, if it runs.
func (w *fleetWorker) end(id jobs.AttemptID) {
	w.mu.Lock()
	i := slices.IndexFunc(w.running, func(j hosts.StartedJob) bool { return j.Attempt == id })
	if i < 0 {
		w.mu.Unlock()
		return
	}
	job := w.running[i]
	w.running = slices.Delete(w.running, i, i+1)
	started := w.fill()
	w.mu.Unlock()
	end := jobs.StampOf(time.Now())
	w.Say(&hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: job.Attempt, Slot: job.Slot,
		Outcome: jobs.Outcome{Started: job.At, Ended: end, CPU: end.Sub(job.At), MaxRSSBytes: 1 << 28}}}})
	if len(started) > 0 {
		w.Say(&hosts.Started{Jobs: started})
	}
}

// withdraw takes back jobs that have not started.
func (w *fleetWorker) withdraw(ids []jobs.AttemptID) (taken []jobs.AttemptID) {
	asked := map[jobs.AttemptID]bool{}
	for _, id := range ids {
		asked[id] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = slices.DeleteFunc(w.queue, func(id jobs.AttemptID) bool {
		if asked[id] {
			taken = append(taken, id)
		}
		return asked[id]
	})
	return taken
}
