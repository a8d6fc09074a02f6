package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// bigRun writes a run of n ended jobs with their outputs: 1 % failed, 40 hosts, two queues, four
// parameters, and the metric acc. left further jobs are queued. A run without such jobs has ended.
func bigRun(dir string, n, left int) error {
	at := jobs.StampOf(time.Now().Add(-24 * time.Hour))
	run, err := rundir.CreateAt(dir, filepath.Base(dir), rundir.Settings{Version: "bench", Created: at.Time(),
		Cwd: filepath.Dir(dir), Options: map[string]any{"results": []string{"acc"}}})
	if err != nil {
		return err
	}
	queues := [2]*jobs.Options{{Queue: "short"}, {Queue: "long"}}
	specs := make([]*jobs.Spec, n+left)
	for i := range specs {
		params := []jobs.Param{
			{Name: "C", Value: strconv.Itoa(i / 1000)},
			{Name: "gamma", Value: strconv.Itoa(i / 10 % 100)},
			{Name: "kernel", Value: []string{"rbf", "linear"}[i/5%2]},
			{Name: "seed", Value: strconv.Itoa(i % 5)},
		}
		command := "python train.py"
		for _, p := range params {
			command += " --" + p.Name + " " + p.Value
		}
		if i >= n {
			command = "sleep 100000"
		}
		specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Line: i + 1, Command: command, Labels: jobs.NewLabels("", params),
			Options: queues[i%len(queues)]}
	}
	if err := run.AppendSpecs(specs); err != nil {
		return err
	}
	j, _, _, err := journal.Take(context.Background(), run, journal.TakeOptions{})
	if err != nil {
		return err
	}
	batch := []jobs.Record{{Kind: jobs.KindAccepted, At: at, Job: 1, Count: n + left}}
	for i := 1; i <= n; i++ {
		id := jobs.AttemptID{Job: jobs.ID(i), N: 1}
		start, slot := at+jobs.Stamp(i/640*12)*1e9, 1+i%16
		launch := jobs.Record{Kind: jobs.KindLaunching, At: start, Job: id.Job, N: 1, Host: fmt.Sprintf("ws%02d", i%40)}
		took := time.Duration(8000+i*37%8000) * time.Millisecond
		end := jobs.Record{
			Kind: jobs.KindExited,
			At:   start + jobs.Stamp(took),
			Job:  id.Job,
			N:    1,
			Slot: slot,
			Next: jobs.Succeeded,
			Seq:  int64(i),
			Outcome: &jobs.Outcome{
				Started:     start,
				Ended:       start + jobs.Stamp(took),
				CPU:         took - time.Second/2,
				MaxRSSBytes: int64(8+i%1000) << 20,
			},
		}
		output := fmt.Sprintf("epoch 1\nacc=0.%04d\n", i*7919%10000)
		if i%100 == 0 {
			end.Next, end.Outcome.Exit, end.Outcome.LastLine = jobs.Failed, 1, "ValueError: NaN in step "+
				strconv.Itoa(i)
			output = ""
		}
		batch = append(batch, launch, end)
		path := jobs.AttemptFile(dir, id, jobs.FileOut)
		err := os.WriteFile(path, []byte(output), 0o600)
		if errors.Is(err, os.ErrNotExist) {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(output), 0o600))
		}
		if err != nil {
			return err
		}
		if len(batch) > 1000 {
			if err := j.Append(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	batch = append(batch, jobs.Record{Kind: jobs.KindAcked, At: at, Seq: int64(n)})
	if left == 0 {
		batch = append(batch, jobs.Record{Kind: jobs.KindEnded, At: at},
			jobs.Record{Kind: jobs.KindClosed, At: at, How: jobs.ClosedDone})
	}
	if err := errors.Join(j.Append(batch), j.Sync(), j.Close()); err != nil {
		return err
	}
	table, _, err := journal.Replay(run)
	if err != nil {
		return err
	}
	return journal.WriteCounts(run, table)
}

// millionCommands are the commands that million measures, each with its arguments before the run.
// Metrics are collected by the first command that shows them, and then stored.
var millionCommands = [][]string{
	{"status"}, {"runs"},
	{"results", "--json"}, {"results", "--failed"}, {"results", "--columns", "job,host,time"},
	{"results", "--format", "csv"}, {"results"}, {"results", "--where", "acc>0.999"}, {"results", "--group", "C"},
	{"report", "-o", "-"}, {"resume", "--no-tui"},
}

// million measures commands on runs of many ended jobs.
func million(l *lab, r *report) error {
	r.table("command", "10^5: peak", "CPU", "10^6: peak", "CPU", "output")
	own, err := os.Executable()
	if err != nil {
		return err
	}
	rows := make([][]string, len(millionCommands))
	for i, args := range millionCommands {
		rows[i] = []string{fmt.Sprintf("`%s`", strings.Join(args, " "))}
	}
	for _, n := range []int{100_000, 1_000_000} {
		base := l.runDir()
		dir := filepath.Join(base, rundir.Base, "big")
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			return err
		}
		// A process of its own, because the peak of a child counts that of the process that starts it.
		if out, err := exec.Command(own, "-bigrun", strconv.Itoa(n), dir).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for i, args := range millionCommands {
			cmd := exec.Command(l.bin, args...)
			if args[0] != "runs" {
				cmd.Args = append(cmd.Args, dir)
			}
			cmd.Dir = base
			size := new(byteCount)
			cmd.Stdout = size
			use, err := timed(cmd)
			if err != nil && cmd.ProcessState.ExitCode() != 1 { // some jobs failed
				return fmt.Errorf("%v: %w", args, err)
			}
			rows[i] = append(rows[i], mib(use.rss), fmt.Sprintf("%.1f s", use.cpu.Seconds()))
			if n == 1_000_000 {
				r.row(append(rows[i], mib(int64(*size)))...)
			}
		}
		os.RemoveAll(base)
	}
	return nil
}

type byteCount int64

func (n *byteCount) Write(b []byte) (int, error) {
	*n += byteCount(len(b))
	return len(b), nil
}
