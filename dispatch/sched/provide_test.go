package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// testProvider returns a provider of instances with two slots that take a minute to start.
func testProvider() *hosts.Provider {
	return &hosts.Provider{Name: "cloud", Max: 3, Startup: time.Minute, Idle: 2 * time.Minute,
		Host: hosts.Host{GPUs: -1, Link: "ssh", Slots: hosts.SlotRule{Fixed: 2}, Tags: []string{"cloud"}}}
}

func inventoryWith(p *hosts.Provider, hs ...*hosts.Host) *hosts.Inventory {
	return &hosts.Inventory{Hosts: hs, Providers: []*hosts.Provider{p}}
}

func newProviderStage(t *testing.T, cfg Config, p *hosts.Provider, hs ...*hosts.Host) *stage {
	cfg.InstancePrefix = "dcs-r"
	return newInventoryStage(t, cfg, inventoryWith(p, hs...))
}

// listOf returns a list of instances, whose hosts or nodes have two slots each.
func (s *stage) listOf(names ...string) InstancesListed {
	ev := InstancesListed{Provider: "cloud", Names: names, Hosts: map[string][]*hosts.Host{}}
	for _, name := range names {
		if s.nodes == nil {
			ev.Hosts[name] = []*hosts.Host{testHost(name, 2)}
		}
		for _, node := range s.nodes {
			ev.Hosts[name] = append(ev.Hosts[name], testHost(name+"."+node, 2))
		}
	}
	return ev
}

// answerList answers a ListInstances command, even if there was none.
func (s *stage) answerList(names ...string) []Command { return s.step(s.listOf(names...)) }

// waitForListing lets time pass until the core requests a list of instances.
func (s *stage) waitForListing(beating ...string) {
	s.t.Helper()
	for range 200 {
		if s.c.provisions.providers[0].listing {
			return
		}
		s.wait(time.Second, beating...)
	}
	s.t.Fatal("no list is asked for")
}

// waitAndAnswerList lets time pass until the core requests a list, and answers it.
func (s *stage) waitAndAnswerList(names ...string) []Command {
	s.t.Helper()
	s.waitForListing()
	return s.answerList(names...)
}

// instanceRecords returns the states that the journal records for an instance.
func (s *stage) instanceRecords(name string) string {
	var all []string
	for _, r := range s.journal {
		if r.Kind == jobs.KindInstance && r.Host == name {
			all = append(all, r.How)
		}
	}
	return strings.Join(all, " ")
}

// TestInstancesAreCreatedOnlyIfNeeded checks that an instance is created only if, at the current
// rate, the queue cannot be emptied within the time that a new instance needs to start. No more
// instances are created than the jobs can use.
func TestInstancesAreCreatedOnlyIfNeeded(t *testing.T) {
	few := testProvider()
	few.Max = 1
	ten := func(n int) func(s *stage) {
		return func(s *stage) { // five jobs took 10 s each, two are running, n are waiting
			s.up("a")
			s.submitPlain(7 + n)
			s.endAllAfter("a", 5, 10*time.Second)
		}
	}
	onlyCloud := func(s *stage) { s.up("a"); s.submit(true, &jobs.Options{Tags: []string{"cloud"}}) }
	for _, c := range []struct {
		name  string
		p     *hosts.Provider
		cfg   Config
		hosts []*hosts.Host
		do    func(s *stage)
		want  int
	}{
		{"nothing to do", testProvider(), Config{}, nil, func(s *stage) { s.submitPlain(0) }, 0},
		{"no hosts", testProvider(), Config{}, nil, func(s *stage) { s.submitPlain(1) }, 1},
		{"no hosts, as many instances as jobs need", testProvider(), Config{}, nil, func(s *stage) { s.submitPlain(4) },
			2},
		{"no more than max", testProvider(), Config{}, nil, func(s *stage) { s.submitPlain(100) }, 3},
		{"no more than max 1", few, Config{}, nil, func(s *stage) { s.submitPlain(100) }, 1},
		{"the queue is empty before one is up", testProvider(), Config{}, []*hosts.Host{testHost("a", 2)}, ten(8), 0},
		{"a few are left", testProvider(), Config{}, []*hosts.Host{testHost("a", 2)}, ten(12), 1},
		{"many are left", testProvider(), Config{}, []*hosts.Host{testHost("a", 2)}, ten(40), 3},
		{"a few are left, and the other host rests", testProvider(), Config{},
			[]*hosts.Host{testHost("a", 2), testHost("b", 8)}, func(s *stage) {
				s.up("b")
				s.letRest("b", time.Hour)
				ten(12)(s)
			}, 1},
		{"the only host with the tag is on probation", testProvider(), Config{},
			[]*hosts.Host{testHost("a", 2), testHost("b", 2, "cloud")}, func(s *stage) {
				s.up("b")
				s.letRest("b", time.Hour)
				s.c.byName["b"].probation.onProbation = true
				onlyCloud(s)
			}, 1},
		{"max slots", testProvider(), Config{MaxSlots: 4}, []*hosts.Host{testHost("a", 2)}, ten(40), 1},
		{"run times are not known yet", testProvider(), Config{}, []*hosts.Host{testHost("a", 2)},
			func(s *stage) { s.up("a"); s.submitPlain(40) }, 0},
		{"what runs is old", testProvider(), Config{}, []*hosts.Host{testHost("a", 2)}, func(s *stage) {
			s.up("a")
			s.submitPlain(40)
			s.started("a", "1.1 2.1")
			s.wait(time.Minute, "a")
		}, 3},
		{"hosts are being dialed", testProvider(), Config{}, []*hosts.Host{testHost("a", 2)},
			func(s *stage) { s.submitPlain(40) }, 0},
		{"hosts do not answer", testProvider(), Config{}, []*hosts.Host{testHost("a", 2)},
			func(s *stage) { s.submitPlain(40); s.wait(firstDialTime + 5*time.Second) }, 3},
		{"paused", testProvider(), Config{}, nil, func(s *stage) { s.step(Pause{On: true}); s.submitPlain(40) }, 0},
		{"draining", testProvider(), Config{}, nil, func(s *stage) { s.step(Drain{Why: "asked"}); s.submitPlain(40) },
			0},
		{"only instances have the tag", testProvider(), Config{}, []*hosts.Host{testHost("a", 2)}, onlyCloud, 1},
		{"only instances have the tag, and the hosts have all slots that are allowed", testProvider(),
			Config{MaxSlots: 2},
			[]*hosts.Host{testHost("a", 2)}, onlyCloud, 1},
		{"instances lack the tag", testProvider(), Config{}, []*hosts.Host{testHost("a", 2), testHost("b", 2)},
			func(s *stage) {
				s.submit(true, &jobs.Options{Tags: []string{"other"}})
			}, 0},
		{"instances are too small", testProvider(), Config{}, []*hosts.Host{testHost("a", 4)}, func(s *stage) {
			s.submit(true, slices.Repeat([]*jobs.Options{{Slots: 4}}, 9)...)
			s.wait(firstDialTime + 5*time.Second)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newProviderStage(t, c.cfg, c.p, c.hosts...)
			c.do(s)
			want(t, "before the list is known", s.instanceRecords("dcs-r-1"), "")
			s.at += provideInterval
			want(t, "instances", strings.Count(formatCommands[CreateInstance](s.answerList()), "dcs-r-"), c.want)
			s.at += provideInterval
			want(t, "created though nothing has changed", formatCommands[CreateInstance](s.step(Tick{})), "")
		})
	}
}

