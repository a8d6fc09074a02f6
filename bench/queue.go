package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// queued measures the dispatcher's memory with many queued jobs, and the time until the first one
// starts.
func queued(l *lab, r *report) error {
	r.table("jobs queued", "resident", "peak", "first job started after", "CPU until all are accepted")
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		var b strings.Builder
		b.WriteString("echo $EPOCHREALTIME; sleep 1000\n")
		for i := range n - 1 {
			fmt.Fprintf(&b, "sleep 1000 # %d\n", i)
		}
		file := l.file("many.txt", b.String())
		dir := l.runDir()
		cmd := l.dcs(1, 4, dir, "--shell", "/bin/bash", file)
		start := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		p, err := settled(cmd.Process.Pid)
		if err != nil {
			return err
		}
		first, err := firstInstant(dir, 1)
		if err != nil {
			return err
		}
		r.row(fmt.Sprint(n), mib(p.rss), mib(p.peak), fmt.Sprintf("%.2f s", first.Sub(start).Seconds()),
			fmt.Sprintf("%.2f s", p.cpu.Seconds()))
		if err := l.cancel(cmd, dir); err != nil {
			return err
		}
		os.RemoveAll(dir)
	}
	return nil
}

// settled waits until the memory and the CPU time of processes have stopped growing, for two minutes
// at most, and returns their sums.
func settled(pids ...int) (sum proc, err error) {
	const interval, limit = 500 * time.Millisecond, 240
	for quiet, i := 0, 0; quiet < 4 && i < limit; i++ {
		time.Sleep(interval)
		var now proc
		for _, pid := range pids {
			p, err := readProc(pid)
			if err != nil {
				return now, err
			}
			now.cpu, now.rss, now.peak = now.cpu+p.cpu, now.rss+p.rss, now.peak+p.peak
		}
		quiet++
		if now.cpu-sum.cpu >= 20*time.Millisecond || now.rss > sum.rss+1<<20 {
			quiet = 0
		}
		sum = now
	}
	return sum, nil
}

// cancelFile tells the dispatcher of a run to cancel everything.
const cancelFile = "STOP.now"
