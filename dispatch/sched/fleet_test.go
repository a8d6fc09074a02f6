package sched

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestEventsVisitFewHosts checks that the number of hosts that an event visits does not grow with the
// number of hosts: for heartbeats, jobs that start, and jobs that end while others wait.
func TestEventsVisitFewHosts(t *testing.T) {
	for _, cfg := range []Config{{}, {RunShare: 1}, {Copies: 2}} {
		for _, n := range []int{16, 1024} {
			var list []*hosts.Host
			for i := range n {
				list = append(list, testHost(fmt.Sprint("h", i), 2))
			}
			s := stageWithJobs(t, 100*n, cfg, list...)
			for _, h := range list {
				s.started(h.Name, s.attemptsOn(h.Name)[0].String())
			}
			for range 4 { // the run times are known now, so that the buffers are filled
				s.endFirst("h1", jobs.Outcome{Started: s.now().Wall - 1e9, Ended: s.now().Wall})
				s.step(Tick{})
			}
			visits := func(what string, ev Event) {
				s.at += time.Millisecond
				s.c.numVisits = 0
				s.step(ev)
				s.c.Next()
				wantBetween(t, fmt.Sprintf("hosts visited by %s with %d hosts", what, n), s.c.numVisits, 1, 64)
			}
			for i := range 8 {
				name := list[i*n/8].Name
				first := s.attemptsOn(name)[0]
				visits("a heartbeat",
					HostHeartbeat{Host: name, Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Running: 9}})
				visits("an end", AttemptsEnded{name, &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: first, Slot: 1,
					Outcome: jobs.Outcome{Started: s.now().Wall - 1e9, Ended: s.now().Wall}}}}})
				second := s.attemptsOn(name)[1]
				visits("a start", AttemptsStarted{name,
					&hosts.Started{Jobs: []hosts.StartedJob{{Attempt: second, Slot: 1, At: s.now().Wall}}}})
			}
		}
	}
}

// TestFailuresVisitFewHosts checks that the number of hosts that the first failure on a host visits does not grow with
// the number of hosts while no job has succeeded.
func TestFailuresVisitFewHosts(t *testing.T) {
	for _, n := range []int{16, 1024} {
		var list []*hosts.Host
		for i := range n {
			list = append(list, testHost(fmt.Sprint("h", i), 2))
		}
		s := connectedStage(t, Config{}, list...)
		s.submit(true, repeatOptions(100*n, &jobs.Options{MemBytes: 1})...) // they are not sent ahead of need
		s.wait(time.Second)                                                 // a Step does not launch all
		s.endFirst("h1", exit1)
		for i := range 8 {
			s.at += time.Millisecond
			s.c.numVisits = 0
			s.endFirst(list[i*n/8].Name, exit1)
			s.c.Next()
			wantBetween(t, fmt.Sprintf("hosts visited by a failure with %d hosts", n), s.c.numVisits, 1, 64)
		}
	}
}

// TestRestingHostsAreNotVisited checks that an event visits few hosts while half of the hosts are on
// trial and rest although they have free slots: those where no job has succeeded, and those that were
// good before.
func TestRestingHostsAreNotVisited(t *testing.T) {
	for _, wasGood := range []bool{false, true} {
		for _, n := range []int{16, 512} {
			var list []*hosts.Host
			for i := range n {
				list = append(list, testHost(fmt.Sprint("h", i), 2))
			}
			s := stageWithJobs(t, 100*n, Config{Tries: 1}, list...)
			ended := func(exit int) jobs.Outcome {
				return jobs.Outcome{Exit: exit, Started: s.now().Wall - 1e7, Ended: s.now().Wall}
			}
			for range 100 { // few jobs fail
				s.endFirst("h0", ended(0))
			}
			for i := 1; i < n; i += 2 {
				if wasGood {
					s.endFirst(list[i].Name, ended(0))
				}
			}
			for i := 1; i < n; i += 2 {
				for k := 0; !s.c.hosts[i].probation.onTrial && k < 20; k++ {
					s.endFirst(list[i].Name, ended(1))
				}
				s.step(AttemptsWithdrawn{list[i].Name, &hosts.Withdrawn{Attempts: s.attemptsOn(list[i].Name)}})
				want(t, list[i].Name+" is on trial", s.c.hosts[i].probation.onTrial, true)
				want(t, "free slots", s.c.hosts[i].freeSlots(), 2)
			}
			for i := range 8 { // the first success on a host concerns all
				s.endFirst(list[i*n/8].Name, ended(0))
			}
			for i := range 8 {
				name := list[i*n/8].Name
				s.at += time.Millisecond
				for what, event := range map[string]func(){
					"a heartbeat": func() {
						s.step(HostHeartbeat{Host: name,
							Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Running: 9}})
					},
					"an end": func() { s.endFirst(name, ended(0)) },
				} {
					s.c.numVisits = 0
					event()
					s.c.Next()
					wantBetween(t, fmt.Sprintf("hosts visited by %s with %d hosts", what, n), s.c.numVisits, 1, 64)
				}
			}
		}
	}
}