// TestKeptInstances checks that a provider with min creates so many instances before there are jobs,
// keeps them while jobs run, also when idle, and terminates them at the end of the run and by a drain.
func TestKeptInstances(t *testing.T) {
	p := testProvider()
	p.Min = 2
	s := newProviderStage(t, Config{}, p)
	s.at += provideInterval
	want(t, "before there are jobs", formatCommands[CreateInstance](s.answerList()), "{cloud dcs-r-1} {cloud dcs-r-2}")
	s.step(InstanceCreated{Name: "dcs-r-1"})
	s.step(InstanceCreated{Name: "dcs-r-2"})
	s.waitAndAnswerList("dcs-r-1", "dcs-r-2")
	s.connect("dcs-r-1", hosts.Hello{Cores: 3, Slots: 2, Shared: true})
	s.connect("dcs-r-2", hosts.Hello{Cores: 3, Slots: 2, Shared: true})
	none := s.wait(2*p.Idle, "dcs-r-1", "dcs-r-2")
	want(t, "when idle", formatCommands[TerminateInstance](none)+formatCommands[Leave](none), "")
	s.submit(true, jobs.NoOptions)
	id := launchedOn(s.commands, "dcs-r-1") + launchedOn(s.commands, "dcs-r-2")
	want(t, "launched", id, "1.1")
	on := "dcs-r-1"
	if launchedOn(s.commands, on) == "" {
		on = "dcs-r-2"
	}
	s.started(on, id)
	none = s.wait(2*p.Idle, "dcs-r-1", "dcs-r-2")
	want(t, "while a job runs", formatCommands[TerminateInstance](none)+formatCommands[Leave](none), "")
	commands := append(s.ended(on, id, succeeded), s.wait(5*time.Second)...)
	want(t, "at the end", formatCommands[TerminateInstance](commands), "{cloud dcs-r-1} {cloud dcs-r-2}")
	want(t, "and no more", formatCommands[CreateInstance](s.wait(time.Minute)), "")
}

// TestKeptInstanceOfAnOlderInventory checks that an instance is kept while the jobs that wait can run, but
// not in the place of one that a job needs: after a change of the inventory, new instances are larger
// (every run ends).
func TestKeptInstanceOfAnOlderInventory(t *testing.T) {
	p := testProvider()
	p.Min, p.Max = 1, 1
	s := newProviderStage(t, Config{}, p)
	larger := *p
	larger.Host.Slots.Fixed = 4
	s.at += provideInterval
	want(t, "created", formatCommands[CreateInstance](s.answerList()), "{cloud dcs-r-1}")
	s.step(InstanceCreated{Name: "dcs-r-1"})
	s.waitAndAnswerList("dcs-r-1")
	s.connect("dcs-r-1", hosts.Hello{Cores: 3, Slots: 2, Shared: true})
	s.step(SetInventory{inventoryWith(&larger)})
	none := s.wait(2*p.Idle, "dcs-r-1")
	want(t, "when idle", formatCommands[Leave](none), "")
	s.submit(true, &jobs.Options{Slots: 4})
	want(t, "in its place", formatCommands[Leave](s.commands), "{dcs-r-1}")
	want(t, "terminated", formatCommands[TerminateInstance](s.wait(10*time.Second)), "{cloud dcs-r-1}")
	s.step(InstanceTerminated{Name: "dcs-r-1"})
	for range 3 {
		s.waitAndAnswerList()
	}
	s.wait(time.Second)
	want(t, "created then", s.instanceRecords("dcs-r-2"), "creating")
}

