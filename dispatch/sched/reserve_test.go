package sched

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

func keeping(h *hosts.Host, kept ...hosts.KeptPart) *hosts.Host {
	h.Queues = kept
	return h
}

func inQueue(queue string, o jobs.Options) *jobs.Options {
	o.Queue = queue
	return &o
}

// TestPartOfAHostIsKeptForAQueue checks that a host, or slots or GPUs of it, can be reserved for a
// queue (K10).
func TestPartOfAHostIsKeptForAQueue(t *testing.T) {
	for _, tt := range []struct {
		name     string
		kept     hosts.KeptPart
		jobs     []*jobs.Options // from job 2 on, which belongs to no queue
		launched string          // on the host with the reservation
		why      string          // why job 2 waits
	}{
		{"the host", hosts.KeptPart{Queue: "urgent"},
			[]*jobs.Options{jobs.NoOptions, inQueue("urgent", jobs.Options{})}, "3.1", "a is kept for queue urgent"},
		{"slots", hosts.KeptPart{Queue: "urgent", Slots: 3},
			[]*jobs.Options{{Slots: 2}, jobs.NoOptions, jobs.NoOptions}, "3.1", "a is kept for queue urgent slots=3"},
		{"slots in use", hosts.KeptPart{Queue: "urgent", Slots: 2},
			[]*jobs.Options{{Slots: 3}, inQueue("urgent", jobs.Options{Slots: 2}), jobs.NoOptions, jobs.NoOptions,
				jobs.NoOptions}, "3.1 4.1 5.1", "no host has so many free"},
		{"GPUs", hosts.KeptPart{Queue: "urgent", GPUs: 1},
			[]*jobs.Options{{GPUs: 2 * jobs.WholeGPU}, inQueue("urgent",
				jobs.Options{})}, "3.1", "the GPUs it needs are in use; a is kept for queue urgent gpus=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, Config{}, keeping(testHost("a", 4), tt.kept), testHost("b", 4))
			s.up("b", "a")
			s.submit(false, inQueue("", jobs.Options{Slots: 4, GPUs: 2 * jobs.WholeGPU})) // occupies all of b
			want(t, "the first", launchedOn(s.commands, "b"), "1.1")
			s.started("b", "1.1")
			s.submit(false, tt.jobs...)
			want(t, "launched", launchedOn(s.commands, "a"), tt.launched)
			wantContains(t, "why", s.c.Why(s.now(), 2), tt.why)
		})
	}
}

// TestJobFailsIfEveryHostIsKept checks that a job fails with a reason if every host is reserved for
// other queues.
func TestJobFailsIfEveryHostIsKept(t *testing.T) {
	for _, tt := range []struct {
		hosts []*hosts.Host
		job   *jobs.Options
		want  string
	}{
		{[]*hosts.Host{keeping(testHost("a", 1), hosts.KeptPart{Queue: "urgent"})}, jobs.NoOptions,
			"host a is kept for queue urgent"},
		{[]*hosts.Host{keeping(testHost("a", 1), hosts.KeptPart{Queue: "x"}),
			keeping(testHost("b", 1), hosts.KeptPart{Queue: "y"})}, jobs.NoOptions,
			"every host is kept for other queues; for example, host a is kept for queue x"},
		{[]*hosts.Host{keeping(testHost("a", 4), hosts.KeptPart{Queue: "x", Slots: 2})}, &jobs.Options{Slots: 3},
			"it needs 3 slots and host a has 4, of which 2 are kept for queue x slots=2"},
	} {
		s := newStage(t, Config{}, tt.hosts...)
		s.submit(true, tt.job)
		s.wantState(1, jobs.Failed)
		want(t, "reason", s.job(1).Reason, tt.want)
	}
}

