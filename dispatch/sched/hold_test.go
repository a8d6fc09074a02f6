package sched

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestHostLimitsPreventLaunches checks that max_load, min_mem_free, and min_disk_free prevent
// launches from the first moment on, with a readable reason.
func TestHostLimitsPreventLaunches(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*hosts.Host, *hosts.Heartbeat)
		want string
	}{
		{"load", func(h *hosts.Host, b *hosts.Heartbeat) { h.MaxLoad, b.Load[0] = 2, 3.21 },
			"its load of 3.2 is over max_load 2"},
		{"load at the limit", func(h *hosts.Host, b *hosts.Heartbeat) { h.MaxLoad, b.Load[0] = 2.5, 2.5 },
			"its load of 2.5 is at max_load 2.5"},
		{"memory", func(h *hosts.Host, b *hosts.Heartbeat) { h.MinMemFree, b.MemFree = 2<<30, 512<<20 },
			"its free memory of 512 MiB is below min_mem_free 2 GiB"},
		{"disk", func(h *hosts.Host, b *hosts.Heartbeat) { h.MinDiskFree, b.DiskFree = 100<<20, 99<<20 },
			"its free disk space of 99 MiB is below min_disk_free 100 MiB"},
		{"disk not known", func(h *hosts.Host, b *hosts.Heartbeat) { h.MinDiskFree = 100 },
			"its free disk space is not known yet (min_disk_free)"},
		{"enough", func(h *hosts.Host, b *hosts.Heartbeat) { h.MinDiskFree, b.DiskFree, h.MaxLoad = 100, 100, 1 }, ""},
	} {
		h, b := testHost("melon4", 4), &hosts.Heartbeat{Early: true, MemFree: -1, DiskFree: -1}
		tt.set(h, b)
		s := newStage(t, Config{}, h)
		s.submitPlain(1)
		o := s.step(HostUp{Host: "melon4", Hello: &hosts.Hello{Cores: 5, Slots: 4}})
		want(t, tt.name+": before the first heartbeat", launchedOn(o, "melon4")+formatCommands[SetLimit](o),
			"{melon4 0}")
		wantContains(t, tt.name, s.c.Why(s.now(), 1),
			"melon4 starts nothing: its first measurement has not arrived yet")
		s.at += 150 * time.Millisecond
		o = s.step(HostHeartbeat{Host: "melon4", Heartbeat: b})
		if tt.want == "" {
			want(t, tt.name, launchedOn(o, "melon4"), "1.1")
			want(t, tt.name, events(s.journal), "melon4 is up")
			continue
		}
		want(t, tt.name, launchedOn(o, "melon4"), "")
		want(t, tt.name, events(s.journal), "melon4 is up\nmelon4 starts nothing: "+tt.want)
		want(t, tt.name, s.c.Why(s.now(), 1),
			"Job 1 waits: the only host that can run it cannot take it: melon4 starts nothing: "+tt.want+".")
		want(t, tt.name, s.c.Hosts()[0].Reason, "starts nothing: "+tt.want)
	}
}

// TestMemoryNotKnown checks that a host with min_mem_free is used even if its free memory cannot be
// read, and that this is reported once.
func TestMemoryNotKnown(t *testing.T) {
	h := testHost("a", 1)
	h.MinMemFree = 2 << 30
	s := newStage(t, Config{}, h)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 1}})
	for range 3 {
		s.heartbeat("a", hosts.Heartbeat{})
	}
	s.submitPlain(1)
	want(t, "launched", launchedOn(s.commands, "a"), "1.1")
	want(t, "said", events(s.journal), "a is up\na: free memory cannot be read, so min_mem_free has no effect there")
}

// TestDiskNotKnownForAWhile checks that the last known free disk space counts while a new value is
// late.
func TestDiskNotKnownForAWhile(t *testing.T) {
	h := testHost("a", 1)
	h.MinDiskFree = 100
	s := newStage(t, Config{}, h)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 1}})
	for _, free := range []int64{200, -1} {
		s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{DiskFree: free}})
	}
	s.submitPlain(1)
	want(t, "launched", launchedOn(s.commands, "a"), "1.1")
}

