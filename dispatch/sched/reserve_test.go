package sched

import (
	"strings"
	"testing"
	"time"

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

// TestKept checks that a host, or slots or GPUs of it, can be reserved for a queue (K10).
func TestKept(t *testing.T) {
	for _, tt := range []struct {
		name     string
		kept     hosts.Kept
		jobs     []*jobs.Options // from job 2 on, which belongs to no queue
		launched string          // on the host with the reservation
		why      string          // why job 2 waits
	}{
		{"the host", hosts.Kept{Queue: "urgent"}, []*jobs.Options{jobs.NoOptions, in("urgent", jobs.Options{})}, "3.1", "a is kept for queue urgent"},
		{"slots", hosts.Kept{Queue: "urgent", Slots: 3}, []*jobs.Options{{Slots: 2}, jobs.NoOptions, jobs.NoOptions}, "3.1", "a is kept for queue urgent slots=3"},
		{"slots in use", hosts.Kept{Queue: "urgent", Slots: 2},
			[]*jobs.Options{{Slots: 3}, in("urgent", jobs.Options{Slots: 2}), jobs.NoOptions, jobs.NoOptions, jobs.NoOptions}, "3.1 4.1 5.1", "no host has so many free"},
		{"GPUs", hosts.Kept{Queue: "urgent", GPUs: 1}, []*jobs.Options{{GPUs: 2}, in("urgent", jobs.Options{})}, "3.1", "the GPUs it needs are in use; a is kept for queue urgent gpus=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, Config{}, keeps(box("a", 4), tt.kept), box("b", 4))
			s.up("b", "a")
			s.submit(false, in("", jobs.Options{Slots: 4, GPUs: 2})) // occupies all of b
			want(t, "the first", on(s.commands, "b"), "1.1")
			s.started("b", "1.1")
			s.submit(false, tt.jobs...)
			want(t, "launched", on(s.commands, "a"), tt.launched)
			contains(t, "why", s.c.Why(s.now(), 2), tt.why)
		})
	}
}

// TestKeptFromAll checks that a job fails with a reason if every host is reserved for other queues.
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

// TestKeptLive checks that a change of the inventory takes effect at once. A host that becomes
// reserved gets no more jobs of other queues, and its buffered jobs of other queues are withdrawn.
func TestKeptLive(t *testing.T) {
	s := connected(t, Config{}, box("a", 1), box("b", 1))
	s.submit(false, jobs.NoOptions, jobs.NoOptions, jobs.NoOptions)
	s.step(SetHosts{[]*hosts.Host{keeps(box("a", 1), hosts.Kept{Queue: "urgent"}), box("b", 1)}})
	contains(t, "asked back", said[Withdraw](s.commands), "1.1")
	s.started("a", "1.1")
	want(t, "nothing more there", on(s.ended("a", "1.1", okay), "a"), "")
	s.step(SetHosts{[]*hosts.Host{box("a", 1), box("b", 1)}})
	want(t, "as before", on(s.commands, "a"), "3.1")
}

// TestKeptFromAWideJob checks that a host that is being emptied for a job with several slots still
// accepts jobs into the slots that it reserves for their queue.
func TestKeptFromAWideJob(t *testing.T) {
	s := connected(t, Config{}, keeps(box("a", 4), hosts.Kept{Queue: "urgent", Slots: 2}))
	s.submit(false, jobs.NoOptions, &jobs.Options{Slots: 2})
	s.started("a", "1.1")
	s.wait(reserveAfter*2, "a")
	want(t, "reserved", s.c.hosts[0].reserved != nil, true)
	s.submit(false, in("urgent", jobs.Options{}))
	want(t, "its own slots", on(s.commands, "a"), "3.1")
}

func holds(text string) *jobs.Options {
	name, n, _ := strings.Cut(text, ":")
	return &jobs.Options{Tokens: []jobs.Token{{Name: name, Count: int(n[0] - '0')}}}
}

// TestTokens checks that jobs hold no more tokens than exist. Why explains a wait for tokens, and a
// job that needs more than exist fails at once (T7).
func TestTokens(t *testing.T) {
	s := connected(t, Config{Tokens: []jobs.Token{{Name: "matlab", Count: 3}}}, box("a", 4), box("b", 4))
	s.submit(true, holds("matlab:2"), holds("matlab:1"), holds("matlab:1"), jobs.NoOptions, holds("matlab:4"), holds("ansys:1"))
	want(t, "launched", on(s.commands, "a")+" "+on(s.commands, "b"), "1.1 4.1 2.1")
	contains(t, "why", s.c.Why(s.now(), 3), "it needs 1 matlab token, and 3 of the 3 that the run has are in use")
	for id, why := range map[jobs.ID]string{5: "it needs 4 matlab tokens and the run has 3", 6: "it needs 1 ansys token and the run has none (--tokens, or [tokens] of the inventory)"} {
		s.wantState(id, jobs.Failed)
		want(t, "reason", s.job(id).Reason, why)
	}
	want(t, "another ends", on(s.ended("a", "4.1", okay), "a"), "")
	want(t, "a holder ends", on(s.ended("b", "2.1", okay), "b"), "3.1")
}

