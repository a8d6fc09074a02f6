package sched

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestLateJobIsFlaggedOnce checks that a job that runs longer than twice the mean plus two standard
// deviations of its queue is flagged, once, if at least five jobs have finished (D4).
func TestLateJobIsFlaggedOnce(t *testing.T) {
	for _, tt := range []struct {
		finished []int // run times in seconds
		want     int   // the second in which the next job becomes a straggler; 0 means never
	}{
		{[]int{10, 10, 10, 10}, 0},
		{[]int{10, 10, 10, 10, 10}, 20},
		{[]int{8, 9, 10, 11, 12}, 26}, // 2 x (10 + 2 x 1.58)
		{[]int{1, 1, 1, 1, 1}, 5},     // the minimum
	} {
		checkFlaggedOnce(t, Config{}, tt.finished, tt.want)
	}
	// As the user sets it: P of the DCS paper, and jobs of less than 5 s, too.
	checkFlaggedOnce(t, Config{StragglerFactor: 4}, []int{10, 10, 10, 10, 10}, 40)
	checkFlaggedOnce(t, Config{StragglerFactor: 1.5}, []int{10, 10, 10, 10, 10}, 15)
	checkFlaggedOnce(t, Config{StragglerFactor: 1, StragglerAge: 100 * time.Millisecond}, []int{1, 1, 1, 1, 1}, 1)
}

// TestStragglerByItsHost checks that the inventory decides for the jobs of a host when they are
// stragglers, and that the command line replaces it (D4).
func TestStragglerByItsHost(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cfg    Config
		wantAt time.Duration
	}{
		{"the host", Config{}, 3 * time.Second},
		{"the command line", Config{StragglerFactor: 4, StragglerAge: time.Second}, 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := testHost("a", 1), testHost("b", 1)
			a.StragglerFactor, a.StragglerAge = 1.5, time.Second
			s := connectedStage(t, tt.cfg, a, b)
			s.submit(true, repeatOptions(2, &jobs.Options{Estimate: 2 * time.Second})...)
			s.started("a", "1.1")
			s.started("b", "2.1")
			at := time.Duration(0)
			for began := s.at; at == 0 && s.at < began+time.Minute; {
				s.wait(100*time.Millisecond, "a", "b")
				if s.isStraggler(1) {
					at = s.at - began
				}
			}
			wantBetween(t, "job 1 is a straggler after", at, tt.wantAt, tt.wantAt+4*time.Second)
			want(t, "job 2, too", s.isStraggler(2), tt.cfg.StragglerFactor > 0)
		})
	}
}

// checkFlaggedOnce checks that a job after others of these run times, in seconds, is flagged once, in
// the second want (0: never) or in the next four.
func checkFlaggedOnce(t *testing.T, cfg Config, finished []int, wantAt int) {
	t.Helper()
	s := stageWithJobs(t, len(finished)+1, cfg, testHost("a", 1))
	for i, sec := range finished {
		s.endAfter("a", fmt.Sprintf("%d.1", i+1), time.Duration(sec)*time.Second)
	}
	id := jobs.ID(len(finished) + 1)
	s.started("a", fmt.Sprintf("%d.1", id))
	at := 0
	for sec := 1; sec <= 60; sec++ {
		s.wait(time.Second, "a")
		if s.isStraggler(id) && at == 0 {
			at = sec
		}
	}
	if at < wantAt || at > wantAt+4 || (wantAt == 0) != (at == 0) {
		t.Errorf("%v: a straggler after %d s, want %d", finished, at, wantAt)
	}
	if n := len(s.eventsAbout("straggler")); n > 1 || n != s.c.numStragglers.Of(1) {
		t.Errorf("%v: said %q, %d of them", finished, s.eventsAbout("straggler"), s.c.numStragglers.Of(1))
	}
	s.ended("a", fmt.Sprintf("%d.1", id), succeeded)
	want(t, "stragglers when it is over", s.c.numStragglers.Of(1), 0)
	want(t, "a straggler", s.isStraggler(id), false)
}

// TestUsersEstimateDecidesWhoIsLate checks that an estimate by the user counts instead, from the
// first job on, and that queues are independent (D4).
func TestUsersEstimateDecidesWhoIsLate(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1))
	s.submit(true, &jobs.Options{Estimate: 20 * time.Second})
	s.started("a", "1.1")
	want(t, "estimate", s.c.estimate(1), 20*time.Second)
	s.wait(39*time.Second, "a")
	want(t, "a straggler after 39 s", s.isStraggler(1), false)
	s.wait(6*time.Second, "a")
	want(t, "a straggler", s.isStraggler(1), true)
	want(t, "said", fmt.Sprint(s.eventsAbout("straggler")),
		"[job 1 is a straggler: it has run for 42 s on a, and it was estimated at 20 s]")

	s = connectedStage(t, Config{}, testHost("a", 1))
	q := &jobs.Options{Queue: "q"}
	s.submit(true, q, q, q, q, q, q, jobs.NoOptions)
	s.endAllAfter("a", 5, 7*time.Second)
	if a, b, c := s.c.estimate(6), s.c.estimate(7), s.c.estimate(99); a != 7*time.Second || b != 0 || c != 0 {
		t.Errorf("estimates: got %s, %s, %s; want 7s and twice none", a, b, c)
	}
}