// TestEarlyHeartbeatIsOnlyAMeasurement checks that the early heartbeat provides the first
// measurement for max_load and similar limits, but does not prove that the helper works. A host
// whose helper ends right after it is not reconnected at once (B1).
func TestEarlyHeartbeatIsOnlyAMeasurement(t *testing.T) {
	h := testHost("a", 1)
	h.Yield, h.MaxLoad = true, 9
	s := newStage(t, Config{}, h)
	s.submitPlain(1)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 1}})
	want(t, "launched", launchedOn(s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{Early: true, Busy: 2}}),
		"a"), "1.1")
	o := s.step(HostDown{"a", errRefused})
	want(t, "connected again", formatCommands[Connect](o), "")
	if s.c.hosts[0].retryAt == 0 || s.c.hosts[0].silentLinks != 1 {
		t.Errorf("next attempt at %v, %d silent links", s.c.hosts[0].retryAt, s.c.hosts[0].silentLinks)
	}
}

// TestHoldsAreReported checks that a hold is reported once per change, at most once a minute, and
// only while jobs wait.
func TestHoldsAreReported(t *testing.T) {
	h := testHost("melon4", 4)
	h.Yield, h.MaxLoad = true, 2
	s := newStage(t, Config{}, h)
	s.step(HostUp{Host: "melon4", Hello: &hosts.Hello{Cores: 4, Slots: 3}})
	told := func(heartbeats int, load, others float64) string {
		before := len(s.journal)
		for range heartbeats {
			s.heartbeat("melon4", hosts.Heartbeat{Load: [3]float64{load}, Busy: others})
		}
		return events(s.journal[before:])
	}
	hold := func(step string, kind jobs.HostHold) {
		t.Helper()
		v := s.c.Hosts()[0]
		want(t, "state "+step, v.State, jobs.HostUp)
		want(t, "hold "+step, v.Hold, kind)
		want(t, "there is a reason "+step, v.Reason != "", kind != jobs.NotHeld)
	}
	hold("before a measurement", jobs.HeldUnmeasured)
	want(t, "no job waits", told(1, 3.2, 0), "")
	hold("under load", jobs.HeldByLoad)
	s.submit(true, &jobs.Options{Slots: 3})
	want(t, "a job waits", events(s.records), "melon4 starts nothing: its load of 3.2 is over max_load 2")
	want(t, "the same again", told(10, 3.4, 0), "")
	want(t, "another reason within the minute", told(9, 1, 4), "")
	want(t, "after the minute", told(10, 1, 4), "melon4 reduces its slots: others use 3.8 of its 4 cores")
	hold("while others use it", jobs.HeldByOthersLoad)
	wantContains(t, "why", s.c.Why(s.now(), 1), "melon4 reduces its slots: others use 4.0 of its 4 cores")
	want(t, "in the end", told(40, 0, 0), "melon4 starts jobs again")
	hold("in the end", jobs.NotHeld)
	s.step(DrainHost{Host: "melon4", On: true})
	want(t, "a drained host", s.c.Hosts()[0].HostStatus, jobs.HostStatus{State: jobs.HostDraining, Reason: whyDraining})
	s.wantState(1, jobs.Running)
}

// TestSingleHostObeysLimits checks that the only host of an inventory yields to other users and
// obeys its limits. Only without an inventory does one job always run.
func TestSingleHostObeysLimits(t *testing.T) {
	for _, tt := range []struct{ file, want string }{{"", "1.1"}, {"hosts.toml", ""}} {
		h := testHost("here", 3)
		h.Link, h.Yield, h.File = "local", true, tt.file
		s := connectedStage(t, Config{}, h)
		for range 30 {
			s.heartbeat("here", hosts.Heartbeat{Busy: 8})
		}
		s.submitPlain(2)
		want(t, "launched with inventory "+tt.file, launchedOn(s.commands, "here"), tt.want)
		want(t, "told with inventory "+tt.file,
			s.numEvents("here reduces its slots: others use 8.0 of its 4 cores") > 0, tt.want == "")
	}
}

