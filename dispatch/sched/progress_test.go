package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestReadProgress: DCS_PROGRESS is a share, or text that is shown as it is (TUI.md: progress).
func TestReadProgress(t *testing.T) {
	for text, want := range map[string]float64{"0.5": 0.5, " 42% \n": 0.42, "21/50": 0.42, "1": 1, "0": 0, "3 / 4": 0.75,
		"": -1, "x": -1, "120%": -1, "5/0": -1, "NaN": -1, "-1": -1, "epoch 3": -1} {
		got, said := jobs.ReadProgress(text)
		if got != want || (got < 0) != (said != "") && text != "" {
			t.Errorf("%q: %v %q", text, got, said)
		}
	}
	if _, said := jobs.ReadProgress(strings.Repeat("x", 1000)); len(said) > 64 {
		t.Errorf("%d bytes", len(said))
	}
}

// TestETAOfProgress: what a job says of itself counts: a single one that has a third done
// has a forecast, that grows neither while it keeps its word nor is too sure; one that
// says nothing that can be read has none (TUI.md row 2).
func TestETAOfProgress(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(1)
	s.started("a", "1.1")
	says := func(text string) {
		s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, Uptime: s.at, Progress: map[string]string{"1.1": text}}})
	}
	const total = 100 // seconds
	says("warming up")
	if _, _, ok := s.c.ETA(s.now()); ok {
		t.Fatal("known from words")
	}
	for i := range total/3 - 1 {
		s.at += 3 * time.Second
		done := (i + 1) * 3
		says(fmt.Sprintf("%d/%d", done, total))
		eta, spread, ok := s.c.ETA(s.now())
		left := time.Duration(total-done) * time.Second
		if off := eta - left; !ok || max(off, -off) > spread || spread < eta/10 || spread < time.Second || spread > left+5*time.Second {
			t.Errorf("%d %% done: %s ± %s, %v; want %s", done, eta, spread, ok, left)
		}
	}
	s.at += 30 * time.Second // it is stuck at the end
	says("99/100")
	if eta, _, ok := s.c.ETA(s.now()); !ok || eta < time.Second {
		t.Errorf("overdue: %s, %v", eta, ok)
	}
}

// Running lists the newest progress of each attempt that runs and when it was new; Queues
// lists the queues whose run times are known, those that wait first.
func TestRunningAndQueues(t *testing.T) {
	s := newStage(t, Config{}, box("a", 3))
	s.up("a")
	p, q := &jobs.Options{Queue: "p"}, &jobs.Options{Queue: "q"}
	s.submit(true, append(slices.Repeat([]*jobs.Options{p}, 5), slices.Repeat([]*jobs.Options{q}, 12)...)...)
	open := func() []jobs.AttemptID {
		var list []jobs.AttemptID
		for f := s.c.hosts[0].head; f != nil; f = f.next {
			list = append(list, f.id)
		}
		return list
	}
	for range 13 {
		s.ranFor("a", open()[0].String(), 2*time.Second)
	}
	if got := fmt.Sprint(s.c.Queues(10)); got != "[{q 2s 0s} {p 2s 0s}]" {
		t.Errorf("Queues = %s", got)
	}
	if got := fmt.Sprint(s.c.Queues(1)); got != "[{q 2s 0s}]" {
		t.Errorf("Queues(1) = %s", got)
	}
	first, second := open()[0], open()[1]
	s.started("a", first.String())
	s.started("a", second.String())
	beat := func(progress map[string]string) {
		s.at += 3 * time.Second
		s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, Uptime: s.at, Progress: progress}})
	}
	beat(map[string]string{first.String(): "1/3", second.String(): "a", "99.1": "x"})
	at := s.at
	beat(map[string]string{first.String(): "1/3", second.String(): "b"})
	want := fmt.Sprint([]ProgressView{{first, "1/3", at}, {second, "b", s.at}})
	if got := fmt.Sprint(s.c.Running().Progress); got != want {
		t.Errorf("Progress = %s, want %s", got, want)
	}
}

// TestETANeverTooSure: however alike the jobs were, a tenth is left open while few have
// ended, and at the end of the run.
func TestETANeverTooSure(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(100)
	for i := range 99 {
		s.ranFor("a", fmt.Sprintf("%d.1", i+1), 10*time.Second)
		if i < 9 || i > 20 && i < 98 {
			continue
		}
		s.at += etaEvery
		if eta, spread, ok := s.c.ETA(s.now()); !ok || spread < eta/10 || spread < time.Second {
			t.Errorf("%d have ended: %s ± %s, %v", i+1, eta, spread, ok)
		}
	}
}
