package tui

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// millionJobs returns the table of a stopped run of a million jobs, half of which are over.
func millionJobs() *jobs.Table {
	const n = 1_000_000
	t := &jobs.Table{Specs: make([]*jobs.Spec, n), Jobs: make([]jobs.Job, n)}
	specs := make([]jobs.Spec, n)
	failed := &jobs.Outcome{Exit: 1, LastLine: "no such file", Started: 1, Ended: 2e9}
	for i := range n {
		s, j := &specs[i], &t.Jobs[i]
		*s = jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprintf("python train.py --C %d --gamma %d", i/1000, i%1000),
			Options: jobs.NoOptions}
		t.Specs[i] = s
		*j = jobs.Job{Spec: s, Round: 1}
		if i%2 == 0 {
			a := &jobs.Attempt{ID: jobs.AttemptID{Job: s.ID, N: 1}, Host: fmt.Sprintf("ws%02d", i%40), Round: 1,
				State: jobs.AttemptExited, Outcome: failed}
			j.Attempts, j.State = []*jobs.Attempt{a}, jobs.Failed
			t.Seq++
			j.Seq, j.Counted = t.Seq, 1
		}
		t.Counts[j.State]++
	}
	return t
}

// BenchmarkScreen measures the time from a key press to the frame that shows its result, for a run
// of a million jobs. The number of key presses is fixed and does not depend on b.N.
func BenchmarkScreen(b *testing.B) {
	src := runview.FromTable(&rundir.Run{Dir: b.TempDir()}, millionJobs(), runview.Options{})
	defer src.Close()
	m := newModel(Options{Source: src}, time.Now)
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 48})
	look := func() {
		snap, err := src.Snapshot(context.Background(), m.buildQuery())
		if err != nil {
			b.Fatal(err)
		}
		m.Update(snapshotMsg{snap: snap})
		m.View()
	}
	for range 3 {
		look()
	}
	keys := []string{"j", "k", "ctrl+d", "pgdown", "pgup", "G", "k", "g", "space", "down", "up", "2", "1", "3", "1",
		"5", "1", "ctrl+u", "w", "esc"}
	var frames, whole []time.Duration
	for i := range 200 {
		begin := time.Now()
		m.Update(keyMessage(keys[i%len(keys)]))
		m.View()
		frames = append(frames, time.Since(begin))
		look()
		whole = append(whole, time.Since(begin))
		if d := whole[i]; d > 16*time.Millisecond {
			b.Logf("%q took %v, of it %v until the first frame", keys[i%len(keys)], d, frames[i])
		}
	}
	slices.Sort(frames)
	slices.Sort(whole)
	for b.Loop() {
		m.Update(keyMessage("j"))
		m.View()
	}
	in := func(d time.Duration) float64 { return float64(d) / 1e6 }
	b.ReportMetric(in(frames[100]), "frame-median-ms")
	b.ReportMetric(in(frames[199]), "frame-worst-ms")
	b.ReportMetric(in(whole[100]), "look-median-ms")
	b.ReportMetric(in(whole[199]), "look-worst-ms")
}

var _ runview.Source = (*runview.View)(nil)
