package run

import (
	"os"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// stuckDisk is a disk that hangs when a file is created.
type stuckDisk struct {
	rundir.Disk
	asked, free chan struct{}
}

func (d stuckDisk) OpenFile(path string, flag int, mode os.FileMode) (rundir.File, error) {
	if flag&os.O_CREATE != 0 {
		close(d.asked)
		<-d.free
	}
	return d.Disk.OpenFile(path, flag, mode)
}

// TestHostDirsDoNotHang checks that a run directory that hangs while a host's directory is recorded
// does not block numKeepingOutputs, which a dispatcher calls when it ends. A host that failed has no directory.
func TestHostDirsDoNotHang(t *testing.T) {
	run := disktest.NewRun(t)
	disk := stuckDisk{run.Disk, make(chan struct{}), make(chan struct{})}
	run.Disk = disk
	p := &hostDirs{run: run}
	p.store("ws00", &hosts.Hello{Error: "work_dir is full"})
	p.store("ws01", &hosts.Hello{Dir: "/run", Shared: true})
	done := make(chan struct{})
	go func() {
		p.store("ws02", &hosts.Hello{Dir: "/own"})
		close(done)
	}()
	<-disk.asked
	attempts := []*jobs.Attempt{{Host: "ws01", State: jobs.AttemptExited},
		{Host: "ws02", State: jobs.AttemptSuperseded}}
	table := &jobs.Table{Specs: jobstest.Specs(1), Jobs: []jobs.Job{{Attempts: attempts}}}
	if n := p.numKeepingOutputs(table); n != 0 {
		t.Errorf("%d hosts keep outputs, want 0: no attempt has run on ws02", n)
	}
	attempts[1].State = jobs.AttemptExited
	if n := p.numKeepingOutputs(table); n != 1 {
		t.Errorf("%d hosts keep outputs, want 1", n)
	}
	close(disk.free)
	<-done
	if got := run.HostDirs(); len(got) != 1 || got["ws02"] != "ws02:/own" {
		t.Errorf("HostDirs: got %q, want only that of ws02", got)
	}
}

// TestResultsOnHostsAreOnlyReadForMetrics checks that a resumed run looks for results whose outputs only
// their hosts have if it has declared metrics, and otherwise keeps none of them in memory.
func TestResultsOnHostsAreOnlyReadForMetrics(t *testing.T) {
	run := disktest.NewRun(t)
	if err := run.WriteHostDir("ws01", "/own"); err != nil {
		t.Fatal(err)
	}
	attempt := &jobs.Attempt{ID: jobs.AttemptID{Job: 1, N: 1}, Host: "ws01", State: jobs.AttemptExited,
		Outcome: &jobs.Outcome{}}
	o := &Owned{Run: run, Table: &jobs.Table{Specs: jobstest.Specs(1),
		Jobs: []jobs.Job{{Spec: jobstest.Specs(1)[0], State: jobs.Succeeded, Counted: 1,
			Attempts: []*jobs.Attempt{attempt}}}}}
	known := []*hosts.Host{{Name: "ws01"}}
	if list := o.resultsOnHosts(known); len(list) != 0 {
		t.Errorf("without metrics: %d results, want none", len(list))
	}
	run.Settings.Options = map[string]any{metrics.Option: []string{"acc"}}
	if list := o.resultsOnHosts(known); len(list) != 1 || list[0].Stdout != "ws01:/own/attempts/000/1.1.out" {
		t.Errorf("with a metric: %+v", list)
	}
}