// TestQueueLengthRule checks the rule of CS553: one instance is created while the queue grows or does
// not shrink, and while it shrinks too slowly to be empty when an instance has started.
func TestQueueLengthRule(t *testing.T) {
	for _, c := range []struct {
		name       string
		rule       hosts.ProvisionRule
		jobs, ends int // jobs of a second each, and how many of them end in 10 s
		want       int // instances after the second comparison
	}{
		{"as long as before", hosts.ByLength, 40, 0, 2},
		{"shrinks too slowly", hosts.ByLength, 40, 4, 2},  // 34 left, 4 per 10 s, 60 s
		{"shrinks fast enough", hosts.ByLength, 40, 8, 1}, // 30 left, 8 per 10 s, 60 s
		{"our own rule waits for run times", hosts.ByWork, 40, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := testProvider()
			p.Rule = c.rule
			s := newProviderStage(t, Config{}, p, testHost("a", 2))
			s.up("a")
			s.submitPlain(c.jobs)
			s.at += provideInterval
			created := strings.Count(formatCommands[CreateInstance](s.answerList()), "dcs-r-")
			s.step(InstanceCreated{Name: "dcs-r-1"})
			s.endAllAfter("a", c.ends, time.Second)
			s.answerList("dcs-r-1")
			created += strings.Count(formatCommands[CreateInstance](s.wait(lengthInterval, "a")), "dcs-r-")
			want(t, "instances", created, c.want)
		})
	}
}

// TestEagerInstances checks that an eager provider creates instances for all waiting jobs at once,
// though a host would soon run them, and that an instance ends when no job is left that it could run,
// though others wait. Another provider does neither.
func TestEagerInstances(t *testing.T) {
	for _, rule := range []hosts.ProvisionRule{hosts.ByWork, hosts.Eager} {
		t.Run(rule.String(), func(t *testing.T) {
			p, isEager := testProvider(), rule == hosts.Eager
			p.Rule = rule
			s := newProviderStage(t, Config{}, p, testHost("a", 2))
			s.up("a")
			s.submit(true, repeatOptions(40, &jobs.Options{Estimate: time.Second})...)
			s.at += provideInterval
			created := strings.Count(formatCommands[CreateInstance](s.answerList()), "dcs-r-")
			want(t, "three are created at once", created == 3, isEager)

			only := testHost("a", 1)
			only.Tags = []string{"only-a"}
			s = newProviderStage(t, Config{}, p, only)
			s.up("a")
			s.submitAfter(true, map[jobs.ID]jobs.Dependencies{3: jobstest.After(2)}, &jobs.Options{Slots: 2},
				&jobs.Options{Tags: only.Tags}, &jobs.Options{Tags: only.Tags})
			s.at += provideInterval
			want(t, "created", formatCommands[CreateInstance](s.answerList()), "{cloud dcs-r-1}")
			s.step(InstanceCreated{Name: "dcs-r-1"})
			s.waitAndAnswerList("dcs-r-1")
			s.connect("dcs-r-1", hosts.Hello{Cores: 3, Slots: 2, Shared: true})
			s.started("dcs-r-1", "1.1")
			commands := append(s.ended("dcs-r-1", "1.1", succeeded), s.wait(5*time.Second, "a", "dcs-r-1")...)
			want(t, "terminated", formatCommands[TerminateInstance](commands) == "{cloud dcs-r-1}", isEager)
		})
	}
}

// TestEagerInstancesEndTogether checks that one search for work is enough for all instances.
func TestEagerInstancesEndTogether(t *testing.T) {
	p, only := testProvider(), testHost("a", 1)
	p.Rule, only.Tags = hosts.Eager, []string{"only-a"}
	s := newProviderStage(t, Config{}, p, only)
	s.up("a")
	s.submit(true, &jobs.Options{Tags: only.Tags}, &jobs.Options{Tags: only.Tags})
	s.at += provideInterval
	s.step(Tick{})
	of := s.c.provisions.providers[0]
	want(t, "no work for the first", s.c.hasNoWorkFor(of), true)
	want(t, "no work for the second", s.c.hasNoWorkFor(of), true)
	s.at += provideInterval / 2
	s.step(Tick{})
	want(t, "no work, although nobody has looked", s.c.hasNoWorkFor(of), false)
}

// servedStage returns a stage with one instance that is up. shared is whether the instance shares
// the run directory.
func servedStage(t *testing.T, shared bool, jobsToDo int, last bool) *stage {
	s := newProviderStage(t, Config{}, testProvider())
	s.submit(last, repeatOptions(jobsToDo, jobs.NoOptions)...)
	wantContains(t, "commands", formatCommands[CreateInstance](s.answerList()), "{cloud dcs-r-1}")
	s.step(InstanceCreated{Name: "dcs-r-1"})
	want(t, "used", formatCommands[Connect](s.waitAndAnswerList("dcs-r-1")), "{dcs-r-1}")
	s.connect("dcs-r-1", hosts.Hello{Cores: 3, Slots: 2, Shared: shared})
	want(t, "records", s.instanceRecords("dcs-r-1"), "creating up")
	return s
}

