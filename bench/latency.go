package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// latency measures the time until a job's first instruction. Warm, it starts when a line is written
// to `run -` of a connected, idle run. Cold, it starts with the program, which has to connect to
// four hosts. The comparisons are a shell behind an open ssh connection and a new ssh connection.
func latency(l *lab, r *report) error {
	const n = 50
	warm, err := warmRuns(l, n)
	if err != nil {
		return err
	}
	shell, err := openShell(l, n)
	if err != nil {
		return err
	}
	var cold, coldSSH []time.Duration
	for range max(9, l.rounds) {
		dir := l.runDir()
		file := l.file("cold.txt", strings.Repeat("echo $EPOCHREALTIME\n", 4))
		start := time.Now()
		if _, err := timed(l.dcs(4, 1, dir, "--shell", "/bin/bash", file)); err != nil {
			return err
		}
		first, err := firstInstant(dir, 1)
		if err != nil {
			return err
		}
		cold = append(cold, first.Sub(start))
		start = time.Now()
		out, err := l.ssh("exec bash -c 'echo $EPOCHREALTIME'").Output()
		if err != nil {
			return err
		}
		at, err := instant(string(out))
		if err != nil {
			return err
		}
		coldSSH = append(coldSSH, at.Sub(start))
	}
	r.table("what", "rival", "median", "p95", "dcs-tui median", "p95")
	r.row("warm idle host", "bash behind an open ssh", ms(median(shell)), ms(quantile(shell, 0.95)), ms(median(warm)),
		ms(quantile(warm, 0.95)))
	r.row("cold (dcs-tui: 4 hosts)", "a new ssh", ms(median(coldSSH)), ms(quantile(coldSSH, 0.95)), ms(median(cold)),
		ms(quantile(cold, 0.95)))
	r.say("Cold, all in ms: %s.", all("%.0f", cold))
	return nil
}

func (l *lab) ssh(command string) *exec.Cmd {
	s := l.sshd[0]
	return exec.Command("ssh", "-F", s.ConfigFile, "-i", s.Identity, "-p", strconv.Itoa(s.Port), "127.0.0.1", command)
}

// warmRuns writes one line at a time to a run whose host is connected.
func warmRuns(l *lab, n int) ([]time.Duration, error) {
	dir := l.runDir()
	cmd := l.dcs(1, 4, dir, "--json", "--shell", "/bin/bash", "-")
	return converse(cmd, n, "echo $EPOCHREALTIME\n", func(i int, _ string) (time.Time, error) {
		return firstInstant(dir, jobs.ID(i+1))
	})
}

// openShell writes the same line to a bash at the far end of one ssh.
func openShell(l *lab, n int) ([]time.Duration, error) {
	return converse(l.ssh("exec bash"), n, "bash -c 'echo $EPOCHREALTIME'\n",
		func(_ int, said string) (time.Time, error) {
			return instant(said)
		})
}

// converse writes a line to a command, waits for one line of output, and measures the time from the
// write to the instant that at returns for the output. It does so n times, after three repetitions
// for connecting and warming up.
func converse(cmd *exec.Cmd, n int, line string,
	at func(i int, said string) (time.Time, error)) ([]time.Duration, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	const warmUp = 3
	var d []time.Duration
	for i := range n + warmUp {
		start := time.Now()
		if _, err := io.WriteString(in, line); err != nil {
			return nil, err
		}
		said, err := lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		t, err := at(i, said)
		if err != nil {
			return nil, err
		}
		if i >= warmUp {
			d = append(d, t.Sub(start))
		}
	}
	in.Close()
	return d, cmd.Wait()
}

func firstInstant(runDir string, id jobs.ID) (time.Time, error) {
	b, err := os.ReadFile(jobs.AttemptFile(runDir, jobs.AttemptID{Job: id, N: 1}, jobs.FileOut))
	if err != nil {
		return time.Time{}, err
	}
	return instant(string(b))
}

// instant parses bash's EPOCHREALTIME.
func instant(text string) (time.Time, error) {
	sec, micro, ok := strings.Cut(strings.TrimSpace(text), ".")
	a, err1 := strconv.ParseInt(sec, 10, 64)
	b, err2 := strconv.ParseInt(micro, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return time.Time{}, fmt.Errorf("%q is not EPOCHREALTIME", text)
	}
	return time.Unix(a, b*1000), nil
}