// TestRunningJobsNeverCountAsShort checks that running jobs never count as short ones. If most
// running jobs are long, the queue has jobs of two kinds and none is late. A single long job is not
// hidden by its own age (D4).
func TestRunningJobsNeverCountAsShort(t *testing.T) {
	for _, tt := range []struct {
		finished, long int
		flagged        bool
	}{{5, 1, true}, {100, 3, true}, {10, 10, false}, {5, 60, false}} {
		s := stageWithJobs(t, tt.finished+tt.long, Config{}, testHost("a", 100))
		for i := range tt.finished {
			s.endAfter("a", fmt.Sprintf("%d.1", i+1), time.Duration(10+i%3)*time.Second)
		}
		for i := range tt.long {
			s.started("a", fmt.Sprintf("%d.1", tt.finished+i+1))
		}
		s.wait(10*time.Minute, "a")
		if got := s.c.numStragglers.Of(1); got != map[bool]int{true: tt.long}[tt.flagged] {
			t.Errorf("%d finished, %d long: %d stragglers", tt.finished, tt.long, got)
		}
		if e := s.c.estimate(jobs.ID(tt.finished + tt.long)); tt.long > 1 && e < 20*time.Second {
			t.Errorf("%d finished, %d long: the estimate is %s", tt.finished, tt.long, e)
		}
	}
}

// TestStragglersDoNotHideEachOther checks that jobs that are equally slow on one host are flagged as soon as
// a single one would be, however many they are (D4).
func TestStragglersDoNotHideEachOther(t *testing.T) {
	for _, slow := range []int{1, 2, 30} {
		s := stageWithJobs(t, slow+5, Config{}, testHost("slow", slow), testHost("fast", 5))
		for range 5 {
			s.started("fast", s.attemptsOn("fast")[0].String())
			s.endAfter("fast", s.attemptsOn("fast")[0].String(), 10*time.Second)
		}
		for _, id := range s.attemptsOn("slow") {
			s.started("slow", id.String())
		}
		s.wait(30*time.Second, "slow", "fast")
		want(t, fmt.Sprintf("stragglers of %d slow jobs", slow), s.c.numStragglers.Of(1), slow)
	}
}

// TestNewDispatcherLearnsRunTimes checks that a new dispatcher learns the run times from the
// existing results, and knows how long the adopted attempts have run. Attempts on unreachable hosts
// are not judged.
func TestNewDispatcherLearnsRunTimes(t *testing.T) {
	s := stageWithJobs(t, 6, Config{}, testHost("a", 1))
	s.endAllAfter("a", 5, 10*time.Second)
	s.wait(2*time.Minute, "a") // so that launch and start differ
	s.started("a", "6.1")
	s.wait(3*time.Second, "a")
	s.c = New(Config{}, s.c.table, inventoryOf(testHost("a", 1)))
	s.at += 25 * time.Second
	s.step(Submit{Last: true})
	want(t, "estimate", s.c.estimate(6), 10*time.Second)
	want(t, "a straggler while its host is not heard", s.isStraggler(6), false)
	s.up("a")
	s.wait(TickInterval, "a")
	want(t, "a straggler", s.isStraggler(6), true)
}

// BenchmarkStragglerCheck measures a check of 10,000 running jobs for stragglers.
func BenchmarkStragglerCheck(b *testing.B) {
	const n = 10_000
	specs := specsOf(1, repeatOptions(n, jobs.NoOptions)...)
	c := New(Config{}, &jobs.Table{}, inventoryOf(testHost("a", 4096), testHost("b", 4096), testHost("c", 4096)))
	now := Time{Wall: wallStart}
	c.Step(now, Submit{Specs: specs, Last: true})
	for _, h := range []string{"a", "b", "c"} {
		_, commands := c.Step(now, HostUp{Host: h, Hello: &hosts.Hello{Slots: 4096, Cores: 4096}})
		m := &hosts.Started{}
		for _, p := range launchItems(commands, "") {
			m.Jobs = append(m.Jobs, hosts.StartedJob{Attempt: p.Attempt})
		}
		c.Step(now, AttemptsStarted{h, m})
	}
	for i := range 20 {
		c.statsOf(specs[0]).Add(float64(100 + i%5))
	}
	c.now.Mono = time.Minute
	for b.Loop() {
		c.stragglerCheckAt = 0
		c.updateStragglers()
	}
}

// isStraggler reports whether the job is listed as a straggler.
func (s *stage) isStraggler(id jobs.ID) bool { return slices.Contains(s.c.Running().Stragglers, id) }

// estimate returns an upper estimate of a job's run time: its user's estimate, or the mean and two
// standard deviations of its queue. It is 0 if that is not known.
func (c *Core) estimate(id jobs.ID) time.Duration {
	j := c.table.Job(id)
	if j == nil {
		return 0
	}
	if f := c.inFlightOf(j); f != nil && f.started {
		d, _ := f.expectedRunTime(f.age(c.now.Mono))
		return d
	}
	if j.Spec.Estimate > 0 {
		return j.Spec.Estimate
	}
	s := 0.0
	if st := c.stats[j.Spec.Queue]; st != nil {
		s, _ = st.Estimate("", false, 0)
	}
	return durationOfSeconds(s)
}
