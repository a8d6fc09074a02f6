package runview

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
)

// TestLaterScreenSeesTheLastHour checks that a View that is opened late has the samples and the
// attempts of a host from before, and that a run that has ended still shows its last hour.
func TestLaterScreenSeesTheLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "a")
		l.runs = func(id jobs.AttemptID) (time.Duration, jobs.Outcome) {
			switch id.Job % 3 {
			case 0:
				return 3 * time.Minute, jobs.Outcome{}
			case 1:
				return 2 * time.Minute, jobs.Outcome{Exit: 1}
			}
			return 61 * time.Second, jobs.Outcome{TimedOut: true, Signal: "SIGTERM"}
		}
		began := time.Now()
		l.submit(sleepJobs(6)...)
		time.Sleep(5 * time.Minute)
		late := l.open(Options{Socket: l.dial})
		p := readHost(t, late, "a")
		samples := p.Host.Samples
		if n := len(samples); n < 8 || samples[0].At.Sub(began) > time.Minute || samples[0].Slots != 2 {
			t.Errorf("got %d samples, %+v; want those since the start", n, samples)
		}
		if last := samples[len(samples)-1]; last.Own != 2 || !(last.Rate >= 0) || !p.Host.Until.Equal(p.At) {
			t.Errorf("got the last sample %+v, until %v; want two slots in use, until now", last, p.Host.Until)
		}
		// The times of samples are whole seconds.
		if d := p.Host.Begin.Sub(began); d <= -time.Second || d > 10*time.Second {
			t.Errorf("the history begins %v after the run", d)
		}
		checkRuns(t, "while the run is dispatched", p.Host, Failed, TimedOut, Running)
		if p, err := late.Snapshot(t.Context(), Query{Host: "other"}); err != nil ||
			len(p.Host.Samples)+len(p.Host.Runs) > 0 {
			t.Errorf("another host: %+v, %v; want nothing", p.Host, err)
		}
		late.Close()
		time.Sleep(25 * time.Minute) // all jobs have ended
		l.v.Close()
		l.stop()
		time.Sleep(3 * time.Hour)
		after := Open(l.run, Options{})
		defer after.Close()
		p = readHost(t, after, "a")
		if p.Status != StatusFinished || time.Since(p.Host.Until) < 3*time.Hour {
			t.Errorf("status %v, until %v, want a finished run that is known until its end", p.Status, p.Host.Until)
		}
		checkRuns(t, "three hours after its end", p.Host, Succeeded, Failed, TimedOut)
	})
}

// readHost returns the first snapshot with samples of a host.
func readHost(t *testing.T, v *View, name string) *Snapshot {
	t.Helper()
	ask := Query{Host: name, Wait: time.Minute}
	for {
		p, err := v.Snapshot(t.Context(), ask)
		must(t, err)
		if len(p.Host.Samples) > 0 {
			return p
		}
		ask.After = p.Version
	}
}

// checkRuns checks that the attempts of a host are in the order in which they began, and that they
// have these phases, among others.
func checkRuns(t *testing.T, what string, d *HostDetail, phases ...Phase) {
	t.Helper()
	seen := map[Phase]bool{}
	for i, r := range d.Runs {
		seen[r.Phase] = true
		if r.Slot != 1 || r.Ended.Before(r.Began) || r.Ended.After(d.Until) ||
			i > 0 && r.Began.Before(d.Runs[i-1].Began) || r.Phase == Running && !r.Ended.Equal(d.Until) {
			t.Errorf("%s: attempt %d is %+v, until %v", what, i, r, d.Until)
		}
	}
	for _, p := range phases {
		if !seen[p] {
			t.Errorf("%s: got the attempts %+v, want one in phase %v", what, d.Runs, p)
		}
	}
}

// TestOldAttemptsOfAHostAreLeftOut checks that only the last hour is in the history, that the number
// of attempts is bounded, and what becomes of an attempt that was lost.
func TestOldAttemptsOfAHostAreLeftOut(t *testing.T) {
	const n = maxSlotRuns + 1000
	now := time.Now()
	at := func(d time.Duration) jobs.Stamp { return jobs.StampOf(now.Add(d)) }
	table := &jobs.Table{}
	add := func(state jobs.JobState, attempts ...*jobs.Attempt) {
		id := jobs.ID(len(table.Jobs) + 1)
		spec := &jobs.Spec{ID: id, Options: jobs.NoOptions}
		for i, a := range attempts {
			a.ID, a.Slot, a.Round = jobs.AttemptID{Job: id, N: i + 1}, 1, 1
		}
		j := jobs.Job{Spec: spec, State: state, Round: 1, Attempts: attempts}
		if state.Terminal() {
			table.Seq++
			j.Seq, j.Counted = table.Seq, int32(len(attempts))
		}
		table.Specs, table.Jobs = append(table.Specs, spec), append(table.Jobs, j)
	}
	ran := func(host string, from, to time.Duration) *jobs.Attempt {
		return &jobs.Attempt{Host: host, State: jobs.AttemptExited, Launched: at(from), Started: at(from),
			Outcome: &jobs.Outcome{Started: at(from), Ended: at(to)}}
	}
	for range 500 {
		add(jobs.Succeeded, ran("a", -9*time.Hour, -8*time.Hour))
	}
	add(jobs.Succeeded, ran("a", -70*time.Minute, -50*time.Minute))
	for range 2 * maxTooEarly { // retried on other hosts
		add(jobs.Succeeded, ran("b", -45*time.Minute, -44*time.Minute), ran("c", -44*time.Minute, -43*time.Minute))
	}
	add(jobs.Succeeded, &jobs.Attempt{Host: "a", State: jobs.AttemptLost, Launched: at(-40 * time.Minute),
		Started: at(-40 * time.Minute)}, ran("b", -30*time.Minute, -20*time.Minute))
	add(jobs.Running, &jobs.Attempt{Host: "a", State: jobs.AttemptRunning, Launched: at(-time.Minute),
		Started: at(-time.Minute)})
	add(jobs.Running, &jobs.Attempt{Host: "a", State: jobs.AttemptLaunching, Launched: at(-time.Minute)})
	v := FromTable(runAt(t.TempDir()), table, Options{})
	v.facts.dispatched = true
	v.update(now)
	d := v.newHostDetail("a", nil)
	var phases []string
	for _, r := range d.Runs {
		phases = append(phases, r.Phase.String()+" "+r.Ended.Sub(r.Began).Round(time.Minute).String())
	}
	if got := d.Until.Sub(d.Begin); got != time.Hour {
		t.Errorf("it covers %v, want an hour", got)
	}
	if got, want := strings.Join(phases, ", "), "ok 20m0s, retry 10m0s, away 1m0s"; got != want {
		t.Errorf("the attempts are %s, want %s", got, want)
	}
	for range n {
		add(jobs.Succeeded, ran("a", -2*time.Minute, -time.Minute))
	}
	v = FromTable(runAt(t.TempDir()), table, Options{})
	v.facts.dispatched = true
	v.update(now)
	if got := len(v.newHostDetail("a", []live.Sample{}).Runs); got < maxSlotRuns-2 || got > maxSlotRuns {
		t.Errorf("%d attempts, want at most %d", got, maxSlotRuns)
	}
}
