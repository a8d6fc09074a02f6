package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

func hm(h, m int) time.Duration { return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute }

// TestQuietLeft holds what a span of quiet hours covers, midnight and all (B7).
func TestQuietLeft(t *testing.T) {
	night := []hosts.Quiet{{From: hm(22, 0), To: hm(6, 0)}}
	for _, tt := range []struct {
		name       string
		spans      []hosts.Quiet
		at         time.Duration
		left, next time.Duration
	}{
		{"before", night, hm(21, 59), 0, time.Minute},
		{"first moment", night, hm(22, 0), hm(8, 0), 0},
		{"midnight", night, 0, hm(6, 0), hm(22, 0)},
		{"last moment", night, hm(6, 0) - 1, 1, hm(16, 0) + 1},
		{"over", night, hm(6, 0), 0, hm(16, 0)},
		{"by day", []hosts.Quiet{{From: hm(9, 0), To: hm(17, 0)}}, hm(12, 0), hm(5, 0), hm(21, 0)},
		{"two in a row", []hosts.Quiet{{From: 0, To: hm(6, 0)}, {From: hm(22, 0), To: hm(24, 0)}}, hm(23, 0), hm(7, 0), hm(1, 0)},
		{"two that overlap", []hosts.Quiet{{From: hm(8, 0), To: hm(12, 0)}, {From: hm(10, 0), To: hm(14, 0)}}, hm(9, 0), hm(5, 0), hm(1, 0)},
		{"all day", []hosts.Quiet{{From: 0, To: hm(24, 0)}}, hm(12, 0), day, hm(12, 0)},
		{"all day in two parts", []hosts.Quiet{{From: 0, To: hm(12, 0)}, {From: hm(12, 0), To: 0}}, hm(3, 0), day, hm(9, 0)},
		{"nothing", []hosts.Quiet{{From: hm(3, 0), To: hm(3, 0)}}, hm(3, 0), 0, noQuieter},
		{"none", nil, hm(3, 0), 0, noQuieter},
	} {
		if got := quietLeft(tt.spans, tt.at); got != tt.left {
			t.Errorf("%s: %v left, want %v", tt.name, got, tt.left)
		}
		if got := untilQuiet(tt.spans, tt.at); got != tt.next {
			t.Errorf("%s: next in %v, want %v", tt.name, got, tt.next)
		}
	}
}

// TestTimeOfDay: the host's zone counts, at most 14 h of it.
func TestTimeOfDay(t *testing.T) {
	for _, tt := range []struct {
		at   jobs.Stamp
		zone int
		want time.Duration
	}{
		{wallStart, 0, hm(22, 13) + 20*time.Second},
		{wallStart, 2 * 3600, hm(0, 13) + 20*time.Second},
		{wallStart, -23 * 3600, hm(23, 13) + 20*time.Second},
		{0, -3600, hm(23, 0)},
		{-1, 0, day - 1},
	} {
		if got := timeOfDay(tt.at, tt.zone); got != tt.want {
			t.Errorf("%d in zone %d: %v, want %v", tt.at, tt.zone, got, tt.want)
		}
	}
	for zone, want := range map[int]int{1 << 60: mostZone, -1 << 60: -mostZone, 3600: 3600} {
		if got := boundedHello(box("a", 1), &hosts.Hello{ZoneSeconds: zone}).ZoneSeconds; got != want {
			t.Errorf("zone %d becomes %d", zone, got)
		}
	}
}

// quietStage is a host two hours east whose quiet hours, 00:14 to 06:00 there,
// begin 40 s after the start, and one without; a runs 1.1 and 2.1 and has more buffered.
func quietStage(t *testing.T) *stage {
	a := box("a", 2)
	a.Quiet = []hosts.Quiet{{From: hm(0, 14), To: hm(6, 0)}}
	s := newStage(t, Config{Buffer: time.Minute}, a)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 3, Slots: 2, ZoneSeconds: 7200}})
	s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1}})
	s.submit(true, &jobs.Options{Estimate: 20 * time.Second}, &jobs.Options{Estimate: 20 * time.Second},
		&jobs.Options{Estimate: 20 * time.Second}, &jobs.Options{Estimate: 20 * time.Second})
	s.started("a", "1.1 2.1")
	return s
}