// TestChangeOfKeptPartsTakesEffectAtOnce checks that a change of the inventory takes effect at
// once. A host that becomes reserved gets no more jobs of other queues, and its buffered jobs of
// other queues are withdrawn.
func TestChangeOfKeptPartsTakesEffectAtOnce(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.submit(false, jobs.NoOptions, jobs.NoOptions, jobs.NoOptions)
	s.step(setHosts(keeping(testHost("a", 1), hosts.KeptPart{Queue: "urgent"}), testHost("b", 1)))
	wantContains(t, "asked back", formatCommands[Withdraw](s.commands), "1.1")
	s.started("a", "1.1")
	want(t, "nothing more there", launchedOn(s.ended("a", "1.1", succeeded), "a"), "")
	s.step(setHosts(testHost("a", 1), testHost("b", 1)))
	want(t, "as before", launchedOn(s.commands, "a"), "3.1")
}

// TestEmptiedHostAcceptsJobsIntoTheirKeptSlots checks that a host that is being emptied for a job
// with several slots still accepts jobs into the slots that it reserves for their queue.
func TestEmptiedHostAcceptsJobsIntoTheirKeptSlots(t *testing.T) {
	s := connectedStage(t, Config{}, keeping(testHost("a", 4), hosts.KeptPart{Queue: "urgent", Slots: 2}))
	s.submit(false, jobs.NoOptions, &jobs.Options{Slots: 2})
	s.started("a", "1.1")
	s.wait(reserveAfter*2, "a")
	want(t, "reserved", s.c.hosts[0].reserved != nil, true)
	s.submit(false, inQueue("urgent", jobs.Options{}))
	want(t, "its own slots", launchedOn(s.commands, "a"), "3.1")
}

func withTokens(text string) *jobs.Options {
	name, n, _ := strings.Cut(text, ":")
	return &jobs.Options{Tokens: []jobs.Token{{Name: name, Count: int(n[0] - '0')}}}
}

// TestJobsHoldNoMoreTokensThanExist checks that jobs hold no more tokens than exist. Why explains a
// wait for tokens, and a job that needs more than exist fails at once (T7).
func TestJobsHoldNoMoreTokensThanExist(t *testing.T) {
	s := connectedStage(t, Config{Tokens: []jobs.Token{{Name: "matlab", Count: 3}}}, testHost("a", 4), testHost("b", 4))
	s.submit(true, withTokens("matlab:2"), withTokens("matlab:1"), withTokens("matlab:1"), jobs.NoOptions,
		withTokens("matlab:4"), withTokens("ansys:1"))
	want(t, "launched", launchedOn(s.commands, "a")+" "+launchedOn(s.commands, "b"), "1.1 4.1 2.1")
	wantContains(t, "why", s.c.Why(s.now(), 3), "it needs 1 matlab token, and 3 of the 3 that the run has are in use")
	for id, why := range map[jobs.ID]string{5: "it needs 4 matlab tokens and the run has 3",
		6: "it needs 1 ansys token and the run has none (--tokens, or [tokens] of the inventory)"} {
		s.wantState(id, jobs.Failed)
		want(t, "reason", s.job(id).Reason, why)
	}
	want(t, "another ends", launchedOn(s.ended("a", "4.1", succeeded), "a"), "")
	want(t, "a holder ends", launchedOn(s.ended("b", "2.1", succeeded), "b"), "3.1")
}

// TestTokensAreHeldUntilTheFateIsKnown checks that an attempt on an unreachable host keeps its
// tokens until it is given up, even under the next dispatcher (T7).
func TestTokensAreHeldUntilTheFateIsKnown(t *testing.T) {
	cfg := Config{Tokens: []jobs.Token{{Name: "matlab", Count: 1}}}
	s := connectedStage(t, cfg, testHost("a", 1), testHost("b", 1))
	s.submit(true, withTokens("matlab:1"), withTokens("matlab:1"))
	s.started("a", "1.1")
	s.step(HostDown{"a", errRefused})
	want(t, "out of reach", launchedOn(s.wait(30*time.Second, "b"), "b"), "")

	next := restart(s, testHost("a", 1), testHost("b", 1))
	next.step(Submit{Last: true})
	next.up("b")
	want(t, "the next dispatcher", launchedOn(next.wait(20*time.Second, "b"), "b"), "")
	want(t, "given up", launchedOn(next.wait(2*time.Minute, "b"), "b"), "1.2")
}

