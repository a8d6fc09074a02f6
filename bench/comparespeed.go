package main

import (
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// prepared returns the command of a program that is not a pool.
func (c *contest) prepared(p *program, list jobList) *exec.Cmd {
	cmd := p.command(c, list)
	cmd.Env = c.env()
	return cmd
}

// repeat runs the jobs of a file repeatedly and returns the figures of the repetitions. The time is
// that of the whole program, or for a pool, which is started only once, that of the jobs.
func (c *contest) repeat(p *program, file string, figure func(time.Duration) float64) ([]float64, error) {
	if p.command != nil {
		return repeated(c.rounds, func() (float64, time.Duration, error) {
			cost, err := timed(c.prepared(p, jobList{file: file}))
			return figure(cost.wall), cost.wall, err
		})
	}
	return c.repeatInPool(p, "jobs "+file, figure)
}

// repeatInPool is repeat for the pool of a program. what is a line for driver.py.
func (c *contest) repeatInPool(p *program, what string, figure func(time.Duration) float64) ([]float64, error) {
	d, err := c.session(p)
	if err != nil {
		return nil, err
	}
	values, err := repeated(c.rounds, func() (float64, time.Duration, error) {
		took, err := d.round(what)
		return figure(took), took, err
	})
	if err != nil {
		d.stop()
		c.serving = nil
	}
	return values, err
}

// first measures how long a program takes for a single job that does nothing. The time of a program
// includes its end, that of a pool does not.
func (c *contest) first(p *program) (string, error) {
	if p.command == nil {
		d, err := c.session(p)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%.1f s", d.first), nil
	}
	values, err := c.repeat(p, c.file("one.txt", "true\n"), time.Duration.Seconds)
	return withUnit(span("%.2f", values), "s"), err
}

// withUnit appends a unit to a figure, if there is one.
func withUnit(figure, unit string) string {
	if figure == "" {
		return ""
	}
	return figure + " " + unit
}

// throughput measures jobs that do nothing.
func (c *contest) throughput(p *program) (string, error) {
	values, err := c.repeat(p, c.file("zero.txt", strings.Repeat("sleep 0\n", p.jobs)), func(d time.Duration) float64 {
		return float64(p.jobs) / d.Seconds()
	})
	return span("%.0f", values), err
}

// efficiency measures the share of slot time that is spent in jobs of a second.
func (c *contest) efficiency(p *program) (string, error) {
	const each = 8
	file := c.file("one.txt", sleeps(each*len(c.sshd)*contestSlots, 1))
	values, err := c.repeat(p, file, func(d time.Duration) float64 { return each / d.Seconds() })
	return span("%.2f", values), err
}

// memory measures the processes that hold a queue of many jobs.
func (c *contest) memory(p *program) (string, error) {
	const n = 100_000
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "sleep 1000 # %d\n", i)
	}
	l, err := c.launch(p, jobList{file: c.file("many.txt", lines.String())}, "queue")
	if err != nil {
		return "", err
	}
	use, err := settled(l.pids...)
	l.kill()
	if err != nil {
		return "", err
	}
	return mib(use.rss), nil
}

// callsPerSecond measures calls of a kind in pools.py.
func callsPerSecond(kind string) func(*contest, *program) (string, error) {
	const n = 10_000
	return func(c *contest, p *program) (string, error) {
		return c.pooledCalls(p, kind, n, "%.0f", func(d time.Duration) float64 { return n / d.Seconds() })
	}
}

// callsOf1s measures the share of slot time that is spent in calls of a second.
func (c *contest) callsOf1s(p *program) (string, error) {
	const each = 4
	return c.pooledCalls(p, "1s", each*len(c.sshd)*contestSlots, "%.2f",
		func(d time.Duration) float64 { return each / d.Seconds() })
}

// arrays measures calls that return an array of 10 MB.
func (c *contest) arrays(p *program) (string, error) {
	const n, megabytes = 8, 10
	return c.pooledCalls(p, "array", n, "%.0f", func(d time.Duration) float64 { return n * megabytes / d.Seconds() })
}

func (c *contest) pooledCalls(p *program, kind string, n int, format string,
	figure func(time.Duration) float64) (string, error) {
	values, err := c.repeatInPool(p, fmt.Sprintf("calls %s %d", kind, n), figure)
	return span(format, values), err
}
