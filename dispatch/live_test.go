package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir/disktest"
)

func liveState(t *testing.T, d *Dispatcher) *live.State {
	t.Helper()
	s, err := d.Live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hasSignal(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestLiveShowsTheStateOfTheRun checks the published state of a running run, a paused run with a
// lost host, and a finished run.
func TestLiveShowsTheStateOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10*time.Second, "a", "b")
		r.submit(20)
		time.Sleep(15 * time.Second)
		s := liveState(t, r.d)
		if s.V != jobs.FormatLive.Version || s.Run != "u1" || s.Epoch != 1 || !s.At.Equal(time.Now()) || s.More ||
			s.Held ||
			s.Tries != jobs.DefaultTries || s.Finish != nil {
			t.Errorf("got state %+v, want that of a new run of the first dispatcher", s)
		}
		if len(s.Hosts) != 2 {
			t.Fatalf("%d hosts", len(s.Hosts))
		}
		if h := s.Hosts[1]; h.Name != "b" || h.State != "up" || !h.Linked || h.Slots != 4 || h.Usable != 4 ||
			h.Running < 4 || h.Done != 4 || h.Cores != 4 ||
			h.MemBytes != 1<<33 || h.Heartbeat == 0 || h.Down != 0 || len(h.History) == 0 {
			t.Errorf("got host %+v, want it up, with four slots in use", h)
		}
		if s.Rate == 0 || s.ETA == 0 || len(s.Queues) != 1 || s.Queues[0].Mean != 10*time.Second {
			t.Errorf("rate %v, ETA %v, queues %+v", s.Rate, s.ETA, s.Queues)
		}

		r.d.Do(sched.Pause{On: true})
		r.hosts.cut("b", "no route to host")
		time.Sleep(time.Minute)
		s = liveState(t, r.d)
		if !s.Held || !s.Hosts[0].Linked {
			t.Errorf("a paused run: %+v", s)
		}
		if h := s.Hosts[1]; h.State != "lost" || h.Linked || h.Usable != 0 || h.Down == 0 || h.Reason == "" ||
			h.Note == "" {
			t.Errorf("a lost host: %+v", h)
		}
		r.d.Do(sched.Pause{})
		r.finish(20)
		if s = liveState(t, r.d); s.Finish == nil || s.Finish.How != "done" || len(s.Hosts) != 2 {
			t.Errorf("after the end: %+v", s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.d.Live(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		r.hosts.forget()
	})
}

// TestSignalsOfEvents checks which events signal changes, durable records, and host reports.
func TestSignalsOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, "a")
		r.submit(1)
		time.Sleep(5 * time.Second)
		g := r.d.Signals()
		if !hasSignal(g.Changes) || !hasSignal(g.Durable) || !hasSignal(g.Reports) {
			t.Error("the start was not signaled")
		}
		time.Sleep(5 * time.Second)
		if hasSignal(g.Changes) || hasSignal(g.Durable) || !hasSignal(g.Reports) {
			t.Error("a host report is not signaled as such")
		}
		r.journal.Fail(errors.New("no space left on device"))
		r.d.Do(sched.Pause{On: true})
		time.Sleep(time.Second)
		if !hasSignal(g.Changes) || liveState(t, r.d).Problem == "" {
			t.Error("a problem is not signaled")
		}
		r.journal.Fail(nil)
		r.d.Do(sched.Pause{})
		r.finish(1)
		r.hosts.forget()
	})
}