// TestJobsOfAQueueAreLimited checks that the jobs of a queue occupy no more slots, over all hosts,
// than --queue-slots allows, and that the value of the queue's newest job counts (T7).
func TestJobsOfAQueueAreLimited(t *testing.T) {
	q := func(o jobs.Options) *jobs.Options { o.Queue = "downloads"; return &o }
	s := connectedStage(t, Config{}, testHost("a", 4), testHost("b", 4))
	s.submit(false, q(jobs.Options{QueueSlots: 3}), q(jobs.Options{Slots: 2}), q(jobs.Options{}), jobs.NoOptions,
		q(jobs.Options{Slots: 4}))
	want(t, "launched", launchedOn(s.commands, "a")+" "+launchedOn(s.commands, "b"), "1.1 2.1 4.1")
	wantContains(t, "why", s.c.Why(s.now(), 3),
		"it needs 1 slot, and 3 of the 3 that --queue-slots allows its queue are in use")
	want(t, "reason", s.job(5).Reason, "it needs 4 slots and --queue-slots allows its queue 3")
	s.submit(true, q(jobs.Options{QueueSlots: 5}))
	want(t, "more are allowed", launchedOn(s.commands, "b"), "3.1 6.1")
}

// TestTokensMayChangeDuringARun checks that [tokens] may change while the run continues. A job that
// would need more tokens than exist waits for the next change.
func TestTokensMayChangeDuringARun(t *testing.T) {
	inv := func(list ...jobs.Token) *hosts.Inventory {
		return &hosts.Inventory{Hosts: []*hosts.Host{testHost("a", 4)}, Tokens: list}
	}
	s := newInventoryStage(t, Config{}, inv(jobs.Token{Name: "m", Count: 1}))
	s.up("a")
	s.submit(true, withTokens("m:1"), withTokens("m:1"))
	want(t, "more", launchedOn(s.step(SetInventory{inv(jobs.Token{Name: "m", Count: 2})}), "a"), "2.1")
	s.step(SetInventory{inv()})
	s.ended("a", "1.1", exit1)
	s.ended("a", "2.1", succeeded)
	s.wait(10*time.Second, "a")
	s.wantState(1, jobs.Queued)
	s.wait(unsatisfiableWait, "a")
	s.wantState(1, jobs.Failed)
}

// TestManyTokensAreKept checks that a job that needs several tokens is not starved by jobs that
// need one, of its own queue or of another, and that Why explains what they wait for.
func TestManyTokensAreKept(t *testing.T) {
	for _, queue := range []string{"", "other"} {
		s := connectedStage(t, Config{Tokens: []jobs.Token{{Name: "m", Count: 3}}, Tries: 1}, testHost("a", 8))
		small := withTokens("m:1")
		small.Queue = queue
		s.submit(false, small, small, small)
		s.submit(false, withTokens("m:3"), small, small, small, small)
		s.started("a", "1.1 2.1 3.1")
		s.at += 10 * time.Second
		next := launchedOn(s.ended("a", "1.1", succeeded), "a")
		wantContains(t, queue+": why", s.c.Why(s.now(), 5), "the free ones are kept for job 4, which needs 3")
		next += launchedOn(s.ended("a", "2.1", succeeded), "a") + launchedOn(s.ended("a", "3.1", succeeded), "a")
		want(t, queue+": after the small ones", next, "4.1")
	}
}

// TestNothingIsKeptInVain checks that no tokens are kept for a job whose hosts accept no jobs.
func TestNothingIsKeptInVain(t *testing.T) {
	big := testHost("b", 2)
	big.Tags = []string{"big"}
	s := connectedStage(t, Config{Tokens: []jobs.Token{{Name: "m", Count: 2}}, GiveUpAfter: time.Hour},
		testHost("a", 4), big)
	on2 := withTokens("m:2")
	on2.Tags = big.Tags
	s.submit(false, withTokens("m:1"), on2, withTokens("m:1"), withTokens("m:1"))
	want(t, "kept", launchedOn(s.commands, "a"), "1.1")
	s.started("a", "1.1")
	want(t, "its host is drained", launchedOn(s.step(DrainHost{Host: "b", On: true}), "a"), "3.1")
}
