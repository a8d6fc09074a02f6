package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"dcs-tui/jobs/live"
)

const sentBytes = 1 << 30

// sendFiles measures launches to a host, one at a time, and the age of its heartbeats. It measures
// them on an idle link, and while the host receives a file of 1 GiB for another job. The run
// directory is in a mount namespace, so the host does not share it.
func sendFiles(l *lab, r *report) error {
	dir := filepath.Join(l.dir, "apart")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	run := l.dcs(1, 4, "run", "--json", "--tries", "1", "-")
	script := `mount -t tmpfs -o mode=700 none "$0"; cd "$0"; head -c ` + fmt.Sprint(sentBytes) +
		` /dev/urandom > big; exec "$@"`
	cmd := exec.Command("unshare", append([]string{"-m", "sh", "-euc", script, dir}, run.Args...)...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return err
	}
	state := fmt.Sprintf("/proc/%d/root%s/run/live.json", cmd.Process.Pid, dir)
	t := &client{in: in, out: bufio.NewReader(out), state: state}
	for range 3 {
		if _, err := t.launch(); err != nil {
			return err
		}
	}
	var alone, beside launches
	idle := func() error {
		for range 1500 {
			if err := alone.add(t); err != nil {
				return err
			}
		}
		return nil
	}
	if err := idle(); err != nil {
		return err
	}
	if _, err := io.WriteString(in, "#DCS name=big send=big\ntrue\n"); err != nil {
		return err
	}
	start := time.Now()
	for !t.big {
		if err := beside.add(t); err != nil {
			return err
		}
	}
	took := time.Since(start)
	if err := idle(); err != nil { // measure again, because other users may load this machine
		return err
	}
	in.Close()
	if _, err := io.Copy(io.Discard, t.out); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	r.table("what", "launches", "median, ms", "p95", "oldest heartbeat, s")
	alone.show(r, "nothing is sent")
	beside.show(r, "1 GiB is sent")
	r.say("It took %.1f s, %.0f MiB/s.", took.Seconds(), sentBytes/took.Seconds()/(1<<20))
	return nil
}

// launches are the times of launches, and the age of the oldest heartbeat meanwhile.
type launches struct {
	times     []time.Duration
	heartbeat time.Duration
}

func (s *launches) add(t *client) error {
	d, err := t.launch()
	s.times, s.heartbeat = append(s.times, d), max(s.heartbeat, t.heartbeat())
	return err
}

func (s *launches) show(r *report, what string) {
	r.row(what, fmt.Sprint(len(s.times)), ms(median(s.times)), ms(quantile(s.times, 0.95)),
		fmt.Sprintf("%.1f", s.heartbeat.Seconds()))
}

// client submits jobs to a run and reads their results.
type client struct {
	in    io.Writer
	out   *bufio.Reader
	state string // path of live.json
	big   bool   // the job with the large file has ended
}

// launch submits a job and returns the time until it started.
func (t *client) launch() (time.Duration, error) {
	start := time.Now()
	if _, err := io.WriteString(t.in, "#DCS name=small\ntrue\n"); err != nil {
		return 0, err
	}
	for {
		line, err := t.out.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		var result struct {
			Name, State string
			Started     time.Time
		}
		if err := json.Unmarshal(line, &result); err != nil {
			return 0, err
		}
		if result.State != "succeeded" {
			return 0, fmt.Errorf("a job has failed: %s", line)
		}
		if result.Name != "big" {
			return result.Started.Sub(start), nil
		}
		t.big = true
	}
}

// heartbeat returns the age of the host's last published heartbeat.
func (t *client) heartbeat() time.Duration {
	b, err := os.ReadFile(t.state)
	var s live.State
	if err != nil || json.Unmarshal(b, &s) != nil || len(s.Hosts) == 0 {
		return 0
	}
	return s.Hosts[0].Heartbeat
}
