package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/observe/ask"
)

// TestMinimalTimeoutsSkipTheSame checks that the minimal timeouts skip the same tuples as all
// timeouts do, in whatever order the timeouts arrive. No minimal timeout implies another one, and
// no job sorts before a job that is at most as hard (E2).
func TestMinimalTimeoutsSkipTheSame(t *testing.T) {
	words := []string{"0", "1", "2", "3.0", "-1", "x", "y"}
	limits := []time.Duration{0, time.Second, time.Minute}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := newHardnessIndex()
		n := 1 + rng.IntN(3)
		draw := func() *tuple {
			o := &jobs.Options{}
			for range n {
				o.Hardness = append(o.Hardness, words[rng.IntN(len(words))])
			}
			return h.internTuple(o, limits[rng.IntN(len(limits))])
		}
		var bars []knownTimeout
		for i := range 60 {
			if u := draw(); rng.IntN(4) == 0 && u.limit > 0 {
				b := knownTimeout{u.components, u.limit, jobs.ID(i + 1)}
				bars = append(bars, b)
				h.addTimeout(u.family, b)
			}
		}
		for range 20 {
			draw() // tuples that arrive after the timeouts
		}
		f := h.list[0]
		for _, u := range f.list {
			want := slices.ContainsFunc(bars, func(b knownTimeout) bool {
				return isHarderNaive(b.components, u.components) && u.limit > 0 && u.limit <= b.limit
			})
			if got := u.timedOutJob != 0; got != want {
				t.Fatalf("seed %d: %v with %v is to be skipped: %v, want %v by %v", seed, u.components, u.limit, got,
					want, bars)
			}
		}
		for i, a := range f.timeouts {
			for k, b := range f.timeouts {
				if i != k && isHarderNaive(a.components, b.components) && b.limit <= a.limit {
					t.Fatalf("seed %d: %v says what %v says", seed, b, a)
				}
			}
		}
		for _, a := range f.list {
			for _, b := range f.list {
				if a != b && isHarderNaive(a.components, b.components) && isHarderNaive(b.components, a.components) &&
					a.limit == b.limit {
					t.Fatalf("seed %d: %v is given twice", seed, a.components)
				}
				if d := a.compare(b); d != -b.compare(a) || a != b && d == 0 ||
					isHarderNaive(a.components, b.components) && !isHarderNaive(b.components, a.components) && d >= 0 {
					t.Fatalf("seed %d: %v comes %d to %v", seed, a.components, d, b.components)
				}
				for _, c := range f.list {
					if a.compare(b) < 0 && b.compare(c) < 0 && a.compare(c) >= 0 {
						t.Fatalf("seed %d: %v %v %v go round", seed, a.components, b.components, c.components)
					}
				}
			}
		}
	}
}

// isHarderNaive reports whether b is at least as hard as a, as E2 defines it.
func isHarderNaive(a, b []jobs.Hardness) bool {
	for i := range a {
		if a[i].IsNum != b[i].IsNum || a[i].IsNum && a[i].Num.Compare(b[i].Num) > 0 || !a[i].IsNum &&
			a[i].Text != b[i].Text {
			return false
		}
	}
	return true
}

// BenchmarkDomino queues 100,000 jobs with as many tuples. Then 1,000 more jobs, none of which is
// as hard as another, time out one after the other. They lie on the antidiagonal of a square; the
// others lie beyond it.
func BenchmarkDomino(b *testing.B) {
	const side, bars = 317, 1000
	var all []*jobs.Options
	for x := range side {
		for y := range side {
			all = append(all, &jobs.Options{Hardness: []string{strconv.Itoa(x * 4), strconv.Itoa(y * 4)},
				Timeout: time.Minute})
		}
	}
	var hardest []*jobs.Options
	for i := range bars {
		hardest = append(hardest, &jobs.Options{Hardness: []string{strconv.Itoa(i), strconv.Itoa(bars - i)},
			Timeout: time.Minute, Priority: -1})
	}
	for b.Loop() {
		c := New(Config{}, &jobs.Table{}, inventoryOf(testHost("melon1", bars)))
		now := Time{Wall: wallStart}
		specs := specsOf(1, slices.Concat(hardest, all)...)
		begin := time.Now()
		c.Step(now, Submit{Specs: specs, Last: true})
		submitted := time.Since(begin)
		c.Step(now, HostUp{Host: "melon1", Hello: &hosts.Hello{Cores: bars + 1, Slots: bars}})
		c.Step(now, HostHeartbeat{Host: "melon1", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
		begin = time.Now()
		var longest time.Duration
		for i := range bars {
			id := jobs.AttemptID{Job: jobs.ID(i + 1), N: 1}
			if c.inFlight[id] == nil {
				b.Fatal("not launched", id)
			}
			was := time.Now()
			c.Step(now, AttemptsEnded{"melon1",
				&hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Outcome: timedOut}}}})
			longest = max(longest, time.Since(was))
		}
		if n := len(c.hardness.list[0].timeouts); n != bars || c.Defects > 0 {
			b.Fatal(n, "minimal timeouts,", c.Defects, "defects")
		}
		b.ReportMetric(float64(submitted)/float64(len(specs)), "ns/job-submitted")
		b.ReportMetric(float64(time.Since(begin))/bars/1e3, "µs/timeout")
		b.ReportMetric(float64(longest)/1e6, "ms-longest-step")
		b.ReportMetric(float64(c.table.Counts[jobs.Skipped]), "skipped")
	}
}

