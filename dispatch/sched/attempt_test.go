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
	"dcs-tui/observe/ask"
)

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
		after := jobstest.After
		s.submitAfter(true, map[jobs.ID]jobs.Dependencies{4: after(3), 5: after(4), 6: after(2), 7: after(6)},
			repeatOptions(8, jobs.NoOptions)...)
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
