package sched

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

const hpcTime = time.Hour

// allocatedStage returns a stage with an allocation of one hour with the nodes n1 and n2. Both
// nodes are up and have two slots each.
func allocatedStage(t *testing.T, opts ...*jobs.Options) *stage {
	t.Helper()
	p := testProvider()
	p.Slurm = &hosts.Slurm{Nodes: 2, Time: hpcTime, Margin: 5 * time.Minute}
	s := newProviderStage(t, Config{Tries: 1}, p)
	s.nodes = []string{"n1", "n2"}
	s.submit(!strings.Contains(t.Name(), "StartsBefore"), opts...)
	wantContains(t, "commands", formatCommands[CreateInstance](s.answerList()), "{cloud dcs-r-1}")
	s.step(InstanceCreated{Name: "dcs-r-1"})
	s.reportAllocation(hpcTime)
	for _, node := range []string{"dcs-r-1.n1", "dcs-r-1.n2"} {
		s.connect(node, hosts.Hello{Cores: 3, Slots: 2, Shared: true})
	}
	return s
}

// reportAllocation reports a list of instances in which the allocation has the given time left. It
// first waits until a list is requested.
func (s *stage) reportAllocation(left time.Duration) []Command {
	s.t.Helper()
	s.waitForListing("dcs-r-1.n1", "dcs-r-1.n2")
	ev := s.listOf("dcs-r-1")
	ev.Left = map[string]time.Duration{"dcs-r-1": left}
	return s.step(ev)
}

// success1ns is the outcome of a job that succeeded and took 1 ns.
var success1ns = jobs.Outcome{Started: 1, Ended: 2}

// TestEachNodeOfAnAllocationIsAHost checks that each node of an allocation is a host, and that all
// of its nodes are one instance (X3).
func TestEachNodeOfAnAllocationIsAHost(t *testing.T) {
	s := allocatedStage(t, repeatOptions(4, jobs.NoOptions)...)
	want(t, "records", s.instanceRecords("dcs-r-1"), "creating up")
	s.started("dcs-r-1.n1", "1.1 2.1")
	s.started("dcs-r-1.n2", "3.1 4.1")
	s.ended("dcs-r-1.n1", "1.1 2.1", success1ns)
	want(t, "while a node is in use",
		formatCommands[TerminateInstance](s.wait(10*time.Minute, "dcs-r-1.n1", "dcs-r-1.n2")), "")
	s.ended("dcs-r-1.n2", "3.1", success1ns)
	commands := s.ended("dcs-r-1.n2", "4.1", success1ns)
	want(t, "at the end", formatCommands[Leave](commands), "{dcs-r-1.n1} {dcs-r-1.n2}")
	want(t, "when both have left", formatCommands[TerminateInstance](s.wait(2*time.Second)), "{cloud dcs-r-1}")
}

// TestOutputsAreFetchedBeforeTermination checks that the outputs of each node without a shared
// directory are fetched before the allocation is terminated (X3).
func TestOutputsAreFetchedBeforeTermination(t *testing.T) {
	s := allocatedStage(t, repeatOptions(4, jobs.NoOptions)...)
	for _, node := range []string{"dcs-r-1.n1", "dcs-r-1.n2"} {
		s.c.byName[node].hello.Shared = false
	}
	s.started("dcs-r-1.n1", "1.1 2.1")
	s.started("dcs-r-1.n2", "3.1 4.1")
	s.ended("dcs-r-1.n1", "1.1 2.1", success1ns)
	s.ended("dcs-r-1.n2", "3.1", success1ns)
	want(t, "first", formatCommands[FetchInstance](s.ended("dcs-r-1.n2", "4.1", success1ns)), "{dcs-r-1.n1 [1.1 2.1]}")
	want(t, "then", formatCommands[FetchInstance](s.step(InstanceFetched{Name: "dcs-r-1.n1"})),
		"{dcs-r-1.n2 [3.1 4.1]}")
	s.step(InstanceFetched{Name: "dcs-r-1.n2"})
	want(t, "at last", formatCommands[TerminateInstance](s.wait(2*time.Second)), "{cloud dcs-r-1}")
}

