package sched

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// silentStage returns a stage in which a and b, each with a running job, have been silent for d, and
// c answers. With a gateway, a and b are behind it.
func silentStage(t *testing.T, cfg Config, d time.Duration, gateway string) *stage {
	a, b := testHost("a", 1), testHost("b", 1)
	if gateway != "" {
		a.Jump, b.Jump = []string{gateway}, []string{gateway}
	}
	s := stageWithJobs(t, 3, cfg, a, b, testHost("c", 1))
	s.started("a", "1.1")
	s.started("b", "2.1")
	s.started("c", "3.1")
	s.endFirst("c", succeeded)
	s.wait(d, "c")
	return s
}

// TestWhatIsWaitedForIsShown checks that why and the views of the run show which silent hosts are
// waited for, why, until when, and how to end the wait (D6, K8).
func TestWhatIsWaitedForIsShown(t *testing.T) {
	for _, tt := range []struct {
		name    string
		onLost  jobs.OnLost
		gateway string
		why     string
		view    string
	}{
		{"one answers", jobs.OnLostDefault, "", "queued again in 30 s (lost_after)",
			"2 attempts wait for a and b, which cannot be reached: they are queued again in 30 s (lost_after)"},
		{"none behind the gateway answers", jobs.OnLostDefault, "gate",
			"every host behind the gateway gate is silent, so the network may be the cause; it is queued again " +
				"in 15 min (outage_after)",
			"2 attempts wait for a and b, which cannot be reached: every host behind the gateway gate is " +
				"silent, so the network may be the cause; they are queued again in 15 min (outage_after)"},
		{"on_lost=wait", jobs.OnLostWait, "", "it waits for it without a limit (on_lost=wait)",
			"2 attempts wait for a and b, which cannot be reached: without a limit (on_lost=wait)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := silentStage(t, Config{OnLost: tt.onLost}, 30*time.Second, tt.gateway)
			why := s.c.Why(s.now(), 1)
			wantContains(t, "why", why, tt.why)
			wantContains(t, "why", why, "dcs-tui requeue ends the wait")
			v := s.c.Awaited(s.now())
			want(t, "view", v.Text, tt.view)
			want(t, "hosts", strings.Join(v.Hosts, " "), "a b")
			want(t, "a wait with a limit", v.HasLimit, tt.onLost != jobs.OnLostWait)
		})
	}
	s := silentStage(t, Config{}, 10*time.Second, "")
	want(t, "hosts that are not silent yet", len(s.c.Awaited(s.now()).Hosts), 0)
}

// TestReturningHostsAreWaitedFor checks what is shown while hosts may follow one that is back.
func TestReturningHostsAreWaitedFor(t *testing.T) {
	s := outageStage(t, 5*time.Minute)
	s.up("a")
	wantContains(t, "why", s.c.Why(s.now(), 2),
		"other hosts are back, and this one may follow; it is queued again in 90 s")
}

// TestForecastDoesNotCountOnSilentHosts checks that the forecast contains the wait for silent hosts
// and the time to run their jobs elsewhere, and that there is none if the wait has no limit.
func TestForecastDoesNotCountOnSilentHosts(t *testing.T) {
	finish := func(cfg Config, gateway string) *stage {
		a, b := testHost("a", 1), testHost("b", 4)
		a.Jump = nil
		if gateway != "" {
			a.Jump, b.Jump = []string{gateway}, []string{"g2"}
		}
		s := stageWithJobs(t, 12, cfg, a, b)
		for range 11 {
			at := s.attemptsOn("b")
			if len(at) == 0 {
				break
			}
			s.started("b", at[0].String())
			s.endAfter("b", at[0].String(), 10*time.Second)
		}
		s.started("a", s.attemptsOn("a")[0].String())
		s.step(hostDown("a", hosts.Unreachable, "no route"))
		s.wait(20*time.Second, "b")
		return s
	}
	finish(Config{}, "").wantETA("with a limit of 60 s", 45*time.Second, 75*time.Second)
	finish(Config{OnLost: jobs.OnLostWait}, "").wantETA("without a limit", 0, 0)
}

// TestRequeueEndsTheWaitForASilentHost checks that a requeue of a job on a silent host gives its
// attempt up at once, with a warning. A job on a host that answers is left alone. An attempt that may
// still start there is given up when its lease is over (E6, K8).
func TestRequeueEndsTheWaitForASilentHost(t *testing.T) {
	for _, onLost := range []jobs.OnLost{jobs.OnLostDefault, jobs.OnLostWait} {
		s := silentStage(t, Config{OnLost: onLost}, 20*time.Second, "gate")
		s.step(Request{Name: "r", Do: []Event{Requeue{Jobs: []jobs.ID{1}}}})
		want(t, "job 1", s.history(1), "running: a lost, c launching")
		want(t, "warnings", s.numEvents("attempt 1.1 may still run there"), 1)
		want(t, "job 2", s.history(2), "running: b running")
		s.started("c", "1.2")
		s.step(Requeue{Jobs: []jobs.ID{1}})
		want(t, "where it runs", s.history(1), "running: a lost, c running")
		s.up("a")
		s.probedAs("a", "1.1", hosts.HasExited, &succeeded)
		s.wantState(1, jobs.Succeeded)
	}

	s := stageWithJobs(t, 1, Config{}, testHost("a", 1), testHost("b", 1))
	s.wait(20*time.Second, "b")
	s.step(Requeue{Jobs: []jobs.ID{1}})
	want(t, "may still start", s.history(1), "running: a launching")
	s.wait(60*time.Second, "b")
	want(t, "when its lease is over", s.history(1), "running: a lost, b launching")
}

// TestStopOfASilentHostEndsTheWait checks that jobs of a stopped host that is silent are queued again
// after lost_after, although the network may be the cause, and that no event claims that they were
// ended. With on_lost=wait they wait on. A removed host is treated alike, and its jobs always run
// elsewhere (E6, K8).
func TestStopOfASilentHostEndsTheWait(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ask    Event
		onLost jobs.OnLost
		waits  bool
	}{
		{"stop", DrainHost{Host: "a", On: true, Now: true}, jobs.OnLostDefault, false},
		{"stop, on_lost=wait", DrainHost{Host: "a", On: true, Now: true}, jobs.OnLostWait, true},
		{"drain", DrainHost{Host: "a", On: true}, jobs.OnLostDefault, true},
		{"remove", setHosts(testHost("b", 1), testHost("c", 1)), jobs.OnLostDefault, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := silentStage(t, Config{OnLost: tt.onLost}, 20*time.Second, "gate")
			s.step(tt.ask)
			if !tt.waits {
				want(t, "events", s.numEvents("it cannot be reached, so its 1 attempt may still run there: it "+
					"is queued again in 40 s"), 1)
				want(t, "events", s.numEvents("what runs there finishes"), 0)
				wantContains(t, "why", s.c.Why(s.now(), 1), "queued again in 40 s (lost_after)")
			}
			if tt.onLost == jobs.OnLostWait {
				want(t, "events", s.numEvents("it waits without a limit (on_lost=wait); dcs-tui requeue ends the wait"),
					1)
			}
			s.wait(39*time.Second, "c")
			s.wantState(1, jobs.Running)
			s.wait(10*time.Second, "c")
			state := jobs.AttemptLost
			if tt.waits {
				state = jobs.AttemptRunning
			}
			want(t, "attempt", s.job(1).Attempts[0].State, state)
		})
	}
}
