package run

import (
	"context"
	"sync"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// hostDirs stores the directories in which hosts that do not share the run directory keep their
// attempts. It is safe for concurrent use.
type hostDirs struct {
	run *rundir.Run

	mu sync.Mutex
	// Whether the directory of a host is stored, for each host that does not share the run
	// directory.
	stored map[string]bool
}

// storingConnector stores the directory of each host that it connects to, before any job starts
// there. The directory is thus known even if the dispatcher dies right afterwards.
type storingConnector struct {
	hosts.Connector
	dirs *hostDirs
}

func (c storingConnector) Connect(ctx context.Context, h *hosts.Host, open *hosts.Open) (hosts.Worker, error) {
	w, err := c.Connector.Connect(ctx, h, open)
	if err == nil {
		c.dirs.store(h.Name, w.Hello())
	}
	return w, err
}

// retry stores directories that could not be stored before.
func (d *hostDirs) retry(views []sched.HostView) {
	for _, h := range views {
		d.store(h.Name, h.Hello)
	}
}

func (d *hostDirs) store(host string, h *hosts.Hello) {
	if h == nil || h.Shared || h.Error != "" || h.Dir == "" || d.addUnshared(host) {
		return
	}
	// mu is not held, because the run directory may hang. Two callers may write the same text.
	// After an error, paths that are shown later only lack the host.
	err := d.run.WriteHostDir(host, h.Dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stored[host] = d.stored[host] || err == nil
}

// addUnshared records that a host keeps its attempts itself, and reports whether its directory is
// stored.
func (d *hostDirs) addUnshared(host string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	done := d.stored[host]
	jobs.Insert(&d.stored, host, done)
	return done
}

// hasUnshared reports whether there are hosts that do not share the run directory.
func (d *hostDirs) hasUnshared() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.stored) > 0
}

// numKeepingOutputs returns the number of hosts that do not share the run directory and on which
// attempts have run, without instances that are gone.
func (d *hostDirs) numKeepingOutputs(t *jobs.Table) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.stored) == 0 {
		return 0
	}
	keeping := map[string]bool{}
	for j := range t.RowsWithOptions() {
		for _, a := range j.Attempts {
			_, unshared := d.stored[a.Host]
			if unshared && !a.NeverRan() && t.Instances[a.Host].State != jobs.InstanceGone {
				keeping[a.Host] = true
			}
		}
	}
	return len(keeping)
}