// TestUnneededInstancesAreTerminated checks that an instance is terminated at once when the run has
// no more work for it, and after idle if more jobs may come. It is never terminated while it has
// open attempts or outputs that exist only there.
func TestUnneededInstancesAreTerminated(t *testing.T) {
	ok := jobs.Outcome{Started: 1, Ended: 2}
	t.Run("no more work", func(t *testing.T) {
		s := servedStage(t, true, 2, true)
		s.started("dcs-r-1", "1.1 2.1")
		want(t, "with an open attempt", formatCommands[TerminateInstance](append(s.ended("dcs-r-1", "1.1", ok),
			s.wait(10*time.Second, "dcs-r-1")...)), "")
		commands := s.ended("dcs-r-1", "2.1", ok)
		want(t, "at the end", formatCommands[Leave](commands), "{dcs-r-1}")
		want(t, "before it has left", formatCommands[TerminateInstance](commands), "")
		want(t, "when it has left", formatCommands[TerminateInstance](s.wait(2*time.Second)), "{cloud dcs-r-1}")
		want(t, "records", s.instanceRecords("dcs-r-1"), "creating up terminating")
		want(t, "finish before its instance is gone", s.finishText(), "")
		s.step(InstanceTerminated{Name: "dcs-r-1"})
		s.waitAndAnswerList()
		want(t, "records after one list without it", s.instanceRecords("dcs-r-1"), "creating up terminating")
		s.waitAndAnswerList()
		want(t, "records", s.instanceRecords("dcs-r-1"), "creating up terminating gone")
		want(t, "finish", s.finishText(), "done")
		want(t, "reason", s.finish.Why, "")
	})
	t.Run("idle", func(t *testing.T) {
		s := servedStage(t, true, 1, false)
		s.started("dcs-r-1", "1.1")
		s.ended("dcs-r-1", "1.1", ok)
		want(t, "too early", formatCommands[TerminateInstance](s.wait(110*time.Second, "dcs-r-1")), "")
		want(t, "after idle", formatCommands[TerminateInstance](s.wait(20*time.Second, "dcs-r-1")), "{cloud dcs-r-1}")
		s.submit(false, jobs.NoOptions)
		want(t, "on one that is being terminated", launchedOn(s.commands, "dcs-r-1"), "")
	})
	t.Run("work comes in time", func(t *testing.T) {
		s := servedStage(t, true, 1, false)
		s.started("dcs-r-1", "1.1")
		s.ended("dcs-r-1", "1.1", ok)
		s.wait(110*time.Second, "dcs-r-1")
		s.submit(false, jobs.NoOptions)
		s.started("dcs-r-1", "2.1")
		want(t, "busy", formatCommands[TerminateInstance](s.wait(10*time.Minute, "dcs-r-1")), "")
	})
	t.Run("drain", func(t *testing.T) {
		s := servedStage(t, true, 2, false)
		s.started("dcs-r-1", "1.1 2.1")
		s.ended("dcs-r-1", "1.1", ok)
		s.ended("dcs-r-1", "2.1", ok)
		s.step(Drain{Why: "asked"})
		want(t, "commands", formatCommands[TerminateInstance](s.wait(2*time.Second)), "{cloud dcs-r-1}")
	})
	t.Run("outputs are fetched first", func(t *testing.T) {
		s := servedStage(t, false, 1, true)
		s.started("dcs-r-1", "1.1")
		commands := s.ended("dcs-r-1", "1.1", ok)
		want(t, "fetch", formatCommands[FetchInstance](commands), "{dcs-r-1 [1.1]}")
		want(t, "before it", formatCommands[TerminateInstance](commands), "")
		commands = s.step(InstanceFetched{Name: "dcs-r-1", Err: "no route"})
		want(t, "after a failure", formatCommands[TerminateInstance](append(commands,
			s.wait(time.Second, "dcs-r-1")...)), "")
		commands = s.wait(30*time.Second, "dcs-r-1")
		want(t, "fetch again", formatCommands[FetchInstance](commands), "{dcs-r-1 [1.1]}")
		want(t, "before it is done", formatCommands[TerminateInstance](commands), "")
		s.step(InstanceFetched{Name: "dcs-r-1"})
		want(t, "after it", formatCommands[TerminateInstance](s.wait(2*time.Second)), "{cloud dcs-r-1}")
	})
	t.Run("a lost attempt reports its end during the fetch", func(t *testing.T) {
		s := servedStage(t, false, 2, false)
		s.started("dcs-r-1", "1.1 2.1")
		s.ended("dcs-r-1", "1.1", ok)
		s.c.byName["dcs-r-1"].spec.OutageAfter = time.Minute
		s.step(hostDown("dcs-r-1", hosts.Unreachable, "gone"))
		s.wait(2 * time.Minute)
		want(t, "history", s.history(2), "queued: dcs-r-1 lost")
		want(t, "fetch", formatCommands[FetchInstance](s.step(Drain{Why: "asked"})), "{dcs-r-1 [1.1]}")
		s.connect("dcs-r-1", hosts.Hello{Cores: 3, Slots: 2})
		s.ended("dcs-r-1", "2.1", ok)
		commands := s.step(InstanceFetched{Name: "dcs-r-1"})
		want(t, "fetch the rest", formatCommands[FetchInstance](commands), "{dcs-r-1 [2.1]}")
		want(t, "before it is done", formatCommands[TerminateInstance](append(commands,
			s.wait(10*time.Second, "dcs-r-1")...)), "")
		s.step(InstanceFetched{Name: "dcs-r-1"})
		want(t, "after it", formatCommands[TerminateInstance](s.wait(2*time.Second)), "{cloud dcs-r-1}")
	})
	t.Run("the command fails", func(t *testing.T) {
		s := servedStage(t, true, 1, true)
		s.started("dcs-r-1", "1.1")
		s.ended("dcs-r-1", "1.1", ok)
		s.wait(2 * time.Second)
		commands := s.step(InstanceTerminated{Name: "dcs-r-1", Err: "the terminate command failed"})
		want(t, "at once", formatCommands[TerminateInstance](commands), "")
		s.waitAndAnswerList("dcs-r-1")
		wantContains(t, "later", formatCommands[TerminateInstance](s.wait(30*time.Second)), "{cloud dcs-r-1}")
		s.wait(instancesEndTime)
		if s.finish == nil || !strings.Contains(s.finish.Why, "instances may still exist: dcs-r-1") {
			t.Errorf("got %+v, want an end that names the instance", s.finish)
		}
	})
}

