package main

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// idle measures the cost of 100 long jobs on four hosts over one minute.
func idle(l *lab, r *report) error {
	const n = 100
	file := l.file("long.txt", strings.Repeat("sleep 1000\n", n))
	dir := l.runDir()
	cmd := l.dcs(4, n/4, dir, file)
	if err := cmd.Start(); err != nil {
		return err
	}
	polltest.Within(30*time.Second, func() bool { return len(l.withArg("__slot")) >= n })
	time.Sleep(2 * time.Second)
	helpers, slots := l.withArg("__host"), l.withArg("__slot")
	sum := func(list []progtest.Process) (cpu time.Duration, rss int64) {
		for _, p := range list {
			if use, err := readProc(p.PID); err == nil {
				cpu += use.cpu
				rss = max(rss, use.rss)
			}
		}
		return cpu, rss
	}
	const span = 60 * time.Second
	d0, _ := readProc(cmd.Process.Pid)
	h0, _ := sum(helpers)
	s0, _ := sum(slots)
	time.Sleep(span)
	d1, err := readProc(cmd.Process.Pid)
	if err != nil {
		return err
	}
	h1, hrss := sum(helpers)
	s1, srss := sum(slots)
	share := func(d time.Duration, n int) string {
		return fmt.Sprintf("%.3f %%", 100*d.Seconds()/span.Seconds()/float64(max(1, n)))
	}
	r.table("process", "number", "CPU of a core, each", "resident, largest")
	r.row("dispatcher", "1", share(d1.cpu-d0.cpu, 1), mib(d1.rss))
	r.row("helper", fmt.Sprint(len(helpers)), share(h1-h0, len(helpers)), mib(hrss))
	r.row("supervisor", fmt.Sprint(len(slots)), share(s1-s0, len(slots)), mib(srss))
	return l.cancel(cmd, dir)
}