// TestEventsVisitFewClasses checks that the number of classes of jobs that an event visits does not grow
// with the number of classes: for jobs that start and end while jobs of all classes wait for slots. Jobs
// that need tags are sent to hosts ahead of need, and those that need memory are not.
func TestEventsVisitFewClasses(t *testing.T) {
	for name, options := range map[string]func(i int) jobs.Options{
		"tags":   func(i int) jobs.Options { return jobs.Options{Tags: []string{fmt.Sprint("tag", i)}} },
		"memory": func(i int) jobs.Options { return jobs.Options{MemBytes: int64(i+1) << 10} },
		"queues": func(i int) jobs.Options {
			return jobs.Options{MemBytes: int64(i+1) << 10, Queue: fmt.Sprint("q", i%2), Priority: i % 3}
		},
	} {
		for _, n := range []int{16, 512} {
			melon, kiwi := testHost("melon", 4), testHost("kiwi", 1)
			shapes := make([]*jobs.Options, n)
			for i := range shapes {
				o := options(i)
				shapes[i], melon.Tags = &o, append(melon.Tags, o.Tags...)
			}
			kiwi.Tags = melon.Tags
			s := connectedStage(t, Config{}, melon, kiwi)
			s.submit(true, slices.Repeat(shapes, 4)...)
			for range 4 {
				s.endFirst("melon", jobs.Outcome{Started: s.now().Wall - 1e9, Ended: s.now().Wall})
			}
			launched := s.numRecords(jobs.KindLaunching)
			for range 16 {
				s.c.queue.numClassVisits = 0
				s.started("melon", s.attemptsOn("melon")[0].String())
				s.endFirst("melon", jobs.Outcome{Started: s.now().Wall - 1e9, Ended: s.now().Wall})
				wantBetween(t, fmt.Sprintf("visited classes of %d by %s", n, name), s.c.queue.numClassVisits, 1, 32)
			}
			wantBetween(t, "launches", s.numRecords(jobs.KindLaunching)-launched, 12, 40)
		}
	}
}

// TestEndOfARunVisitsFewHosts checks that the number of hosts that an event visits does not grow with
// the number of hosts while no job waits, and jobs that were sent ahead are withdrawn for free slots.
func TestEndOfARunVisitsFewHosts(t *testing.T) {
	for _, n := range []int{16, 1024} {
		var list []*hosts.Host
		for i := range n {
			list = append(list, testHost(fmt.Sprint("h", i), 1))
		}
		s := connectedStage(t, Config{Buffer: 2 * time.Second}, list...)
		s.submit(false, repeatOptions(n, jobs.NoOptions)...)
		for _, h := range list {
			s.started(h.Name, s.attemptsOn(h.Name)[0].String())
		}
		ended := jobs.Outcome{Started: s.now().Wall - 1e9, Ended: s.now().Wall}
		s.endFirst("h0", ended)
		s.submit(true, repeatOptions(2*n, jobs.NoOptions)...)
		s.at += time.Second
		for i := n - 1; s.c.queue.ready > 0; i-- {
			s.endFirst(list[i].Name, ended)
		}
		s.step(Tick{})
		s.step(Tick{})
		withdrawn := 0
		for i := range 8 {
			name := list[i*n/8].Name
			for range 3 {
				if len(s.attemptsOn(name)) == 0 {
					continue
				}
				s.c.numVisits = 0
				s.endFirst(name, ended)
				s.c.Next()
				if i > 0 { // the first one computes where the jobs can run
					wantBetween(t, fmt.Sprintf("hosts visited by an end with %d hosts", n), s.c.numVisits, 1, 64)
				}
				for _, o := range s.commands {
					if _, ok := o.(Withdraw); ok {
						withdrawn++
					}
				}
			}
		}
		wantBetween(t, "withdrawals", withdrawn, 1, 1000)
	}
}