// TestStartsBeforeTheEnd checks that a job starts only if its timeout or its estimate ends before
// the allocation does. A job with neither does not start within the margin (X3).
func TestStartsBeforeTheEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		opts jobs.Options
		left time.Duration
		want bool
	}{
		{"without either, in time", jobs.Options{}, 6 * time.Minute, true},
		{"without either, within the margin", jobs.Options{}, 5 * time.Minute, false},
		{"its timeout ends before", jobs.Options{Timeout: 20 * time.Minute}, 25 * time.Minute, true},
		{"its timeout ends later", jobs.Options{Timeout: 20 * time.Minute}, 20 * time.Minute, false},
		{"short, within the margin", jobs.Options{Timeout: time.Minute}, 2 * time.Minute, true},
		{"its estimate ends before", jobs.Options{Estimate: 20 * time.Minute}, 25 * time.Minute, true},
		{"its estimate ends later", jobs.Options{Estimate: 20 * time.Minute}, 20 * time.Minute, false},
		{"its estimate, not its timeout, ends before",
			jobs.Options{Estimate: 20 * time.Minute, Timeout: 40 * time.Minute}, 25 * time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Occupies all slots.
			s := allocatedStage(t, slices.Repeat([]*jobs.Options{{Timeout: 50 * time.Minute}}, 4)...)
			s.started("dcs-r-1.n1", "1.1 2.1")
			s.started("dcs-r-1.n2", "3.1 4.1")
			s.ended("dcs-r-1.n1", "1.1 2.1", success1ns) // jobs 3 and 4 keep the allocation in use
			s.reportAllocation(c.left)
			s.submit(true, &c.opts)
			why := s.c.Why(s.now(), 5)
			if got := formatCommands[Launch](s.commands) != ""; got != c.want {
				t.Errorf("launched: %t, want %t; %s", got, c.want, why)
			}
			if !c.want {
				wantContains(t, "why", why, "allocation")
			}
		})
	}
}

// TestJobsAreStoppedBeforeTheAllocationEnds checks that jobs that still run shortly before the end
// of an allocation are stopped and queued again without using up a try. The allocation is then
// terminated (X3).
func TestJobsAreStoppedBeforeTheAllocationEnds(t *testing.T) {
	s := allocatedStage(t, jobs.NoOptions)
	s.started("dcs-r-1.n1", "1.1")
	want(t, "before", formatCommands[Kill](s.wait(hpcTime-time.Minute, "dcs-r-1.n1", "dcs-r-1.n2")), "")
	s.reportAllocation(stopBeforeEnd + 20*time.Second)
	wantContains(t, "in the last moments", formatCommands[Kill](s.wait(30*time.Second, "dcs-r-1.n1", "dcs-r-1.n2")),
		"its allocation ends")
	s.ended("dcs-r-1.n1", "1.1", jobs.Outcome{Started: 1, Ended: 2, Signal: "SIGTERM", Stopped: true})
	s.wantState(1, jobs.Queued)
	want(t, "tries are used up", s.job(1).Failures, 0)
	commands := s.wait(10*time.Second, "dcs-r-1.n1", "dcs-r-1.n2")
	wantContains(t, "then", formatCommands[TerminateInstance](commands), "{cloud dcs-r-1}")
	wantContains(t, "and another is created", formatCommands[CreateInstance](commands), "{cloud dcs-r-2}")
}

// TestNodesDieUnderAJob checks that a job is not charged when its nodes die repeatedly, as on a
// preemptible partition. On a workstation it would be charged.
func TestNodesDieUnderAJob(t *testing.T) {
	s := allocatedStage(t, jobs.NoOptions)
	for n := 1; n <= maxDeathsOnInstances; n++ {
		want(t, "failures", s.job(1).Failures, 0)
		s.wantState(1, jobs.Running)
		a := s.job(1).Last()
		s.hostDies(a.Host, a.ID.String())
	}
	s.wantState(1, jobs.Failed)
	wantContains(t, "reason", s.job(1).Reason, "died under it 10 times")
}

