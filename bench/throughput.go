package main

import (
	"fmt"
	"strings"
)

// throughput runs jobs that do nothing, logs, claims and sentinels included,
// on one host over ssh with 1 to 16 slots, and the same lines with xargs.
func throughput(l *lab, r *report) error {
	file := l.file("zero.txt", strings.Repeat("sleep 0\n", l.jobs))
	r.table("slots", "xargs -P jobs/s", "dcs-tui jobs/s", "ratio", "dispatcher CPU a job")
	for _, slots := range []int{1, 2, 4, 8, 16} {
		var ours, theirs, ratio, cpu []float64
		for range l.rounds {
			a, err := timed(l.dcs(1, slots, l.runDir(), file))
			if err != nil {
				return err
			}
			b, err := timed(xargs(slots, file, "sh"))
			if err != nil {
				return err
			}
			n := float64(l.jobs)
			ours = append(ours, n/a.wall.Seconds())
			theirs = append(theirs, n/b.wall.Seconds())
			ratio = append(ratio, b.wall.Seconds()/a.wall.Seconds())
			cpu = append(cpu, a.cpu.Seconds()*1e3/n)
		}
		r.row(fmt.Sprint(slots), fmt.Sprintf("%.0f", median(theirs)), fmt.Sprintf("%.0f", median(ours)),
			fmt.Sprintf("%.2f", median(ratio)), fmt.Sprintf("%.2f ms", median(cpu)))
	}
	r.say("%d jobs a run, median of %d runs in turn; the ratio is the median of the ratios of neighbouring runs. "+
		"Connecting and leaving are inside.", l.jobs, l.rounds)
	return nil
}
