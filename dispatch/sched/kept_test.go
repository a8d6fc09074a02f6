package sched

import (
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

func keeps(h *hosts.Host, kept ...hosts.Kept) *hosts.Host {
	h.Queues = kept
	return h
}

func in(queue string, o jobs.Options) *jobs.Options {
	o.Queue = queue
	return &o
}

// TestKept holds K10: a host, slots of it, or GPUs of it are kept for a queue.
func TestKept(t *testing.T) {
	for _, tt := range []struct {
		name     string
		kept     hosts.Kept
		jobs     []*jobs.Options // job 1 is of no queue
		launched string          // on the host that keeps something
		why      string          // job 1 waits; "": it does not
	}{
		{"the host", hosts.Kept{Queue: "urgent"}, []*jobs.Options{jobs.NoOptions, in("urgent", jobs.Options{})}, "2.1", "a is kept for queue urgent"},
		{"slots", hosts.Kept{Queue: "urgent", Slots: 3}, []*jobs.Options{{Slots: 2}, jobs.NoOptions, jobs.NoOptions}, "2.1", "a is kept for queue urgent slots=3"},
		{"slots in use", hosts.Kept{Queue: "urgent", Slots: 2},
			[]*jobs.Options{{Slots: 3}, in("urgent", jobs.Options{Slots: 2}), jobs.NoOptions, jobs.NoOptions, jobs.NoOptions}, "2.1 3.1 4.1", "no host has so many free"},
		{"GPUs", hosts.Kept{Queue: "urgent", GPUs: 1}, []*jobs.Options{{GPUs: 2}, in("urgent", jobs.Options{})}, "2.1", "the GPUs it needs are in use; a is kept for queue urgent gpus=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := box("b", 4)
			s := newStage(t, Config{}, keeps(box("a", 4), tt.kept), other)
			s.up("b", "a")
			s.submit(false, in("", jobs.Options{Slots: 4, GPUs: 2})) // takes all of b
			want(t, "the first", on(s.orders, "b"), "1.1")
			s.started("b", "1.1")
			for i, o := range tt.jobs {
				tt.jobs[i] = in(o.Queue, *o)
			}
			s.submit(false, tt.jobs...)
			got := strings.Fields(on(s.orders, "a"))
			for i, id := range got { // the first job has number 1 there
				got[i] = string(id[0]-1) + id[1:]
			}
			want(t, "launched", strings.Join(got, " "), tt.launched)
			contains(t, "why", s.c.Why(s.now(), 2), tt.why)
		})
	}
}

// TestKeptFromAll holds that a job for which every host is kept fails with a reason.
func TestKeptFromAll(t *testing.T) {
	for _, tt := range []struct {
		hosts []*hosts.Host
		job   *jobs.Options
		want  string
	}{
		{[]*hosts.Host{keeps(box("a", 1), hosts.Kept{Queue: "urgent"})}, jobs.NoOptions, "host a is kept for queue urgent"},
		{[]*hosts.Host{keeps(box("a", 1), hosts.Kept{Queue: "x"}), keeps(box("b", 1), hosts.Kept{Queue: "y"})}, jobs.NoOptions,
			"every host is kept for other queues; for one, host a is kept for queue x"},
		{[]*hosts.Host{keeps(box("a", 4), hosts.Kept{Queue: "x", Slots: 2})}, &jobs.Options{Slots: 3},
			"it needs 3 slots and host a has 4, of which 2 are kept for queue x slots=2"},
	} {
		s := newStage(t, Config{}, tt.hosts...)
		s.submit(true, tt.job)
		s.wantState(1, jobs.Failed)
		want(t, "reason", s.job(1).Reason, tt.want)
	}
}

// TestKeptLive holds that a change of the inventory counts at once: a host that is kept from
// now on gets no more jobs of other queues, and those that wait on it are asked back.
func TestKeptLive(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.up("a", "b")
	s.submit(false, jobs.NoOptions, jobs.NoOptions, jobs.NoOptions)
	s.step(SetHosts{[]*hosts.Host{keeps(box("a", 1), hosts.Kept{Queue: "urgent"}), box("b", 1)}})
	contains(t, "asked back", said[Withdraw](s.orders), "1.1")
	s.started("a", "1.1")
	want(t, "nothing more there", on(s.ended("a", "1.1", okay), "a"), "")
	s.step(SetHosts{[]*hosts.Host{box("a", 1), box("b", 1)}})
	want(t, "as before", on(s.orders, "a"), "3.1")
}

// TestKeptFromAWideJob holds that a host that is being emptied for a job of several slots
// still takes jobs into the slots that it keeps for their queue.
func TestKeptFromAWideJob(t *testing.T) {
	s := newStage(t, Config{}, keeps(box("a", 4), hosts.Kept{Queue: "urgent", Slots: 2}))
	s.up("a")
	s.submit(false, jobs.NoOptions, &jobs.Options{Slots: 2})
	s.started("a", "1.1")
	s.wait(reserveAfter*2, "a")
	if s.c.hosts[0].reserved == nil {
		t.Fatal("the host is not reserved")
	}
	s.submit(false, in("urgent", jobs.Options{}))
	want(t, "its own slots", on(s.orders, "a"), "3.1")
}