// TestHaltReusesNoSlot checks that the slot of the job whose failure halts the run is not reused,
// and that buffered jobs are withdrawn after the limit is lowered (K9).
func TestHaltReusesNoSlot(t *testing.T) {
	s := connectedStage(t, Config{Halt: halt.Rule{Jobs: 1}, Tries: 1, Buffer: time.Minute}, testHost("a", 1))
	s.submit(true, &jobs.Options{Estimate: 20 * time.Second}, &jobs.Options{Estimate: 20 * time.Second}, jobs.NoOptions,
		jobs.NoOptions)
	wantBetween(t, "handed over", s.c.hosts[0].numBuffered(), 2, 100)
	s.started("a", "1.1")
	o := s.ended("a", "1.1", exit1)
	want(t, "launched", launchedOn(o, "a"), "")
	if len(o) != 2 || formatCommands[SetLimit](o[:1]) != "{a 0}" ||
		!strings.Contains(formatCommands[Withdraw](o[1:]), "2.1") {
		t.Errorf("commands %+v", o)
	}
	if len(s.records) != 2 || s.records[0].Kind != jobs.KindExited ||
		s.records[1].Reason != "draining: 1 job has failed (--halt 1)" {
		t.Errorf("records %+v", s.records)
	}
}

// TestHaltHoldsNothingBack checks that nothing is buffered when one more failure would halt the
// run. Otherwise a host could start jobs before it learned of the halt.
func TestHaltHoldsNothingBack(t *testing.T) {
	for _, cfg := range []Config{{Halt: halt.Rule{Jobs: 1}}, {Halt: halt.Rule{Jobs: 2}},
		{Halt: halt.Rule{Percent: 0.2}}, {}} {
		cfg.Tries = 1
		s := stageWithJobs(t, 1000, cfg, testHost("a", 1))
		for range 12 {
			s.endFirst("a", s.quickOutcome())
		}
		want(t, fmt.Sprintf("%+v: more than one is handed over", cfg), s.c.hosts[0].numBuffered() > 1,
			cfg.Halt.Jobs != 1)
		s.endFirst("a", exit1)
		held := len(s.c.hosts[0].outbox.withdraw) + s.c.hosts[0].numInFlight((*inFlight).isWaiting)
		near := cfg.Halt.Jobs == 2 || cfg.Halt.Percent > 0
		if near && held > 1 || !near && cfg.Halt.Jobs == 0 && held < 2 {
			t.Errorf("%+v: %d are held ahead, near the halt", cfg, held)
		}
	}
}

// TestLeaseIsReported checks that an attempt that may still start is given up later than running
// ones, and that both the event and Why explain the delay.
func TestLeaseIsReported(t *testing.T) {
	a := testHost("a", 2)
	a.LostAfter = 15 * time.Second
	b := testHost("b", 1)
	c := testHost("c", 1)
	s := connectedStage(t, Config{}, a, b, c)
	s.submitPlain(4)
	s.started("a", "1.1")
	s.wait(16*time.Second, "b", "c")
	wantContains(t, "told", events(s.journal),
		"a is lost: no heartbeat for 15 s; 1 job sent to it that may still start there waits until its lease "+
			"has run out, in 17 s")
	ids := s.attemptsOn("a")
	waiting := ids[len(ids)-1].Job
	wantContains(t, "why", s.c.Why(s.now(), waiting),
		"it may still start there and waits until its lease has run out, in 16 s.")
	s.wantState(waiting, jobs.Running)
	s.wait(17*time.Second, "b", "c")
	want(t, "attempts are still there", s.c.hosts[0].numOpen, 0)
}

// TestReasonOfACancel checks that the record of a request to end a job has its reason.
func TestReasonOfACancel(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 1))
	s.step(Cancel{Jobs: []jobs.ID{1}, Why: "asked"})
	r := s.records[0]
	if r.Kind != jobs.KindCanceling || r.Job != 1 || r.Reason != "asked" {
		t.Errorf("the record is about job %d and says %q", r.Job, r.Reason)
	}
}

func clockTimeOf(h, m int) time.Duration {
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
}