// TestTokensAreHeldUntilTheFateIsKnown checks that an attempt on an unreachable host keeps its
// tokens until it is given up, even under the next dispatcher (T7).
func TestTokensAreHeldUntilTheFateIsKnown(t *testing.T) {
	cfg := Config{Tokens: []jobs.Token{{Name: "matlab", Count: 1}}}
	s := connected(t, cfg, box("a", 1), box("b", 1))
	s.submit(true, holds("matlab:1"), holds("matlab:1"))
	s.started("a", "1.1")
	s.step(HostDown{"a", errRefused})
	want(t, "out of reach", on(s.wait(30*time.Second, "b"), "b"), "")

	next := restart(s, box("a", 1), box("b", 1))
	next.step(Submit{Last: true})
	next.up("b")
	want(t, "the next dispatcher", on(next.wait(20*time.Second, "b"), "b"), "")
	want(t, "given up", on(next.wait(2*time.Minute, "b"), "b"), "1.2")
}

// TestQueueSlots checks that the jobs of a queue occupy no more slots, over all hosts, than
// --queue-slots allows, and that the value of the queue's newest job counts (T7).
func TestQueueSlots(t *testing.T) {
	q := func(o jobs.Options) *jobs.Options { o.Queue = "downloads"; return &o }
	s := connected(t, Config{}, box("a", 4), box("b", 4))
	s.submit(false, q(jobs.Options{QueueSlots: 3}), q(jobs.Options{Slots: 2}), q(jobs.Options{}), jobs.NoOptions, q(jobs.Options{Slots: 4}))
	want(t, "launched", on(s.commands, "a")+" "+on(s.commands, "b"), "1.1 2.1 4.1")
	contains(t, "why", s.c.Why(s.now(), 3), "it needs 1 slot, and 3 of the 3 that --queue-slots allows its queue are in use")
	want(t, "reason", s.job(5).Reason, "it needs 4 slots and --queue-slots allows its queue 3")
	s.submit(true, q(jobs.Options{QueueSlots: 5}))
	want(t, "more are allowed", on(s.commands, "b"), "3.1 6.1")
}

// TestSetTokens checks that [tokens] may change while the run continues. A job that would need more
// tokens than exist waits for the next change.
func TestSetTokens(t *testing.T) {
	s := connected(t, Config{Tokens: []jobs.Token{{Name: "m", Count: 1}}}, box("a", 4))
	s.submit(true, holds("m:1"), holds("m:1"))
	want(t, "more", on(s.step(SetTokens{[]jobs.Token{{Name: "m", Count: 2}}}), "a"), "2.1")
	s.step(SetTokens{})
	s.ended("a", "1.1", exit1)
	s.ended("a", "2.1", okay)
	s.wait(10*time.Second, "a")
	s.wantState(1, jobs.Queued)
	s.wait(unsatisfiableWait, "a")
	s.wantState(1, jobs.Failed)
}

// TestManyTokensAreKept checks that a job that needs several tokens is not starved by jobs that
// need one, of its own queue or of another, and that Why explains what they wait for.
func TestManyTokensAreKept(t *testing.T) {
	for _, queue := range []string{"", "other"} {
		s := connected(t, Config{Tokens: []jobs.Token{{Name: "m", Count: 3}}, Tries: 1}, box("a", 8))
		small := holds("m:1")
		small.Queue = queue
		s.submit(false, small, small, small)
		s.submit(false, holds("m:3"), small, small, small, small)
		s.started("a", "1.1 2.1 3.1")
		s.at += 10 * time.Second
		next := on(s.ended("a", "1.1", okay), "a")
		contains(t, queue+": why", s.c.Why(s.now(), 5), "the free ones are kept for job 4, which needs 3")
		next += on(s.ended("a", "2.1", okay), "a") + on(s.ended("a", "3.1", okay), "a")
		want(t, queue+": after the small ones", next, "4.1")
	}
}

// TestNothingIsKeptInVain checks that no tokens are kept for a job whose hosts accept no jobs.
func TestNothingIsKeptInVain(t *testing.T) {
	big := box("b", 2)
	big.Tags = []string{"big"}
	s := connected(t, Config{Tokens: []jobs.Token{{Name: "m", Count: 2}}, GiveUpAfter: time.Hour}, box("a", 4), big)
	on2 := holds("m:2")
	on2.Tags = big.Tags
	s.submit(false, holds("m:1"), on2, holds("m:1"), holds("m:1"))
	want(t, "kept", on(s.commands, "a"), "1.1")
	s.started("a", "1.1")
	want(t, "its host is drained", on(s.step(DrainHost{Host: "b", On: true}), "a"), "3.1")
}