// TestFailedCreationIsRetried checks that failed creations are retried with growing delays, and
// that an instance that a failed command left behind is terminated.
func TestFailedCreationIsRetried(t *testing.T) {
	s := newProviderStage(t, Config{GiveUpAfter: time.Hour}, testProvider())
	s.submitPlain(1)
	s.answerList()
	s.step(InstanceCreated{Name: "dcs-r-1", Err: "quota"})
	var gaps []time.Duration
	for n := 2; n < 9; n++ {
		at := s.at
		for name := fmt.Sprintf("dcs-r-%d", n); s.instanceRecords(name) == ""; s.wait(time.Second) {
			if s.at-at > time.Hour {
				t.Fatal("no further creation is tried")
			}
			s.answerList()
		}
		gaps = append(gaps, s.at-at)
		s.step(InstanceCreated{Name: fmt.Sprintf("dcs-r-%d", n), Err: "quota"})
	}
	if gaps[0] < 2*time.Second || gaps[0] > 10*time.Second || gaps[6] < 2*time.Minute || gaps[6] > 6*time.Minute {
		t.Errorf("the delays are %v, want them to grow from seconds to minutes", gaps)
	}
	want(t, "what never was", s.instanceRecords("dcs-r-1"), "creating gone")
	s.waitAndAnswerList("dcs-r-8") // the list may have been requested before the command ended
	s.waitAndAnswerList("dcs-r-8")
	wantContains(t, "termination", formatCommands[TerminateInstance](s.wait(10*time.Second)), "{cloud dcs-r-8}")
}

// TestInstanceNeverAnswers checks that an instance that never answers is terminated after a limit,
// and that observed startup times change the estimate.
func TestInstanceNeverAnswers(t *testing.T) {
	s := newProviderStage(t, Config{}, testProvider())
	s.submitPlain(1)
	s.answerList()
	s.step(InstanceCreated{Name: "dcs-r-1"})
	s.waitAndAnswerList("dcs-r-1")
	for s.at < maxStartupFactor*time.Minute-5*time.Second {
		s.wait(time.Second)
		s.answerList("dcs-r-1")
	}
	want(t, "records", s.instanceRecords("dcs-r-1"), "creating")
	s.wait(10 * time.Second)
	want(t, "records", s.instanceRecords("dcs-r-1"), "creating terminating")

	p := &provider{spec: testProvider(), startup: time.Minute}
	p.learnStartup(10 * time.Second)
	p.learnStartup(20 * time.Second)
	want(t, "startup", p.startup, 15*time.Second)
	want(t, "limit", p.answerLimit(), 3*time.Minute)
}

// TestUnansweredInstancesAreFew checks that instances that are created, but never answer, are created
// one at a time with growing delays, and that the run is given up in the end.
func TestUnansweredInstancesAreFew(t *testing.T) {
	s := newProviderStage(t, Config{GiveUpAfter: time.Hour}, testProvider())
	s.submitPlain(100)
	first := s.answerList()
	var names []string // of the instances that exist
	var created []time.Duration
	for s.finish == nil && s.at < 24*time.Hour {
		for commands := append(first, s.wait(time.Second)...); len(commands) > 0; commands = commands[1:] {
			first = nil
			if _, ok := commands[0].(CreateInstance); ok {
				created = append(created, s.at)
			}
			commands = append(commands, s.provide(commands[0], &names)...)
		}
	}
	if n := testProvider().Max; len(created) < n+3 || created[n+2]-created[n+1] < created[n]-created[n-1]+time.Minute {
		t.Errorf("created at %v, want growing delays", created)
	}
	if len(created) > 16 || s.at > 75*time.Minute {
		t.Errorf("%d instances until the run is given up after %v", len(created), s.at)
	}
	wantContains(t, "end", s.finishText(), "no_hosts")
}

