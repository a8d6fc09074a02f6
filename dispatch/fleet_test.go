package dispatch

import (
	"context"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/link"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestFleetOverSSH checks a dispatcher of many hosts over ssh, whose ends are simulated in this process:
// links need no threads, and all of them can be cut at once. Then hosts are dialed again, less than twice
// on average, and every job ends once.
func TestFleetOverSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		hosttest.LeaveOut(t, "%v", err)
	}
	n := polltest.Scale(200, 200, 1000)
	f, err := hosttest.NewFleet(t.TempDir(), &hosttest.Hostiles{Run: 10 * time.Millisecond, Forgets: true})
	polltest.Must(t, err)
	defer f.Close()
	config, err := link.LoadSSHConfig(f.ConfigFile)
	polltest.Must(t, err)
	var list []*hosts.Host
	for i := range n {
		list = append(list, hosttest.FleetHost(f.Port(), i))
	}
	threadsBefore := pprof.Lookup("threadcreate").Count()
	d, err := Start(Config{
		RunUID: "u1", RunName: "test", RunDir: "/run", Sched: sched.Config{Seed: 1},
		Inventory:  &hosts.Inventory{Hosts: list},
		Connector:  helper.New(helper.Options{Opener: link.NewSSH(link.SSHOptions{Config: config})}),
		Journal:    new(jobstest.Journal),
		Table:      &jobs.Table{},
		StoreSpecs: func([]*jobs.Spec) error { return nil },
		Open:       hosts.Open{Run: "u1", Epoch: 1},
	})
	polltest.Must(t, err)
	numUp := func() (up int) {
		for _, h := range d.Snapshot().Hosts {
			if h.State == jobs.HostUp && h.LastHeartbeat > 0 {
				up++
			}
		}
		return up
	}
	ended := map[jobs.ID]bool{}
	awaitResults := func(k int) {
		for range k {
			r, err := d.Next(context.Background())
			polltest.Must(t, err)
			if r.State != jobs.Succeeded || ended[r.Job] {
				t.Errorf("job %d is %v, ended before: %v", r.Job, r.State, ended[r.Job])
			}
			ended[r.Job] = true
			d.Ack(r.Seq)
		}
	}
	polltest.Until(t, "all hosts are up", func() bool { return numUp() == n })
	threads := pprof.Lookup("threadcreate").Count() - threadsBefore
	if most := runtime.GOMAXPROCS(0) + n/4; threads > most {
		t.Errorf("%d more threads with %d links, want at most %d", threads, n, most)
	}
	before := f.NumAccepted()
	polltest.Must(t, d.Submit(jobstest.Specs(16*n), true))
	awaitResults(4 * n)
	f.Cut()
	awaitResults(12 * n)
	if dials := f.NumAccepted() - before; dials < 1 || dials > 2*n {
		t.Errorf("%d dials after %d links were cut", dials, n)
	}
	_, err = d.Close()
	polltest.Must(t, err)
}
