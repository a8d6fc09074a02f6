package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// linksLoad is the load of the experiment links: jobs on all slots of all hosts, with a dispatcher that
// may use one core.
type linksLoad struct {
	begin   chan struct{} // closed when the jobs may begin
	ends    atomic.Bool   // there are no more jobs
	numJobs atomic.Int64  // that were read
	results *atomic.Int64 // set before begin is closed
}

// next returns jobs until ends, but not many more than the hosts can run. Jobs come in large groups,
// because the dispatcher makes each group durable that it has read.
func (l *linksLoad) next() (*jobs.Spec, error) {
	<-l.begin
	if l.numJobs.Load()%fleetHosts == 0 {
		for l.numJobs.Load()-l.results.Load() > 3*fleetHosts*fleetSlots && !l.ends.Load() {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if l.ends.Load() {
		return nil, io.EOF
	}
	n := l.numJobs.Add(1)
	return &jobs.Spec{Command: trainCommand(int(n)), Options: jobs.NoOptions}, nil
}

// measure measures the dispatcher with jobs of fleetJob, and then with jobs so short that it is never
// idle.
func (l *linksLoad) measure(end *linksEnd, dir *rundir.Run, running *run.Run, r *report) error {
	const fill, span = 45 * time.Second, 30 * time.Second
	const short = 10 * time.Second
	if err := useOneCore(); err != nil {
		return err
	}
	l.results, _ = acknowledge(running)
	for _, took := range []time.Duration{fleetJob, short} {
		if err := end.ask(took.String()); err != nil {
			return err
		}
		if took == fleetJob {
			close(l.begin)
		} else {
			time.Sleep(fleetJob - fill) // until the longer jobs have ended
		}
		time.Sleep(fill)
		before, done := measureUse(), l.results.Load()
		var oldest time.Duration
		var at time.Time
		for i := range 10 {
			time.Sleep(span / 10)
			age, err := oldestHeartbeat(dir, &at)
			if err != nil {
				return fmt.Errorf("look %d at the heartbeats: %w", i, err)
			}
			oldest = max(oldest, age)
		}
		after, ended := measureUse(), l.results.Load()-done
		cpu := (after.cpu - before.cpu).Seconds()
		what := fmt.Sprintf("%d hosts, %d slots each, jobs of %v: ", fleetHosts, fleetSlots, took)
		r.row(what+"results a second", fmt.Sprintf("%.0f wanted", fleetHosts*fleetSlots/took.Seconds()),
			fmt.Sprintf("%.0f", float64(ended)/span.Seconds()))
		goal := ""
		if took == fleetJob {
			goal = "below 1 core"
		}
		r.row(what+"CPU; of a job", goal,
			fmt.Sprintf("%.2f cores; %.2f ms", cpu/span.Seconds(), 1e3*cpu/float64(ended)))
		r.row(what+"age of the oldest of all heartbeats, one each 3 s", "", fmt.Sprintf("%.2f s", oldest.Seconds()))
		r.row(what+"resident memory", "", mib(after.rss)+", at most "+mib(after.peak))
	}
	l.ends.Store(true)
	return end.ask("1ms")
}

// oldestHeartbeat returns the greatest age of the last heartbeats of all hosts in a state that is newer
// than at, and sets at to its time.
func oldestHeartbeat(dir *rundir.Run, at *time.Time) (oldest time.Duration, err error) {
	s, err := live.Read(dir)
	if err != nil {
		return 0, err
	}
	if s == nil || !s.At.After(*at) {
		return 0, fmt.Errorf("%s is not written any more", rundir.LiveFile)
	}
	*at = s.At
	for i := range s.Hosts {
		oldest = max(oldest, cmp.Or(s.Hosts[i].Heartbeat, hosts.DefaultLostAfter))
	}
	return oldest, nil
}

// useOneCore restricts all threads of this process to one core. With GOMAXPROCS=1 instead, each fsync
// would stop the process until the monitor of the Go runtime notices.
func useOneCore() error {
	cmd := exec.Command("taskset", "-a", "-c", "-p", "0", strconv.Itoa(os.Getpid()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("taskset: %w: %s", err, out)
	}
	return nil
}