// provide carries out a command to create, end, or list instances, of which names are those that exist. It returns
// the commands that follow.
func (s *stage) provide(c Command, names *[]string) []Command {
	switch c := c.(type) {
	case CreateInstance:
		*names = append(*names, c.Name)
		return s.step(InstanceCreated{Name: c.Name})
	case TerminateInstance:
		*names = slices.DeleteFunc(*names, func(name string) bool { return name == c.Name })
		return s.step(InstanceTerminated{Name: c.Name})
	case ListInstances:
		return s.answerList(*names...)
	}
	return nil
}

// TestBadInstancesAreFew checks that instances on which all jobs fail, although they succeed elsewhere, are
// created with growing delays, and without delays again once a job has succeeded on one (X1). An instance that is
// not terminated yet, because its outputs cannot be fetched, counts once.
func TestBadInstancesAreFew(t *testing.T) {
	for _, fetchErr := range []string{"", "no route to host"} {
		testBadInstances(t, fetchErr)
	}
}

func testBadInstances(t *testing.T, fetchErr string) {
	p := testProvider()
	p.Max = 10
	s := newProviderStage(t, Config{}, p, testHost("a", 1))
	s.up("a")
	s.submitPlain(20_000)
	commands := s.answerList()
	isRepaired := false
	var names []string // of the instances that exist
	numCreated, most := 0, 0
	play := func(d time.Duration) {
		numCreated, most = 0, 0
		for end := s.at + d; s.at < end; {
			for commands = append(commands, s.wait(time.Second, append(names, "a")...)...); len(commands) > 0; {
				first := commands[0]
				commands = commands[1:]
				switch c := first.(type) {
				case CreateInstance:
					numCreated++
				case FetchInstance:
					commands = append(commands, s.step(InstanceFetched{Name: c.Name, Err: fetchErr})...)
				case Connect:
					commands = append(commands, s.up(c.Host)...)
				}
				commands = append(commands, s.provide(first, &names)...)
			}
			most = max(most, len(names))
			for _, name := range append(names, "a") {
				h := s.c.byName[name]
				if h == nil || h.oldest == nil {
					continue
				}
				o := exit1
				if name == "a" || isRepaired {
					o = jobs.Outcome{Started: s.now().Wall - jobs.Stamp(time.Second), Ended: s.now().Wall}
				}
				commands = append(commands, s.endFirst(name, o)...)
			}
		}
	}
	play(30 * time.Minute)
	if numCreated > 20 {
		t.Errorf("%d bad instances were created", numCreated)
	}
	if n := s.c.provisions.providers[0].bad; n > numCreated {
		t.Errorf("%d of %d instances count as bad, fetched with error %q", n, numCreated, fetchErr)
	}
	isRepaired = true
	play(30 * time.Minute)
	want(t, "bad in a row when instances are good again", s.c.provisions.providers[0].bad, 0)
	want(t, "most instances then", most, p.Max)
}

// TestInstanceIsGoneAfterTwoLists checks that a failed list proves nothing. An instance that is
// missing from two lists is gone, unless it answers.
func TestInstanceIsGoneAfterTwoLists(t *testing.T) {
	s := servedStage(t, true, 2, true)
	s.started("dcs-r-1", "1.1 2.1")
	for range 3 {
		s.wait(longListInterval, "dcs-r-1")
		s.answerList()
	}
	want(t, "while it answers", s.instanceRecords("dcs-r-1"), "creating up")
	s.step(HostDown{"dcs-r-1", errRefused})
	s.wait(longListInterval)
	s.step(InstancesListed{Provider: "cloud", Err: "no token"})
	s.wait(longListInterval)
	want(t, "after a failed list", s.instanceRecords("dcs-r-1"), "creating up")
	s.wait(2 * time.Minute)
	s.answerList()
	want(t, "after a list without it", s.instanceRecords("dcs-r-1"), "creating up gone")
}

// TestInstanceThatIsNotListedIsDead checks that the attempts on an instance that its provider does not
// list any more run elsewhere without lost_after, and that nothing waits for them at the end. The list
// is requested soon after the instance went silent.
func TestInstanceThatIsNotListedIsDead(t *testing.T) {
	s := servedStage(t, true, 2, true)
	s.started("dcs-r-1", "1.1 2.1")
	s.answerList("dcs-r-1")
	s.step(HostDown{"dcs-r-1", errRefused})
	for range 4 {
		s.wait(shortListInterval)
		s.answerList()
	}
	want(t, "instance", s.instanceRecords("dcs-r-1"), "creating up gone")
	want(t, "attempt", s.job(1).Attempts[0].State, jobs.AttemptLost)
	wantContains(t, "reason", s.job(1).Reason,
		"the instance dcs-r-1 does not exist any more: provider cloud does not list it any more")
	want(t, "attempts that may be alive", len(s.c.orphaned), 0)
	want(t, "events about the inventory", s.numEvents("not in the inventory"), 0)
}