// TestProgressIsAFractionOrAText checks that DCS_PROGRESS is read as a fraction, or as text that is
// shown unchanged.
func TestProgressIsAFractionOrAText(t *testing.T) {
	for text, want := range map[string]float64{"0.5": 0.5, " 42% \n": 0.42, "21/50": 0.42, "1": 1, "0": 0,
		"3 / 4": 0.75,
		"":      -1, "x": -1, "120%": -1, "5/0": -1, "NaN": -1, "-1": -1, "epoch 3": -1} {
		got, said := jobs.ReadProgress(text)
		if got != want || (got < 0) != (said != "") && text != "" {
			t.Errorf("%q: %v %q", text, got, said)
		}
	}
	if _, said := jobs.ReadProgress(strings.Repeat("x", 1000)); len(said) > 64 {
		t.Errorf("%d bytes", len(said))
	}
}

// TestForecastUsesProgress checks that the forecast uses the progress that jobs report. A single
// job that is a third done has a forecast, which does not grow while the job proceeds as reported,
// and which has a realistic spread. A job whose report cannot be parsed has no forecast.
func TestForecastUsesProgress(t *testing.T) {
	s := stageWithJobs(t, 1, Config{}, testHost("a", 1))
	s.started("a", "1.1")
	says := func(text string) {
		s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Uptime: s.at,
			Progress: map[string]string{"1.1": text}}})
	}
	const total = 100 // seconds
	says("warming up")
	s.wantETA("from words", 0, 0)
	for i := range total/3 - 1 {
		s.at += 3 * time.Second
		done := (i + 1) * 3
		says(fmt.Sprintf("%d/%d", done, total))
		eta, spread, ok := s.c.ETA(s.now())
		left := time.Duration(total-done) * time.Second
		if off := eta - left; !ok || max(off, -off) > spread || spread < eta/10 || spread < time.Second ||
			spread > left+5*time.Second {
			t.Errorf("%d %% done: %s ± %s, %v; want %s", done, eta, spread, ok, left)
		}
	}
	s.at += 30 * time.Second // it is stuck at the end
	says("99/100")
	s.wantETA("overdue", time.Second, time.Hour)
}

// TestRunningListsTheNewestProgress checks that Running lists the newest progress of each running
// attempt with the time when it changed. Queues lists the queues whose run times are known,
// beginning with those that have waiting jobs.
func TestRunningListsTheNewestProgress(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 3))
	p, q := &jobs.Options{Queue: "p"}, &jobs.Options{Queue: "q"}
	s.submit(true, append(slices.Repeat([]*jobs.Options{p}, 5), slices.Repeat([]*jobs.Options{q}, 12)...)...)
	for range 13 {
		s.endAfter("a", s.attemptsOn("a")[0].String(), 2*time.Second)
	}
	want(t, "Queues", fmt.Sprint(s.c.Queues(10)), "[{q 2s 0s} {p 2s 0s}]")
	want(t, "Queues", fmt.Sprint(s.c.Queues(1)), "[{q 2s 0s}]")
	first, second := s.attemptsOn("a")[0], s.attemptsOn("a")[1]
	s.started("a", first.String())
	s.started("a", second.String())
	heartbeat := func(progress map[string]string) { s.heartbeat("a", hosts.Heartbeat{Progress: progress}) }
	heartbeat(map[string]string{first.String(): "1/3", second.String(): "a", "99.1": "x"})
	at := s.at
	heartbeat(map[string]string{first.String(): "1/3", second.String(): "b"})
	want(t, "Progress", fmt.Sprint(s.c.Running().Progress),
		fmt.Sprint([]ProgressView{{first, "1/3", at}, {second, "b", s.at}}))
}

