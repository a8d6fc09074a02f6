package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestListsCountOnlyIfAsked checks that a list that nobody has requested changes nothing: no
// attempt is adopted, the journal does not count as damaged, and launching goes on. Nor does a
// second answer to one request count.
func TestListsCountOnlyIfAsked(t *testing.T) {
	s := continuedStage(t, &jobs.Table{Epoch: 2}, Config{}, 3, testHost("a", 1), testHost("b", 1))
	s.up("a", "b")
	s.reportList("a", "", hosts.Dead, nil, true)
	for range 2 {
		s.reportList("a", "1.7 2.7", hosts.IsRunning, nil, true)
		s.reportList("a", "3.7", hosts.HasExited, &succeeded, true)
	}
	want(t, "damaged", s.c.table.Damaged, false)
	s.reportList("b", "", hosts.Dead, nil, true)
	want(t, "job 1", s.history(1), "running: a launching")
	want(t, "job 2", s.history(2), "running: b launching")
	s.wantState(3, jobs.Queued)
}

// TestListDoesNotMoveAttempts checks that a host that answers a request after damage cannot take
// attempts that have a record, end other attempts of the jobs, or make the table large.
func TestListDoesNotMoveAttempts(t *testing.T) {
	s := damagedStage(t, Config{}, 2, testHost("a", 1), testHost("b", 1))
	s.up("a", "b")
	s.reportList("a", "1.1", hosts.IsRunning, nil, true)
	want(t, "job 1", s.history(1), "running: a running")
	m := &hosts.Listed{Last: true, All: true, Jobs: []hosts.ProbedJob{
		{Attempt: jobs.AttemptID{Job: 1, N: 1}, Answer: hosts.HasExited, Outcome: &succeeded},
		{Attempt: jobs.AttemptID{Job: 1, N: 2}, Answer: hosts.IsRunning, Started: 1},
	}}
	want(t, "ended", formatCommands[Kill](s.step(HostListed{"b", m})),
		"{b [1.2] its job has another attempt}")
	s.wantState(1, jobs.Running)
	want(t, "1.1 is", s.job(1).Attempts[0].State, jobs.AttemptRunning)
}

// TestInspectionNeedsTheDirectory checks that what a host tells of another host's attempts counts
// only if it proves with that host's machine id that it has read the directory.
func TestInspectionNeedsTheDirectory(t *testing.T) {
	for _, tt := range []struct {
		name, id string
		want     jobs.JobState
	}{
		{"a liar", "", jobs.Running},
		{"a liar that guesses", "a", jobs.Running},
		{"the same directory", "id of a", jobs.Succeeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
			for _, name := range []string{"a", "b"} {
				s.connect(name, hosts.Hello{Slots: 1, MemBytes: 8 << 30, Dir: "/far", Uptime: s.at, Machine: "id of " +
					name})
			}
			s.submitPlain(1)
			s.started("a", "1.1")
			s.step(hostDown("a", hosts.Unreachable, "connection reset"))
			asked := s.waitInspecting(20*time.Second, func(l Inspect) *hosts.Inspected {
				return &hosts.Inspected{Host: "a", Machine: tt.id, Jobs: []hosts.ExitedJob{
					{Attempt: jobs.AttemptID{Job: 1, N: 1}, Outcome: succeeded},
				}}
			}, "b")
			if len(asked) == 0 {
				t.Fatal("nobody was asked")
			}
			s.wantState(1, tt.want)
		})
	}
}

// TestTombstoneOfAnotherMachineProvesNothing checks that an attempt is not taken for one that never started because
// of a tombstone in a directory in which another machine has the name of its host.
func TestTombstoneOfAnotherMachineProvesNothing(t *testing.T) {
	for _, tt := range []struct{ id, want string }{
		{"id of a", "running: a superseded, b launching"},
		{"", "running: a superseded, b launching"},
		{"id of the machine before", "running: a launching"},
	} {
		s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
		s.connect("a", hosts.Hello{Slots: 1, MemBytes: 8 << 30, Shared: true, Uptime: s.at, Machine: "id of a"})
		s.submitPlain(1)
		s.connectIn("/run", true, "b")
		s.step(hostDown("a", hosts.Unreachable, "connection reset"))
		s.waitInspecting(20*time.Second, func(l Inspect) *hosts.Inspected {
			return &hosts.Inspected{Host: "a", Machine: tt.id, Never: []jobs.AttemptID{{Job: 1, N: 1}}}
		}, "b")
		want(t, "with the machine file "+tt.id, s.history(1), tt.want)
	}
}