// TestInstanceWhoseHeartbeatFileChangesIsAlive checks that the attempts on an instance that is not
// listed are not given up while its heartbeat file in the shared directory changes.
func TestInstanceWhoseHeartbeatFileChangesIsAlive(t *testing.T) {
	s := servedStage(t, true, 2, true)
	s.started("dcs-r-1", "1.1 2.1")
	s.answerList("dcs-r-1")
	s.step(HostDown{"dcs-r-1", errRefused})
	heartbeat := 1
	inspect := func(d time.Duration) {
		for end := s.at + d; s.at < end; s.answerList() {
			s.waitInspecting(shortListInterval, func(l Inspect) *hosts.Inspected {
				return &hosts.Inspected{Host: l.Host, Heartbeat: fmt.Sprint(heartbeat)}
			})
		}
	}
	for ; heartbeat < 20; heartbeat++ {
		inspect(10 * time.Second)
	}
	want(t, "while it changes", s.instanceRecords("dcs-r-1"), "creating up")
	want(t, "attempt", s.job(1).Attempts[0].State, jobs.AttemptRunning)
	inspect(heartbeatFileTimeout + 2*inspectInterval)
	want(t, "later", s.instanceRecords("dcs-r-1"), "creating up gone")
	want(t, "attempt", s.job(1).Attempts[0].State, jobs.AttemptLost)
}

// TestNextDispatcherAdoptsInstances checks that the next dispatcher adopts instances and terminates
// those that are not needed. It requests the list before it treats an instance as gone.
func TestNextDispatcherAdoptsInstances(t *testing.T) {
	table := func(n int, records ...jobs.Record) *jobs.Table {
		begin := []jobs.Record{{Kind: jobs.KindEpoch, Epoch: 2}, {Kind: jobs.KindAccepted, Job: 1, Count: n}}
		return folded(t, &jobs.Table{Specs: specsOf(1, repeatOptions(n, jobs.NoOptions)...)},
			append(begin, records...)...)
	}
	is := func(name, how string) jobs.Record {
		return jobs.Record{Kind: jobs.KindInstance, At: 1, Host: name, How: how, Reason: "cloud"}
	}
	start := func(tb *jobs.Table, hs ...*hosts.Host) *stage {
		cfg := Config{InstancePrefix: "dcs-r", RunShare: 1}
		s := &stage{t: t, c: New(cfg, tb, inventoryWith(testProvider(), hs...))}
		wantContains(t, "first", formatCommands[ListInstances](s.step(Tick{})), "{cloud}")
		s.step(Submit{Last: true})
		return s
	}
	t.Run("needed", func(t *testing.T) {
		s := start(table(2, is("dcs-r-1", "creating"), is("dcs-r-1", "up")))
		commands := s.answerList("dcs-r-1")
		want(t, "used", formatCommands[Connect](commands), "{dcs-r-1}")
		want(t, "terminated", formatCommands[TerminateInstance](commands), "")
		want(t, "created, while it is on its way", formatCommands[CreateInstance](commands), "")
	})
	t.Run("not needed", func(t *testing.T) {
		s := start(table(0, is("dcs-r-3", "creating"), is("dcs-r-3", "up"), is("dcs-r-7", "creating")))
		wantContains(t, "terminated", formatCommands[TerminateInstance](append(s.answerList("dcs-r-3", "dcs-r-7"),
			s.wait(2*time.Second)...)), "{cloud dcs-r-3} {cloud dcs-r-7}")
	})
	t.Run("terminated again", func(t *testing.T) {
		s := start(table(1, is("dcs-r-1", "creating"), is("dcs-r-1", "terminating")))
		// Recorded by this dispatcher.
		want(t, "records", s.instanceRecords("dcs-r-1"), "terminating")
	})
	t.Run("with an open attempt", func(t *testing.T) {
		s := start(table(1, is("dcs-r-1", "creating"), is("dcs-r-1", "up"),
			jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "dcs-r-1"}, jobs.Record{Kind: jobs.KindRunning,
				Job: 1, N: 1, Host: "dcs-r-1"}))
		s.wait(10 * time.Minute)
		s.wantState(1, jobs.Running) // not given up before the list shows where it is
		want(t, "terminated", formatCommands[TerminateInstance](s.answerList("dcs-r-1")), "")
		want(t, "slots shared with other runs", formatCommands[SetShare](s.up("dcs-r-1")), "")
	})
	t.Run("with an open attempt, not listed yet", func(t *testing.T) {
		s := start(table(1, is("dcs-r-1", "creating"), is("dcs-r-1", "up"),
			jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "dcs-r-1"}, jobs.Record{Kind: jobs.KindRunning,
				Job: 1, N: 1, Host: "dcs-r-1"}))
		s.answerList()
		s.waitAndAnswerList()
		s.wantState(1, jobs.Running) // this dispatcher has not been able to ask it
		want(t, "used when it is listed", formatCommands[Connect](s.waitAndAnswerList("dcs-r-1")), "{dcs-r-1}")
	})
	t.Run("with an open attempt, never listed", func(t *testing.T) {
		s := start(table(1, is("dcs-r-1", "creating"), is("dcs-r-1", "up"),
			jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "dcs-r-1"}, jobs.Record{Kind: jobs.KindRunning,
				Job: 1, N: 1, Host: "dcs-r-1"}))
		for range 5 {
			s.wait(shortListInterval)
			s.answerList()
		}
		want(t, "records", s.instanceRecords("dcs-r-1"), "gone")
		want(t, "attempt", s.job(1).Attempts[0].State, jobs.AttemptLost)
	})
	t.Run("unknown and late ones", func(t *testing.T) {
		s := start(table(0, is("dcs-r-1", "creating"), is("dcs-r-1", "gone")))
		wantContains(t, "terminated", formatCommands[TerminateInstance](append(s.answerList("dcs-r-1", "dcs-r-9"),
			s.wait(2*time.Second)...)), "{cloud dcs-r-1} {cloud dcs-r-9}")
		want(t, "records", s.instanceRecords("dcs-r-9"), "creating terminating")
	})
	t.Run("taken for gone with an open attempt and an output", func(t *testing.T) {
		s := start(table(2, is("dcs-r-1", "creating"), is("dcs-r-1", "up"),
			jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "dcs-r-1"}, jobs.Record{Kind: jobs.KindRunning,
				Job: 1, N: 1, Host: "dcs-r-1"},
			jobs.Record{Kind: jobs.KindLaunching, Job: 2, N: 1, Host: "dcs-r-1"},
			jobs.Record{Kind: jobs.KindExited, Job: 2, N: 1, Host: "dcs-r-1", Next: jobs.Succeeded, Seq: 1,
				Outcome: &succeeded},
			is("dcs-r-1", "gone")))
		commands := s.answerList("dcs-r-1")
		want(t, "used", formatCommands[Connect](commands), "{dcs-r-1}")
		want(t, "terminated", formatCommands[TerminateInstance](append(commands, s.wait(10*time.Second)...)), "")
		s.connectAs("dcs-r-1", "M")
		commands = append(s.ended("dcs-r-1", "1.1", succeeded), s.step(Tick{})...)
		want(t, "fetched when nothing is open", formatCommands[FetchInstance](commands), "{dcs-r-1 [2.1 1.1]}")
		want(t, "records", s.instanceRecords("dcs-r-1"), "up")
	})
	t.Run("numbers go on", func(t *testing.T) {
		s := start(table(1, is("dcs-r-4", "creating"), is("dcs-r-4", "gone")))
		want(t, "created", formatCommands[CreateInstance](s.answerList()), "{cloud dcs-r-5}")
	})
	t.Run("the provider is gone", func(t *testing.T) {
		s := start(table(0, jobs.Record{Kind: jobs.KindInstance, Host: "dcs-r-1", How: "creating", Reason: "other"}))
		want(t, "events about it", s.numEvents("there is no provider other"), 1)
		s.answerList()
		if s.finish == nil || !strings.Contains(s.finish.Why, "instances may still exist: dcs-r-1") {
			t.Errorf("got %+v, want an end that names the instance", s.finish)
		}
	})
}

