package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// gridSource shows the sample run with the table of a real board over a grid: params are
// the parameters of each job, print what it has printed. The last job has failed.
func gridSource(t *testing.T, params [][]jobs.Param, print func(i int) string, columns ...string) *fakeSource {
	t.Helper()
	dir := t.TempDir()
	o := runview.Options{}
	for _, text := range columns {
		c, err := metrics.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Figures = append(o.Figures, c)
	}
	o.Outputs = func(c []*metrics.Metric) *metrics.Reader {
		return metrics.NewReader(&rundir.Run{Dir: dir, Disk: rundir.OS, Asked: &rundir.Asked{Cwd: dir}}, c)
	}
	table := &jobs.Table{Cancels: map[jobs.ID]jobs.Cancel{}}
	for i, p := range params {
		s := &jobs.Spec{ID: jobs.ID(i + 1), Command: "train", Params: p, Options: jobs.NoOptions}
		at := jobs.AttemptID{Job: s.ID, N: 1}
		out := &jobs.Outcome{Started: 1e18, Ended: 1e18 + jobs.Stamp(i+1)*jobs.Stamp(time.Second), CPU: time.Second, MaxRSSBytes: 9 << 20}
		j := jobs.Job{Spec: s, Round: 1, Seq: int64(i + 1), State: jobs.Succeeded,
			Attempts: []*jobs.Attempt{{ID: at, Host: fmt.Sprintf("ws%02d", 1+i%3), Round: 1, State: jobs.AttemptExited, Started: out.Started, Outcome: out}}}
		if i == len(params)-1 {
			j.State, j.Failures, out.Exit = jobs.Failed, 3, 137
		}
		table.Specs, table.Jobs = append(table.Specs, s), append(table.Jobs, j)
		table.Counts[j.State]++
		path := jobs.AttemptFile(dir, at, jobs.FileOut)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(print(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := runview.FromTable(&rundir.Run{Dir: dir, Disk: rundir.OS, Asked: &rundir.Asked{Cwd: dir}}, table, o)
	t.Cleanup(b.Close)
	return &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
		p := samplePicture(ask)
		if ask.Table == nil {
			return p, nil
		}
		for a := (runview.Ask{Table: ask.Table}); ; {
			q, err := b.Look(context.Background(), a)
			if err != nil {
				return nil, err
			}
			if q.Table.Plain || q.Table.Ready && q.Table.Read == q.Table.Jobs {
				p.Table = q.Table
				return p, nil
			}
			a.After, a.Wait = q.Version, time.Second
		}
	}}
}

// sweep are four values of C, three of gamma and two seeds.
func sweep(t *testing.T) *fakeSource {
	var params [][]jobs.Param
	for i := range 24 {
		params = append(params, []jobs.Param{{Name: "C", Value: []string{"0.01", "0.1", "1", "10"}[i/6]},
			{Name: "gamma", Value: []string{"0.25", "0.5", "1"}[i/2%3]}, {Name: "seed", Value: fmt.Sprint(1 + i%2)}})
	}
	return gridSource(t, params, func(i int) string { return fmt.Sprintf("acc=0.%03d\nloss=%d\n", (i*377+91)%1000, i%5) }, "acc", "loss")
}

// newResults is a screen with the view of results.
func newResults(t *testing.T, src *fakeSource, w, h int, ascii bool) *model {
	t.Helper()
	m := newModel(Options{Source: src, ASCII: ascii}, func() time.Time { return noon })
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	m.open(tabResults)
	refresh(t, m)
	return m
}

// typed carries out a command.
func typed(t *testing.T, m *model, line string) error {
	t.Helper()
	cmd, err := m.command(line)
	finish(t, m, cmd)
	refresh(t, m)
	return err
}
