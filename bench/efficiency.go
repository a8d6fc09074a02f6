package main

import (
	"fmt"
	"strings"
)

// efficiency measures the share of slot time that is spent in jobs: 16 jobs of one second per slot
// over four hosts, connecting included.
func efficiency(l *lab, r *report) error {
	const each = 16
	r.table("slots", "xargs -P (no ssh)", "dcs-tui, 4 hosts", "all")
	for _, slots := range []int{16, 64} {
		file := l.file("one.txt", strings.Repeat("sleep 1\n", slots*each))
		var ours, theirs []float64
		for range l.rounds {
			a, err := timed(l.dcs(4, slots/4, l.runDir(), file))
			if err != nil {
				return err
			}
			b, err := timed(xargs(slots, file, "sh"))
			if err != nil {
				return err
			}
			ours = append(ours, each/a.wall.Seconds())
			theirs = append(theirs, each/b.wall.Seconds())
		}
		r.row(fmt.Sprint(slots), fmt.Sprintf("%.3f", median(theirs)), fmt.Sprintf("%.3f", median(ours)),
			all("%.3f", ours))
	}
	return nil
}
