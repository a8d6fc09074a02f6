package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// observe measures the cost of watching a run.
func observe(l *lab, r *report) error {
	r.table("measure", "goal", "measured")
	dir := l.runDir()
	if err := bigRun(dir, 1_000_000, 1); err != nil {
		return err
	}
	if err := l.observeMillion(r, dir); err != nil {
		return err
	}
	delays, err := l.delays()
	if err != nil {
		return err
	}
	r.row("end of a job to its row, at the pace of a screen, median of "+strconv.Itoa(len(delays)), "300 ms",
		ms(median(delays)))
	r.row("the same, 90 % of them", "", ms(quantile(delays, 0.9)))
	var shares []float64
	for range l.rounds {
		alone, err := l.throughputWith(0)
		if err != nil {
			return err
		}
		watched, err := l.throughputWith(3)
		if err != nil {
			return err
		}
		shares = append(shares, watched/alone)
	}
	r.row("throughput with three screens attached, relative to none", "0.93", fmt.Sprintf("%.2f", median(shares)))
	return nil
}

// observeMillion measures a screen that is attached to a run with a million finished jobs while the
// last job runs.
func (l *lab) observeMillion(r *report, dir string) error {
	resume := l.command("resume", "--no-tui", dir)
	if err := resume.Start(); err != nil {
		return err
	}
	defer func() {
		exec.Command(l.bin, "cancel", "--all", "--yes", dir).Run()
		resume.Wait()
	}()
	if !polltest.Within(time.Minute, func() bool {
		table, _, err := journal.Replay(&rundir.Run{Dir: dir, Disk: rundir.OS, Settings: new(rundir.Settings)})
		return err == nil && table.Counts[jobs.Running] == 1
	}) {
		return fmt.Errorf("the last job of %s does not run", dir)
	}
	var times []time.Duration
	for range l.rounds {
		start := time.Now()
		s, err := l.open(160, 48, dir, "attach", dir)
		if err != nil {
			return err
		}
		for !s.has("1,000,000") {
			time.Sleep(2 * time.Millisecond)
		}
		times = append(times, time.Since(start))
		s.leave()
	}
	r.row("attach to a million finished jobs: right counts and the first page", "3 s", ms(median(times)))
	s, err := l.open(160, 48, dir, "attach", dir)
	if err != nil {
		return err
	}
	defer s.leave()
	s.quiet(time.Second)
	time.Sleep(10 * time.Second)
	const span = 30 * time.Second
	cpu, _, after, err := s.useOver(span)
	r.row("memory of that screen", "300 MiB", mib(after.rss)+", at most "+mib(after.peak))
	r.row("CPU of that screen, idle", "0.8 % of a core", share(cpu, span))
	return err
}

// delays returns, for each job, the time from its end until a runview.View shows it. The view is
// queried as often as by a screen.
func (l *lab) delays() ([]time.Duration, error) {
	const n = 60
	ends := filepath.Join(l.dir, "ends")
	if err := os.MkdirAll(ends, 0o700); err != nil {
		return nil, err
	}
	file := l.file("ends.txt", strings.Repeat("sleep 0.37; date +%s%N > "+ends+"/$DCS_JOB_ID\n", n))
	dir := l.runDir()
	cmd := l.dcs(1, 1, dir, file)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer cmd.Wait()
	var run *rundir.Run
	var err error
	if !polltest.Within(time.Minute, func() bool { run, err = rundir.Open(dir); return err == nil }) {
		return nil, err
	}
	v := runview.Open(run, runview.Options{Socket: func(ctx context.Context, o *journal.Owner) (runview.Conn, error) {
		return socket.Dial(ctx, o.Socket, run.UID())
	}})
	defer v.Close()
	var delays []time.Duration
	seen := map[jobs.ID]bool{}
	ask := runview.Query{Wait: time.Second, Jobs: &runview.JobsWindow{Rows: n, Sort: runview.SortID}}
	for end := time.Now().Add(2 * time.Minute); len(seen) < n &&
		time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		p, err := v.Snapshot(context.Background(), ask)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		ask.After = p.Version
		for _, row := range p.Jobs.Rows {
			if row.Phase != runview.Succeeded || seen[row.ID] {
				continue
			}
			seen[row.ID] = true
			b, err := os.ReadFile(filepath.Join(ends, fmt.Sprint(row.ID)))
			if ns, err2 := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && err2 == nil {
				delays = append(delays, now.Sub(time.Unix(0, ns)))
			}
		}
	}
	if len(delays) == 0 {
		return nil, fmt.Errorf("no job of %s was seen to end", dir)
	}
	return delays, nil
}

// attachTime is how long a measurement waits for screens to be attached and drawn. Opening them
// takes up to half a second of CPU each, which is no part of watching.
const attachTime = 3 * time.Second

// throughputWith returns the jobs per second of a run while the given number of screens watch it.
// It counts the jobs that end after attachTime.
func (l *lab) throughputWith(screens int) (float64, error) {
	dir := l.runDir()
	cmd := l.dcs(1, 2, dir, l.file("zero.txt", strings.Repeat("sleep 0\n", l.jobs)))
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	polltest.Within(10*time.Second, func() bool {
		o, _ := os.ReadFile(filepath.Join(dir, rundir.OwnerFile))
		return strings.Contains(string(o), `"socket"`)
	})
	for range screens {
		s, err := l.open(160, 48, dir, "attach", dir)
		if err != nil {
			cmd.Wait()
			return 0, err
		}
		defer s.leave()
	}
	time.Sleep(attachTime)
	since := jobs.StampOf(time.Now())
	if err := cmd.Wait(); err != nil {
		return 0, err
	}
	return rateSince(dir, since)
}

// rateSince returns how many jobs of a finished run ended in each second after since.
func rateSince(dir string, since jobs.Stamp) (float64, error) {
	run, err := rundir.Open(dir)
	if err != nil {
		return 0, err
	}
	r := journal.NewReader(run, journal.Follow(run))
	if _, err := r.Poll(nil); err != nil {
		return 0, err
	}
	n, last := 0, since
	for _, j := range r.Table().Jobs {
		for _, a := range j.Attempts {
			if a.Outcome != nil && a.Outcome.Ended > since {
				n++
				last = max(last, a.Outcome.Ended)
			}
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("all jobs of %s ended before the screens were attached: use more -jobs", dir)
	}
	return float64(n) / (float64(last-since) / float64(time.Second)), nil
}
