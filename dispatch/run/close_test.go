package run

import (
	"testing"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestUnsubmittedJobsAreLeft checks a run that was drained or stopped before all of its jobs were
// submitted. It counts as stopped, with jobs left, whatever the states of the submitted jobs are.
func TestUnsubmittedJobsAreLeft(t *testing.T) {
	specs := jobstest.Specs(5)
	for accepted := range 6 {
		table := &jobs.Table{Specs: specs[:accepted:accepted]}
		must(t, jobs.Fold(table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: accepted}))
		for i := range accepted {
			must(t, jobs.Fold(table, &jobs.Record{Kind: jobs.KindJob, Job: jobs.ID(i + 1), Next: jobs.Canceled,
				Seq: int64(i + 1)}))
		}
		r := &Run{table: table, stored: specs}
		r.addUnsubmitted()
		if len(table.Jobs) != 5 || table.Counts[jobs.Queued] != 5-accepted {
			t.Errorf("%d accepted: %d jobs, %d queued", accepted, len(table.Jobs), table.Counts[jobs.Queued])
		}
		want := Stopped
		if accepted == 5 {
			want = Failed
		}
		if got := StateOf(sched.Drained, table.Counts, false, false, halt.Rule{}); got != want {
			t.Errorf("%d accepted: %s, want %s", accepted, got, want)
		}
	}
}

// TestSlotTimeCountsHostsThatAreUp checks that the efficiency counts only slots of hosts that were
// up, from the time when they were.
func TestSlotTimeCountsHostsThatAreUp(t *testing.T) {
	at := time.Unix(1000, 0)
	u := slotTime{last: at}
	view := func(slots ...int) *dispatch.Snapshot {
		s := &dispatch.Snapshot{}
		for _, n := range slots {
			s.Hosts = append(s.Hosts, sched.HostView{HostStatus: jobs.HostStatus{State: jobs.HostUp}, Slots: n})
		}
		s.Hosts = append(s.Hosts, sched.HostView{HostStatus: jobs.HostStatus{State: jobs.HostBackingOff}, Slots: 99})
		return s
	}
	u.add(at.Add(2*time.Second), view(4), 0)
	u.add(at.Add(3*time.Second), view(4, 4), 0)
	u.add(at.Add(5*time.Second), view(4, 4), 6)
	if got, most := u.total(); got != (2*4+1*8+2*8)*time.Second || most != 8 {
		t.Errorf("%v of slot time, at most %d", got, most)
	}
}

// TestSlotTimeLeavesOutWaiting checks that the efficiency does not count slots that are free because
// more jobs have yet to come, nor the time after the last job, in which a reader of results may be waited
// for.
func TestSlotTimeLeavesOutWaiting(t *testing.T) {
	at := time.Unix(1000, 0)
	view := func(queued, running int) *dispatch.Snapshot {
		s := &dispatch.Snapshot{InputOpen: true, Hosts: []sched.HostView{
			{HostStatus: jobs.HostStatus{State: jobs.HostUp}, Slots: 4, Running: running}}}
		s.Counts[jobs.Queued], s.Counts[jobs.Running] = queued, running
		return s
	}
	u := slotTime{last: at}
	add := func(s *dispatch.Snapshot, after time.Duration) {
		at = at.Add(after)
		u.add(at, s, 0)
	}
	add(view(5, 4), time.Second)
	add(view(0, 1), time.Second) // the number is not known in between, so the larger one counts
	add(view(0, 1), 10*time.Minute)
	add(view(0, 0), time.Second)
	add(view(0, 0), 10*time.Minute)
	if got, most := u.total(); got != (4+4+600+1)*time.Second || most != 4 {
		t.Errorf("got %v of slot time, on at most %d; want 10m9s on at most 4", got, most)
	}
	last := view(0, 1) // the last jobs leave slots free
	last.InputOpen = false
	over := view(0, 0)
	over.InputOpen, over.Finished = false, true
	u = slotTime{last: at}
	add(last, time.Second)
	add(over, time.Second)
	add(over, 10*time.Minute)
	if got, most := u.total(); got != (4+4)*time.Second || most != 4 {
		t.Errorf("got %v of slot time, on at most %d; want 8s on at most 4", got, most)
	}
}
