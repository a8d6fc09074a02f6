package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestTries: K tries in all (D2); the wait is random(0.5, 1) x 2^(n-1) s.
func TestTries(t *testing.T) {
	for _, tt := range []struct{ run, job, want int }{{0, 0, 3}, {1, 0, 1}, {0, 5, 5}, {4, 2, 2}} {
		s := newStage(t, Config{Tries: tt.run, Seed: uint64(tt.want)}, box("a", 1))
		s.up("a")
		s.submit(true, &jobs.Options{Tries: tt.job})
		n := 1
		for s.job(1).State != jobs.Failed {
			a := jobs.AttemptID{Job: 1, N: n}
			s.ended("a", a.String(), exit1)
			s.ended("a", a.String(), exit1) // a repeat changes nothing
			if s.job(1).State == jobs.Failed {
				break
			}
			wait := s.job(1).Retry.Sub(s.now().Wall)
			if most := time.Second << (n - 1); wait < most/2 || wait > most {
				t.Errorf("wait after failure %d is %v, want %v to %v", n, wait, most/2, most)
			}
			if s.wait(wait-time.Millisecond, "a"); s.job(1).State != jobs.Queued {
				t.Errorf("tried again too early")
			}
			s.wait(time.Second, "a")
			s.wantState(1, jobs.Running)
			n++
		}
		if n != tt.want {
			t.Errorf("%+v: %d tries", tt, n)
		}
	}
}

func TestRetryPauseIsBounded(t *testing.T) {
	c := New(Config{}, &jobs.Table{}, nil)
	for n := 1; n < 100; n++ {
		if p := c.retryPause(n); p < time.Second/2 || p > time.Minute {
			t.Errorf("pause after failure %d is %v", n, p)
		}
	}
}

// TestOutcomes: what each way to end makes of a job with tries left.
func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     Config
		o       jobs.Outcome
		want    jobs.JobState
		charged bool
	}{
		{"success", Config{}, okay, jobs.Succeeded, false},
		{"exit code", Config{}, exit1, jobs.Queued, true},
		{"signal", Config{}, jobs.Outcome{Signal: "SIGSEGV"}, jobs.Queued, true},
		{"could not be started", Config{}, jobs.Outcome{Error: "no such directory"}, jobs.Queued, true},
		{"last try", Config{Tries: 1}, jobs.Outcome{Error: "no such directory"}, jobs.Failed, true},
		{"timeout is final (E1)", Config{}, jobs.Outcome{TimedOut: true, Signal: "SIGTERM"}, jobs.TimedOut, true},
		{"timeout tried again", Config{RetryTimeouts: true}, jobs.Outcome{TimedOut: true}, jobs.Queued, true},
		{"last timeout", Config{RetryTimeouts: true, Tries: 1}, jobs.Outcome{TimedOut: true}, jobs.TimedOut, true},
		{"stopped on the host, by an earlier dispatcher that drained it: it runs again at once", Config{}, jobs.Outcome{Stopped: true, Signal: "SIGTERM"}, jobs.Running, false},
	} {
		s := newStage(t, tt.cfg, box("a", 1))
		s.up("a")
		s.plain(1)
		s.started("a", "1.1")
		s.ended("a", "1.1", tt.o)
		j := s.job(1)
		if j.State != tt.want || (j.Failures == 1) != tt.charged {
			t.Errorf("%s: %s with %d failures (%s)", tt.name, j.State, j.Failures, j.Reason)
		}
	}
}

// TestTimeoutOfTheRun reaches the host unless the job has its own (E1).
func TestTimeoutOfTheRun(t *testing.T) {
	s := newStage(t, Config{Timeout: time.Minute}, box("a", 2))
	s.up("a")
	s.submit(true, jobs.NoOptions, &jobs.Options{Timeout: time.Second})
	l := s.orders[0].(Launch)
	if l.Jobs[0].Timeout != time.Minute || l.Jobs[1].Timeout != time.Second {
		t.Errorf("timeouts %v and %v", l.Jobs[0].Timeout, l.Jobs[1].Timeout)
	}
}

// TestRefused: attempts a host does not take go elsewhere uncharged, and the host
// rests a little, longer each time.
func TestRefused(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 1))
	s.up("a", "b")
	s.plain(2)
	s.started("b", "2.1")
	s.ended("b", "2.1", okay)
	o := s.step(HostRefused{"a", &hosts.Refused{Attempts: attemptIDs("1.1"), Why: "spool full"}})
	want(t, "elsewhere", on(o, "b"), "1.2")
	want(t, "limit", said[SetLimit](o), "{a 0}")
	if s.job(1).Failures != 0 {
		t.Errorf("a refusal is charged")
	}
	v := s.c.Hosts()[0]
	if v.State != BackingOff {
		t.Errorf("host is %s", v.State)
	}
	contains(t, "reason", v.Reason, "spool full")
	s.step(HostRefused{"a", &hosts.Refused{Attempts: attemptIDs("1.1"), Why: "spool full"}}) // a repeat
	if n := s.c.hosts[0].rest.refusals; n != 1 {
		t.Errorf("%d refusals in a row", n)
	}
	want(t, "after the rest", said[SetLimit](s.wait(3*time.Second, "a", "b")), "{a 2}")
}

// TestRefusalsAddUp: a host whose disk is full is tried again after longer and longer
// pauses, though its supervisors hold attempts for a moment before they refuse
// them (B1, issue 3.6).
func TestRefusalsAddUp(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2))
	s.up("a")
	s.plain(2)
	for n := 1; n <= 4; n++ {
		one, two := fmt.Sprintf("1.%d", n), fmt.Sprintf("2.%d", n)
		s.probedAs("a", two, hosts.IsRunning, nil) // withdrawn too late
		for _, id := range []string{one, two} {    // each supervisor for itself: they count once
			s.step(HostRefused{"a", &hosts.Refused{Attempts: attemptIDs(id), Why: "no space left on device"}})
		}
		if got := s.c.hosts[0].rest.refusals; got != n {
			t.Fatalf("%d refusals in a row, want %d", got, n)
		}
		s.wait(time.Minute, "a")
	}
	s.started("a", "1.5")
	if got := s.c.hosts[0].rest.refusals; got != 0 {
		t.Errorf("%d refusals in a row after a start", got)
	}
}

// TestFenced: a host that knows a newer dispatcher ends this one.
func TestFenced(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2))
	s.step(HostUp{"a", &hosts.Hello{Slots: 2, FencedBy: 7}})
	if s.finish == nil || s.finish.How != Fenced {
		t.Fatalf("finish %+v", s.finish)
	}
	s.plain(1)
	want(t, "launched", on(s.orders, "a"), "")
}