// TestHostsTimeZoneIsUsed checks that the host's time zone is used, limited to 14 h.
func TestHostsTimeZoneIsUsed(t *testing.T) {
	for _, tt := range []struct {
		at   jobs.Stamp
		zone int
		want time.Duration
	}{
		{wallStart, 0, clockTimeOf(22, 13) + 20*time.Second},
		{wallStart, 2 * 3600, clockTimeOf(0, 13) + 20*time.Second},
		{wallStart, -23 * 3600, clockTimeOf(23, 13) + 20*time.Second},
		{0, -3600, clockTimeOf(23, 0)},
		{-1, 0, 24*time.Hour - 1},
	} {
		want(t, fmt.Sprintf("%d in zone %d", tt.at, tt.zone), hosts.TimeOfDay(tt.at, tt.zone), tt.want)
	}
	for zone, want := range map[int]int{1 << 60: 14 * 3600, -1 << 60: -14 * 3600, 3600: 3600} {
		if got := boundedHello(testHost("a", 1), &hosts.Hello{ZoneSeconds: zone}).ZoneSeconds; got != want {
			t.Errorf("zone %d becomes %d", zone, got)
		}
	}
}

// quietStage returns a stage with the host a, two hours east of UTC. Its quiet hours, from 00:14 to
// 06:00 there, begin 40 s after the start. It runs 1.1 and 2.1 and has buffered more jobs.
func quietStage(t *testing.T) *stage {
	a := testHost("a", 2)
	a.Quiet = []hosts.Quiet{{From: clockTimeOf(0, 14), To: clockTimeOf(6, 0)}}
	s := newStage(t, Config{Buffer: time.Minute}, a)
	s.connect("a", hosts.Hello{Cores: 3, Slots: 2, ZoneSeconds: 7200})
	s.submit(true, repeatOptions(4, &jobs.Options{Estimate: 20 * time.Second})...)
	s.started("a", "1.1 2.1")
	return s
}

// TestNothingStartsDuringQuietHours checks that during quiet hours nothing starts, buffered jobs
// are withdrawn, and running jobs continue. Launching resumes at the instant the quiet hours end.
// Each change is reported once (B7).
func TestNothingStartsDuringQuietHours(t *testing.T) {
	s := quietStage(t)
	want(t, "buffered", s.c.hosts[0].numBuffered(), 2)
	want(t, "before", formatCommands[SetLimit](s.wait(40*time.Second-1, "a")), "")
	before := len(s.journal)
	o := s.wait(1, "a")
	want(t, "limit", formatCommands[SetLimit](o), "{a 0}")
	want(t, "withdrawn", formatCommands[Withdraw](o), "{a [3.1 4.1]}")
	want(t, "killed", formatCommands[Kill](o), "")
	_, first := o[0].(SetLimit)
	want(t, "the limit comes first", first, true)
	o = s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("3.1 4.1")}})
	o = append(o, s.ended("a", "1.1", succeeded)...)
	o = append(o, s.wait(5*time.Hour+45*time.Minute+59*time.Second, "a")...)
	want(t, "launched meanwhile", launchedOn(o, "a"), "")
	want(t, "events", events(s.journal[before:]),
		"a starts nothing: its quiet hours last until 06:00; its running jobs continue\n"+
			"job 2 is a straggler: it has run for 42 s on a, and it was estimated at 20 s")
	v := s.c.Hosts()[0]
	want(t, "reason", v.Reason, "starts nothing: its quiet hours last until 06:00")
	want(t, "why", s.c.Why(s.now(), 3),
		"Job 3 waits: the only host that can run it cannot take it: "+
			"a starts nothing: its quiet hours last until 06:00.")
	before = len(s.journal)
	s.wantState(2, jobs.Running)
	at, _ := s.c.Next()
	want(t, "next look", (at - s.at).String(), time.Second.String())
	want(t, "launched after", launchedOn(s.wait(time.Second, "a"), "a"), "3.2 4.2")
	want(t, "events", events(s.journal[before:]), "a is used again: its quiet hours are over")
	want(t, "finish", s.finishText(), "")
}

// TestQuietOthersGetTheJobs checks that jobs go to another host while a host has quiet hours.
func TestQuietOthersGetTheJobs(t *testing.T) {
	a, b := testHost("a", 1), testHost("b", 1)
	a.Quiet = []hosts.Quiet{{From: 0, To: clockTimeOf(24, 0)}}
	s := newStage(t, Config{}, a, b)
	s.submitPlain(3)
	o := s.up("a", "b")
	want(t, "a", launchedOn(o, "a"), "")
	want(t, "b", launchedOn(o, "b"), "1.1")
	want(t, "limit", formatCommands[SetLimit](o), "{a 0} {b 1}")
	wantContains(t, "events", events(s.journal), "a starts nothing: its quiet hours last all day")
}

