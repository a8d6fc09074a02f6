package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestClaimsOfUsedLaunchesAreSpent checks that the claim of an attempt is needed no longer once its outcome
// has arrived over the connection over which it was launched, and for a lease after any other outcome and
// after a takeover.
func TestClaimsOfUsedLaunchesAreSpent(t *testing.T) {
	s := newStage(t, Config{}, testHost("melon", 2), testHost("kiwi", 1))
	s.up("melon", "kiwi")
	s.submitPlain(3)
	split := func() string {
		spent, needed := s.c.SplitClaims(attemptIDs("1.1 2.1 3.1"))
		return fmt.Sprint(spent, needed)
	}
	s.ended("melon", "1.1", jobs.Outcome{})
	s.step(HostDown{Host: "melon"})
	s.up("melon")
	s.probedAs("melon", "2.1", hosts.HasExited, &jobs.Outcome{})
	s.ended("kiwi", "3.1", jobs.Outcome{})
	want(t, "after the end of a connection", split(), "[1.1 3.1] [2.1]")
	s.wait(s.c.LongestLease()-time.Second, "melon", "kiwi")
	want(t, "before its lease is over", split(), "[1.1 3.1] [2.1]")
	s.wait(2*time.Second, "melon", "kiwi")
	want(t, "after that", split(), "[1.1 2.1 3.1] []")

	s.c.table.Epoch = 2
	s.c = New(s.c.cfg, s.c.table, s.c.inventory)
	s.up("melon", "kiwi")
	want(t, "after a takeover", split(), "[] [1.1 2.1 3.1]")
	s.wait(s.c.LongestLease(), "melon", "kiwi")
	want(t, "a lease later", split(), "[1.1 2.1 3.1] []")
}

// TestClaimsAfterATakeover checks that after a takeover the claims of attempts that this dispatcher has launched
// are needed no longer once all hosts have listed their attempts, unless there is damage, and that those of
// earlier dispatchers are needed for a lease.
func TestClaimsAfterATakeover(t *testing.T) {
	s := newStage(t, Config{}, testHost("melon", 1), testHost("kiwi", 1))
	s.up("melon", "kiwi")
	s.submit(false, repeatOptions(2, jobs.NoOptions)...)
	s.ended("melon", "1.1", jobs.Outcome{})
	s.ended("kiwi", "2.1", jobs.Outcome{})
	s.c.table.Epoch = 2
	s.c = New(s.c.cfg, s.c.table, s.c.inventory)
	split := func() string {
		spent, needed := s.c.SplitClaims(attemptIDs("1.1 2.1 3.1"))
		return fmt.Sprint(spent, needed)
	}
	s.submitPlain(1)
	s.up("melon")
	s.step(HostListed{"melon", &hosts.Listed{Last: true}})
	s.wait(listUpAfter, "melon")
	s.ended("melon", "3.1", jobs.Outcome{})
	want(t, "before kiwi has answered", split(), "[] [1.1 2.1 3.1]")
	s.up("kiwi")
	s.step(HostListed{"kiwi", &hosts.Listed{Last: true}})
	want(t, "after that", split(), "[3.1] [1.1 2.1]")
	s.c.table.Damaged = true
	want(t, "after damage", split(), "[] [1.1 2.1 3.1]")
	s.wait(s.c.LongestLease(), "melon", "kiwi")
	want(t, "a lease later", split(), "[1.1 2.1 3.1] []")
}

// TestLeaseOutlastsItsHost checks that the lease of a host counts after it has left the run: a launch that
// was sent to it may be valid for so long.
func TestLeaseOutlastsItsHost(t *testing.T) {
	patient := testHost("melon", 1)
	patient.LostAfter = time.Hour
	s := newStage(t, Config{}, patient, testHost("kiwi", 1))
	s.up("melon", "kiwi")
	was := s.c.LongestLease()
	s.step(SetInventory{inventoryOf(testHost("kiwi", 1))})
	s.step(Tick{})
	want(t, "melon has left", len(s.eventsAbout("melon has left the run")), 1)
	want(t, "the longest lease", s.c.LongestLease(), was)
	want(t, "is that of melon", was > time.Hour, true)
}