// TestChangedProviderTakesEffectAtOnce checks that a changed provider takes effect at once. A new
// provider creates instances. A removed provider creates no more and terminates its instances.
func TestChangedProviderTakesEffectAtOnce(t *testing.T) {
	s := connectedStage(t, Config{InstancePrefix: "dcs-r"}, testHost("a", 1))
	s.submit(true, &jobs.Options{Tags: []string{"cloud"}}, &jobs.Options{Tags: []string{"cloud"}, Slots: 2})
	s.wait(time.Second, "a")
	s.wantState(1, jobs.Failed) // no host has the tag, and none will

	s = stageWithJobs(t, 100, Config{InstancePrefix: "dcs-r"}, testHost("a", 1))
	s.started("a", "1.1")
	s.wait(10*time.Minute, "a")
	wantContains(t, "a new provider",
		formatCommands[ListInstances](append(s.step(SetInventory{inventoryWith(testProvider(), testHost("a", 1))}),
			s.wait(time.Second, "a")...)), "{cloud}")
	more := testProvider()
	more.Max = 1
	s.step(SetInventory{inventoryWith(more, testHost("a", 1))})
	s.at += provideInterval
	want(t, "created", formatCommands[CreateInstance](s.answerList()), "{cloud dcs-r-1}")
	s.step(InstanceCreated{Name: "dcs-r-1"})
	s.waitAndAnswerList("dcs-r-1")
	s.step(setHosts(testHost("a", 1)))
	want(t, "created without a provider", formatCommands[CreateInstance](s.wait(2*time.Minute, "a")), "")
	s.answerList("dcs-r-1")
	commands := append(s.step(Cancel{All: true}), s.wait(10*time.Second, "a")...)
	wantContains(t, "terminated", formatCommands[TerminateInstance](commands), "{cloud dcs-r-1}")
}

// TestInstanceStatesFollowEachOther checks that an instance never goes back in its states, except
// that a failed fetch ends a retirement, and only that.
func TestInstanceStatesFollowEachOther(t *testing.T) {
	const last = instanceTerminating
	for from := range last + 1 {
		for to := range last + 1 {
			in := &instance{state: from}
			in.moveTo(to, "asked")
			want(t, fmt.Sprintf("from %d to %d", from, to), in.state, max(from, to))
		}
		for _, linked := range []bool{false, true} {
			in := &instance{state: from, why: "idle", hosts: []*host{{linkState: linkState{linked: linked}}}}
			in.stay()
			stays := from
			if from == instanceRetiring {
				stays = instanceStarting
				if linked {
					stays = instanceUp
				}
			}
			want(t, fmt.Sprintf("state %d after stay, linked %v", from, linked), in.state, stays)
			want(t, "the retirement has a reason", in.why != "", stays == from)
		}
	}
}