// busyEngine returns an engine that is not running. It has numHosts hosts of 16 slots, all busy
// with jobs that report progress, and a run of numJobs jobs.
func busyEngine(tb testing.TB, numHosts, numJobs int) *engine {
	tb.Helper()
	table := &jobs.Table{Jobs: make([]jobs.Job, 0, numJobs)}
	options := make([]*jobs.Options, 50)
	for i := range options {
		options[i] = &jobs.Options{Queue: fmt.Sprintf("experiment-%d", i)}
	}
	for i := range numJobs {
		table.Specs = append(table.Specs,
			&jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: options[i%len(options)]})
	}
	d := &Dispatcher{signals: newSignals(), inputs: make(chan input, 1), done: make(chan struct{}),
		finished: make(chan struct{}), results: newCompletions(),
		cfg: Config{RunUID: "abcdefghjkmn", Table: table, Inventory: new(hosts.Inventory), Open: hosts.Open{Epoch: 1}}}
	for i := range numHosts {
		d.cfg.Inventory.Hosts = append(d.cfg.Inventory.Hosts, &hosts.Host{Name: fmt.Sprintf("compute-node-%d", i+1),
			Slots: hosts.SlotRule{Fixed: 16}})
	}
	e := newEngine(d)
	step := func(ev sched.Event) {
		// Freeze the time, or hosts would become suspect on a slow machine.
		e.start = time.Now().Add(-time.Hour)
		e.step(ev)
	}
	e.start = time.Now().Add(-time.Hour)
	e.history.nextAt = e.now().Mono
	step(sched.Submit{Specs: table.Specs, Last: true})
	for _, h := range d.cfg.Inventory.Hosts {
		step(sched.HostUp{Host: h.Name, Hello: &hosts.Hello{Slots: 16, Cores: 16, MemBytes: 1 << 36}})
	}
	running := map[string]*hosts.Started{}
	heartbeats := map[string]*hosts.Heartbeat{}
	for i := range table.Jobs {
		for _, a := range table.Jobs[i].Attempts {
			if running[a.Host] == nil {
				running[a.Host] = &hosts.Started{}
				heartbeats[a.Host] = &hosts.Heartbeat{Load: [3]float64{15.871234, 14.2, 13.991}, Busy: 15.9712,
					Ours: 15.51234, MemFree: 31234567890, DiskFree: 1234567890123,
					FSDelay: 1234567, Progress: map[string]string{}}
			}
			running[a.Host].Jobs = append(running[a.Host].Jobs, hosts.StartedJob{Attempt: a.ID, Slot: 1})
			heartbeats[a.Host].Progress[a.ID.String()] = "epoch 17 of 50"
		}
	}
	for _, h := range d.cfg.Inventory.Hosts {
		if m := running[h.Name]; m != nil {
			step(sched.AttemptsStarted{Host: h.Name, Msg: m})
			step(sched.HostHeartbeat{Host: h.Name, Heartbeat: heartbeats[h.Name]})
		}
		past := e.history.hosts[h.Name]
		past.note = h.Name + " is up: 16 slots, 16 cores, 64 GiB of memory"
		for i := range past.history {
			past.history[i] = uint8(i)
		}
		past.numSamples = maxSamples
	}
	if e.core.Defects != 0 {
		tb.Fatal("defects")
	}
	return e
}

// TestLiveFileIsAsSmallAsDocumented checks the size that docs/reference/live.md promises, for hosts
// that each have a note and jobs that each report progress.
func TestLiveFileIsAsSmallAsDocumented(t *testing.T) {
	e := busyEngine(t, 1000, 100_000)
	v := e.liveView()
	s := v.state()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	progress, _ := json.Marshal(s.Progress)
	t.Logf("%d bytes, %d of them progress of %d attempts; a host: %+v", len(b), len(progress), len(s.Progress),
		s.Hosts[0])
	if len(b) > 500_000 {
		t.Errorf("%d bytes with 1,000 hosts, want 500,000 at most", len(b))
	}
	if len(s.Progress) < 1000 || len(s.Hosts[0].History) != maxSamples || s.Hosts[0].Note == "" {
		t.Errorf("progress of %d attempts, host %+v", len(s.Progress), s.Hosts[0])
	}
	// Long texts do not make the state larger than a reader accepts.
	for i := range v.views {
		v.s.Hosts[i].Note, v.views[i].Reason = strings.Repeat("ü", 500), strings.Repeat("ü", 500)
	}
	if b, err = json.Marshal(v.state()); err != nil || len(b) > live.MaxBytes/2 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// BenchmarkLive measures the time to create a state in the engine and to publish it.
func BenchmarkLive(b *testing.B) {
	e := busyEngine(b, 1000, 1_000_000)
	b.Run("engine", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.start = e.start.Add(-time.Second) // advance by one second, the interval of states
			e.liveView()
		}
	})
	b.Run("publish", func(b *testing.B) {
		r := disktest.NewRun(b)
		v := e.liveView()
		b.ReportAllocs()
		for b.Loop() {
			if err := live.Write(r, v.state(), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