// TestHostThatReconnectsInQuietHoursStartsNothing checks that a host that reconnects during its
// quiet hours starts nothing, and that its buffered jobs are withdrawn. The quiet hours are not
// reported twice.
func TestHostThatReconnectsInQuietHoursStartsNothing(t *testing.T) {
	s := quietStage(t)
	s.wait(39*time.Second, "a")
	s.step(HostDown{"a", errRefused})
	s.wait(2*time.Second, "a")
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 3, Slots: 2, ZoneSeconds: 7200}})
	want(t, "limit", formatCommands[SetLimit](s.commands), "{a 0}")
	want(t, "withdrawn as they begin", formatCommands[Withdraw](s.commands), "{a [3.1 4.1]}")
	s.step(HostDown{"a", errRefused})
	before := len(s.journal)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 3, Slots: 2, ZoneSeconds: 7200}})
	want(t, "events", events(s.journal[before:]), "a is up")
	want(t, "withdrawn later", formatCommands[Withdraw](s.probedAs("a", "3.1 4.1", hosts.Buffered, nil)),
		"{a [3.1 4.1]}")
}

// TestQuietHoursFollowTheClockOfTheHost checks that quiet hours begin by the local time of the host at
// that moment, so that a change to daylight saving time during a run shifts them.
func TestQuietHoursFollowTheClockOfTheHost(t *testing.T) {
	s := quietStage(t) // quiet from 00:14 on, which is in 40 s
	before := len(s.journal)
	zone := 3600
	s.step(HostHeartbeat{Host: "a",
		Heartbeat: &hosts.Heartbeat{Load: [3]float64{}, MemFree: -1, DiskFree: -1, ZoneSeconds: &zone}})
	s.wait(41*time.Second, "a")
	want(t, "an hour earlier", events(s.journal[before:]), "")
	zone = 7200
	s.step(HostHeartbeat{Host: "a",
		Heartbeat: &hosts.Heartbeat{Load: [3]float64{}, MemFree: -1, DiskFree: -1, ZoneSeconds: &zone}})
	s.wait(time.Second, "a")
	want(t, "the hour is skipped", strings.Contains(events(s.journal[before:]), "quiet"), true)
}

// events returns the texts of the events, one per line.
func events(records []jobs.Record) string {
	var texts []string
	for _, r := range records {
		if r.Kind == jobs.KindEvent {
			texts = append(texts, r.Reason)
		}
	}
	return strings.Join(texts, "\n")
}

// TestNothingIsSentWithoutALease checks that a host gets no jobs before a lease of it can begin: it would
// refuse them, and be blamed for that. That the dispatcher may lease later ends the hold; that it may not
// any more does not begin one, because the earlier lease still holds.
func TestNothingIsSentWithoutALease(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 2))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 2, Uptime: time.Hour}, Unowned: true})
	s.submitPlain(2)
	s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}, Unowned: true})
	s.wantState(1, jobs.Queued)
	want(t, "the hold", s.c.Hosts()[0].Hold, jobs.HeldUnleased)
	wantContains(t, "why", s.c.WhyStuck(), "still owns the run")
	s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
	s.wantState(1, jobs.Running)
	s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}, Unowned: true})
	want(t, "the hold in the end", s.c.Hosts()[0].Hold, jobs.NotHeld)
}

// TestGiveUpEndsARunWithoutLeases checks that --give-up ends a run in which no lease begins, and names
// the cause.
func TestGiveUpEndsARunWithoutLeases(t *testing.T) {
	s := newStage(t, Config{GiveUpAfter: time.Minute}, testHost("a", 2))
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 2}, Unowned: true})
	s.submitPlain(1)
	for range 100 {
		s.at += 3 * time.Second
		s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}, Unowned: true})
		s.step(Tick{})
	}
	want(t, "the end", s.finishText(), "no_hosts")
	if s.finish != nil {
		wantContains(t, "why", s.finish.Why, "still owns the run")
	}
}