// TestQuietHours: when they begin nothing is started any more, what is buffered
// comes back, what runs goes on; when they end work goes on at that instant. Each is
// said once (B7).
func TestQuietHours(t *testing.T) {
	s := quietStage(t)
	if s.c.hosts[0].buffered() != 2 {
		t.Fatalf("%d are buffered", s.c.hosts[0].buffered())
	}
	want(t, "before", said[SetLimit](s.wait(40*time.Second-1, "a")), "")
	before := len(s.journal)
	o := s.wait(1, "a")
	want(t, "limit", said[SetLimit](o), "{a 0}")
	want(t, "withdrawn", said[Withdraw](o), "{a [3.1 4.1]}")
	want(t, "killed", said[Kill](o), "")
	if _, first := o[0].(SetLimit); !first {
		t.Errorf("the limit comes after the withdrawal: %v", o)
	}
	o = s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("3.1 4.1")}})
	o = append(o, s.ended("a", "1.1", okay)...)
	o = append(o, s.wait(5*time.Hour+45*time.Minute+59*time.Second, "a")...)
	want(t, "launched meanwhile", on(o, "a"), "")
	want(t, "events", events(s.journal[before:]), "a rests until 06:00 (quiet hours); its running jobs go on\n"+
		"job 2 is a straggler: it has run for 42 s on a, and it was estimated at 20 s")
	v := s.c.Hosts()[0]
	want(t, "reason", v.Reason, "rests until 06:00 (quiet hours)")
	want(t, "why", s.c.Why(s.now(), 3), "Job 3 waits: the only host that can run it cannot take it: a rests until 06:00 (quiet hours).")
	before = len(s.journal)
	s.wantState(2, jobs.Running)
	at, _ := s.c.Next()
	want(t, "next look", (at - s.at).String(), time.Second.String())
	want(t, "launched after", on(s.wait(time.Second, "a"), "a"), "3.2 4.2")
	want(t, "events", events(s.journal[before:]), "a is used again: its quiet hours are over")
	if s.finish != nil {
		t.Errorf("the run was given up: %v", s.finish)
	}
}

// TestQuietOthersGetTheJobs: what comes back from a host that rests goes to another.
func TestQuietOthersGetTheJobs(t *testing.T) {
	a, b := box("a", 1), box("b", 1)
	a.Quiet = []hosts.Quiet{{From: 0, To: hm(24, 0)}}
	s := newStage(t, Config{}, a, b)
	s.plain(3)
	o := s.up("a", "b")
	want(t, "a", on(o, "a"), "")
	want(t, "b", on(o, "b"), "1.1")
	want(t, "limit", said[SetLimit](o), "{a 0} {b 1}")
	contains(t, "events", events(s.journal), "a rests all day (quiet hours)")
}

// TestQuietAfterALink: a host that comes back in its quiet hours is asked for what
// it still has buffered, and starts nothing; it is not said twice.
func TestQuietAfterALink(t *testing.T) {
	s := quietStage(t)
	s.wait(39*time.Second, "a")
	s.step(HostDown{"a", errRefused})
	s.wait(2*time.Second, "a")
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 3, Slots: 2, ZoneSeconds: 7200}})
	want(t, "limit", said[SetLimit](s.orders), "{a 0}")
	want(t, "withdrawn as they begin", said[Withdraw](s.orders), "{a [3.1 4.1]}")
	s.step(HostDown{"a", errRefused})
	before := len(s.journal)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 3, Slots: 2, ZoneSeconds: 7200}})
	want(t, "events", events(s.journal[before:]), "a is up")
	want(t, "withdrawn later", said[Withdraw](s.probedAs("a", "3.1 4.1", hosts.Buffered, nil)), "{a [3.1 4.1]}")
}

// events gives what was told, a line each.
func events(records []jobs.Record) string {
	all := ""
	for _, r := range records {
		if r.Kind == jobs.KindEvent {
			if all != "" {
				all += "\n"
			}
			all += r.Reason
		}
	}
	return all
}