// TestTimersOfUnvisitedHosts checks that a host to which nothing happens is noticed when its time has
// come: it is suspected, lost, and dialed again.
func TestTimersOfUnvisitedHosts(t *testing.T) {
	var list []*hosts.Host
	for i := range 20 {
		list = append(list, testHost(fmt.Sprint("h", i), 1))
	}
	s := stageWithJobs(t, 20, Config{}, list...)
	s.wait(2*time.Minute, "h1", "h2")
	want(t, "suspected hosts", s.numEvents("connecting again"), 18)
	want(t, "lost hosts", s.numEvents("is lost"), 18)
}

// TestLaunchesOfAStepAreBounded checks that a Step launches at most Config.MaxLaunches jobs, and that
// the rest follows in the next Steps, which come at once.
func TestLaunchesOfAStepAreBounded(t *testing.T) {
	for _, cfg := range []Config{{}, {MaxLaunches: 7}} {
		most := orDefault(cfg.MaxLaunches, maxLaunches)
		s := stageWithJobs(t, 4*most, cfg, testHost("melon", most), testHost("kiwi", most+10))
		for n := most; ; n += most {
			want(t, "launched", s.numRecords(jobs.KindLaunching), min(n, 2*most+10))
			if n > 2*most+10 {
				break
			}
			at, ok := s.c.Next()
			if !ok || at > s.at+1 {
				t.Errorf("the next Step comes at %v, %v", at, ok)
			}
			s.at = at
			s.step(Tick{})
		}
	}
}

// VisitAllHosts makes the next Step visit all hosts. It is a sim.CheckCore.
func VisitAllHosts(c *Core) string {
	c.touchAll()
	return ""
}

// TestFitsAreComputedPerHost checks that whether jobs with the same needs could run on a host is computed
// at most twice until the host is up, and again only after a change of this host. The number of
// computations is thus proportional to needs times hosts, and an event about one host costs one per needs.
func TestFitsAreComputedPerHost(t *testing.T) {
	for _, n := range []int{8, 64} {
		var list []*hosts.Host
		var options []*jobs.Options
		for i := range n {
			list = append(list, testHost(fmt.Sprint("h", i), 1))
			for range 3 {
				options = append(options, &jobs.Options{MemBytes: int64(i+1) << 20})
			}
		}
		s := newStage(t, Config{}, list...)
		checks := func(what string, least, most int, do func()) {
			s.c.queue.numFitChecks = 0
			do()
			s.step(Tick{})
			s.c.Next()
			wantBetween(t, fmt.Sprintf("computations with %d hosts and needs: %s", n, what), s.c.queue.numFitChecks,
				least, most)
		}
		checks("submit, and connect all hosts", n*n, 2*n*n, func() {
			s.submit(true, options...)
			for _, h := range list {
				s.connectAs(h.Name, h.Name)
			}
		})
		checks("a host is back", 1, n, func() {
			s.step(HostDown{Host: "h3"})
			s.connectAs("h3", "h3")
		})
		checks("a job starts and ends", 0, 0, func() {
			id := s.attemptsOn("h3")[0]
			s.started("h3", id.String())
			s.ended("h3", id.String(), succeeded)
		})
		fails := func(name string, on ...string) func() {
			return func() {
				id := s.attemptsOn(name)[0]
				s.ended(name, id.String(), exit1)
				for _, o := range on {
					s.ended(o, s.attemptsOn(o)[0].String(), succeeded)
				}
				want(t, "attempts of the job", len(s.job(id.Job).Attempts), 2)
			}
		}
		checks("the first job with its needs fails, and runs on another host", 0, n, fails("h4", "h6", "h7"))
		checks("a job with the same needs fails, and runs on another host", 0, 0, fails("h5", "h6", "h7"))
		checks("a heartbeat", 0, 0, func() {
			s.step(HostHeartbeat{Host: "h1", Heartbeat: &hosts.Heartbeat{MemFree: -1}})
		})
		checks("a host gets another number of slots", 1, n, func() {
			s.step(Request{Name: "a", Text: "asked", Do: []Event{SetSlots{Host: "h1", Slots: 3}}})
		})
		list = append(slices.Delete(list, 2, 3), testHost("new", 1))
		checks("a host leaves, and another one is added", 1, 4*n, func() {
			s.step(setHosts(list...))
			s.connectAs("new", "new")
		})
	}
}

// TestUnusedFitsAreForgotten checks that few fits are kept for jobs that are gone, and that jobs with the same
// needs share theirs.
func TestUnusedFitsAreForgotten(t *testing.T) {
	q := &queue{fits: make(map[needs]*fits)}
	for i := range int64(3 * maxUnusedFits) {
		first := q.fitsFor(needs{mem: i})
		want(t, "shared", q.fitsFor(needs{mem: i}) == first, true)
		wantBetween(t, "kept fits", len(q.fits), 1, maxUnusedFits)
	}
}
