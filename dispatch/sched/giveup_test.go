package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestGiveUpWhateverTheReason checks that --give-up ends a run in which nothing is possible,
// although a host answers, and that the end names the reason of the host. What a person or another
// user asked for does not end it.
func TestGiveUpWhateverTheReason(t *testing.T) {
	free := hosts.Heartbeat{MemFree: -1, DiskFree: -1}
	with := func(change func(*hosts.Heartbeat)) hosts.Heartbeat {
		b := free
		change(&b)
		return b
	}
	for _, tt := range []struct {
		name    string
		host    func(*hosts.Host)
		beat    hosts.Heartbeat
		ask     Event
		tag     string // that the job requires
		refuses bool
		ends    string // what the end says; "": the run does not end
	}{
		{name: "refuses every launch", beat: free, refuses: true,
			ends: "a starts nothing: it refused jobs: the spool could not take it"},
		{name: "the disk hangs", beat: with(func(b *hosts.Heartbeat) { b.FSDelay = time.Minute }),
			ends: "a starts nothing: the file system of its attempts has not answered for 60 s"},
		{name: "the disk is full", host: func(h *hosts.Host) { h.MinDiskFree = 2 << 30 },
			beat: with(func(b *hosts.Heartbeat) { b.DiskFree = 1 << 30 }),
			ends: "a starts nothing: its free disk space of 1 GiB is below min_disk_free 2 GiB"},
		{name: "the only host with the tag is away", beat: free, tag: "gpu",
			ends: "a can run none of the jobs that are ready; gone is backing off (no route)"},
		{name: "pause", beat: free, ask: Pause{On: true}},
		{name: "drained host", beat: free, ask: DrainHost{Host: "a", On: true}},
		{name: "owner", beat: with(func(b *hosts.Heartbeat) { b.Owner.Who = "somebody works there" })},
		{name: "load of others", host: func(h *hosts.Host) { h.MaxLoad = 1 },
			beat: with(func(b *hosts.Heartbeat) { b.Load[0] = 9 })},
		{name: "quiet hours", host: func(h *hosts.Host) {
			h.Quiet = []hosts.Quiet{{From: clockTimeOf(0, 0), To: clockTimeOf(23, 59)}}
		}, beat: free},
		{name: "files on the way", beat: with(func(b *hosts.Heartbeat) { b.Receives = true })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, gone := testHost("a", 1), testHost("gone", 1)
			gone.Tags = []string{"gpu"}
			if tt.host != nil {
				tt.host(a)
			}
			s := newStage(t, Config{GiveUpAfter: 2 * time.Minute}, a, gone)
			s.up("a")
			s.step(hostDown("gone", hosts.Unreachable, "no route"))
			s.step(HostHeartbeat{Host: "a", Heartbeat: &tt.beat})
			if tt.ask != nil {
				s.step(tt.ask)
			}
			o := &jobs.Options{Tags: []string{"other"}}
			if tt.tag != "" {
				o.Tags = []string{tt.tag}
			} else {
				a.Tags = []string{"other"}
			}
			s.submit(false, o)
			for n := 0; n < 200 && s.finish == nil; n++ {
				if tt.refuses && len(s.attemptsOn("a")) > 0 {
					s.step(HostRefused{"a",
						&hosts.Refused{Attempts: s.attemptsOn("a"), Why: "the spool could not take it"}})
				}
				if s.at < 100*time.Second {
					want(t, "finish before 2 min", s.finishText(), "")
				}
				s.at += time.Second
				b := tt.beat
				if s.step(HostHeartbeat{Host: "a", Heartbeat: &b}); formatCommands[Connect](s.commands) != "" {
					s.step(hostDown("gone", hosts.Unreachable, "no route"))
				}
			}
			if tt.ends == "" {
				want(t, "finish", s.finishText(), "")
				return
			}
			want(t, "finish", s.finishText(), "no_hosts")
			if s.finish != nil {
				wantContains(t, "why", s.finish.Why, tt.ends)
			}
		})
	}
}

// TestGiveUpNamesHostsTogether checks that the end of a run gives the common reason of several hosts
// once.
func TestGiveUpNamesHostsTogether(t *testing.T) {
	s := newStage(t, Config{}, testHost("ws1", 1), testHost("ws2", 1), testHost("ws3", 1), testHost("b", 1))
	for _, name := range []string{"ws1", "ws2", "ws3"} {
		s.step(hostDown(name, hosts.Unreachable, "no route"))
	}
	s.step(hostDown("b", hosts.Unreachable, "no such name"))
	want(t, "why", s.c.whyNoHosts(), "each of ws[1-3] is backing off (no route); b is backing off (no such name)")
}