// TestETANeverTooSure checks that the spread stays at least a tenth of the forecast while few jobs
// have ended, and at the end of the run, even if all jobs are alike.
func TestETANeverTooSure(t *testing.T) {
	s := stageWithJobs(t, 100, Config{}, testHost("a", 1))
	for i := range 99 {
		s.endAfter("a", fmt.Sprintf("%d.1", i+1), 10*time.Second)
		if i < 9 || i > 20 && i < 98 {
			continue
		}
		s.at += etaInterval
		if eta, spread, ok := s.c.ETA(s.now()); !ok || spread < eta/10 || spread < time.Second {
			t.Errorf("%d have ended: %s ± %s, %v", i+1, eta, spread, ok)
		}
	}
}

// toUndo carries out a cancel and returns the jobs that must be requeued to undo it.
func (s *stage) toUndo(ev Event) []jobs.ID {
	trace := ask.Trace{Name: "cancel"}
	s.step(Request{Name: trace.Name, Do: []Event{ev}})
	for i := range s.records {
		trace.OnRecord(&s.records[i])
	}
	return ask.JobsToRequeue(s.c.table, trace.Affected)
}

// TestRequeueRestoresWhatACancelEnded checks that a requeue restores all jobs that a cancel ended.
// This includes the jobs that were skipped because of it and jobs that are still being stopped when
// the requeue arrives, but not jobs that had ended before.
func TestRequeueRestoresWhatACancelEnded(t *testing.T) {
	for _, early := range []bool{false, true} {
		s := connectedStage(t, Config{Tries: 1}, testHost("a", 2))
		after := func(ids ...jobs.ID) *jobs.Options { return &jobs.Options{After: ids} }
		n := jobs.NoOptions
		// 4 depends on 3, 5 on 4, 6 on the running 2, and 7 on 6.
		s.submit(true, n, n, n, after(3), after(4), after(2), after(6), n)
		s.started("a", "1.1 2.1")
		s.ended("a", "1.1", exit1)
		s.step(Pause{true})
		s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("3.1 8.1")}})
		s.wantState(3, jobs.Queued)
		ids := s.toUndo(Cancel{Jobs: []jobs.ID{1, 2, 3}})
		want(t, "undo", fmt.Sprint(ids), "[2 3 4 5 6 7]")
		s.wantState(5, jobs.Skipped)
		want(t, "jobs that are being ended", fmt.Sprint(s.c.Running().Ending), "[2]")
		if early {
			s.step(Requeue{ids})
		}
		s.ended("a", "2.1", jobs.Outcome{Stopped: true, Signal: "SIGTERM"})
		if !early {
			s.wantState(7, jobs.Skipped)
			s.step(Requeue{ids})
		}
		for _, id := range ids {
			s.wantState(id, jobs.Queued)
		}
		s.wantState(1, jobs.Failed)
		s.step(Pause{})
		for s.c.hosts[0].oldest != nil {
			s.endFirst("a", succeeded)
		}
		if s.c.table.Counts[jobs.Succeeded] != 7 || s.finish == nil {
			t.Errorf("early %v: %v", early, s.c.table.Counts)
		}
	}
}

// TestCancelAfterAnUndoTakesEffect checks that a cancel after the undo takes effect, and that a job
// that ended before its cancel took effect keeps its result.
func TestCancelAfterAnUndoTakesEffect(t *testing.T) {
	s := stageWithJobs(t, 2, Config{}, testHost("a", 2))
	s.started("a", "1.1 2.1")
	both := []jobs.ID{1, 2}
	s.step(Cancel{Jobs: both})
	s.step(Requeue{both})
	s.step(Cancel{Jobs: []jobs.ID{1}})
	s.ended("a", "1.1", jobs.Outcome{Stopped: true})
	s.wantState(1, jobs.Canceled)
	s.ended("a", "2.1", succeeded)
	s.wantState(2, jobs.Succeeded)
	want(t, "finish", s.finishText(), "done")
}