// TestUnlistedAllocationIsNotUsed checks that an allocation is no longer used once it is not
// listed, even if its nodes still answer. A job that ends by SIGTERM, as at the end of an
// allocation, has not failed unless this happens too often (X3).
func TestUnlistedAllocationIsNotUsed(t *testing.T) {
	s := allocatedStage(t, repeatOptions(2, jobs.NoOptions)...)
	s.started("dcs-r-1.n1", "1.1 2.1")
	ended := jobs.Outcome{Started: 1, Ended: 2, Signal: "SIGTERM"}
	for range maxDeathsOnInstances {
		want(t, "tries used up by ends by SIGTERM", s.job(1).Failures, 0)
		a := s.job(1).Last()
		s.started(a.Host, a.ID.String())
		s.ended(a.Host, a.ID.String(), ended)
	}
	s.wantState(1, jobs.Failed)
	var commands []Command
	for range 2 {
		s.waitForListing("dcs-r-1.n1", "dcs-r-1.n2")
		s.step(InstancesListed{Provider: "cloud"})
		commands = append(commands, s.commands...)
	}
	wantContains(t, "after it is not listed", formatCommands[Kill](commands), "its allocation ends")
}

// TestAllocationMayBePendingForLong checks that an allocation may be pending for a long time. It is
// not given up, no other allocation is created for the same jobs, and the reason is shown (X3).
func TestAllocationMayBePendingForLong(t *testing.T) {
	p := testProvider()
	p.Slurm = &hosts.Slurm{Nodes: 2, Time: hpcTime, Margin: 5 * time.Minute}
	s := newProviderStage(t, Config{GiveUpAfter: time.Minute}, p)
	s.submit(true, jobs.NoOptions)
	s.answerList()
	s.step(InstanceCreated{Name: "dcs-r-1"})
	for range 1000 {
		s.wait(10 * time.Second)
		if s.c.provisions.providers[0].listing {
			s.step(InstancesListed{Provider: "cloud", Names: []string{"dcs-r-1"},
				Pending: map[string]string{"dcs-r-1": "Resources"}})
		}
	}
	want(t, "records", s.instanceRecords("dcs-r-1"), "creating")
	want(t, "another", s.instanceRecords("dcs-r-2"), "")
	if v := s.c.Hosts()[0]; v.State != jobs.HostStarting ||
		!strings.HasPrefix(v.Reason, "pending: Resources, for 2h 47m") {
		t.Errorf("shown as %s: %s", v.State, v.Reason)
	}
	want(t, "times that it is told to be pending", s.numEvents("pending: Resources"), 1)
	wantContains(t, "why", s.c.Why(s.now(), 1), "the allocation dcs-r-1 is pending: Resources")
	want(t, "finish", s.finishText(), "")
}

// TestJobLongerThanAllocationsFails checks that a job that is longer than every allocation fails at
// once instead of waiting (X3).
func TestJobLongerThanAllocationsFails(t *testing.T) {
	s := allocatedStage(t, jobs.NoOptions, &jobs.Options{Timeout: 2 * hpcTime})
	s.wantState(2, jobs.Failed)
	wantContains(t, "reason", s.job(2).Reason, "does not fit into the allocations of provider cloud (time = ")
}

// TestBufferedJobsLeaveEndingAllocation checks that buffered jobs that would not end before their
// allocation does are withdrawn (X3).
func TestBufferedJobsLeaveEndingAllocation(t *testing.T) {
	s := allocatedStage(t, repeatOptions(40, jobs.NoOptions)...)
	// Jobs are short, so that more are handed out than there are slots.
	s.started("dcs-r-1.n1", "1.1 2.1")
	s.started("dcs-r-1.n2", "3.1 4.1")
	s.ended("dcs-r-1.n1", "1.1 2.1", jobs.Outcome{Started: 1, Ended: 1 + jobs.Stamp(10*time.Millisecond)})
	s.wait(time.Second, "dcs-r-1.n1", "dcs-r-1.n2")
	waiting := func() int {
		return s.c.hosts[0].numInFlight((*inFlight).isWaiting) + s.c.hosts[1].numInFlight((*inFlight).isWaiting)
	}
	if waiting() == 0 {
		t.Fatal("nothing was handed out ahead of need")
	}
	s.reportAllocation(time.Minute)
	want(t, "attempts that still wait there", waiting(), 0)
}
