package main

import (
	"fmt"
	"math"
	"os"
	"strings"
)

// The experiment fill has as many workers as the paper, and about as many jobs. Each job counts, as the dummy job
// of the paper does, but ten times as far.
const (
	fillSlots, fillJobs = 180, 2000
	fillCount           = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
)

func fillTrials(l *lab) ([]trial, error) {
	file := l.file("counts.txt", strings.Repeat(fillCount+"\n", l.scaled(fillJobs)))
	trials := l.beside(fmt.Sprint(fillSlots), remotePlace, fillSlots, file)
	for i, t := range trials {
		trials[i].measure = func() (values, error) {
			busy, all, err := coreTime()
			if err != nil {
				return nil, err
			}
			v, err := t.measure()
			if err != nil {
				return nil, err
			}
			busyThen, allThen, err := coreTime()
			v["busy"] = 100 * (busyThen - busy) / (allThen - all)
			return v, err
		}
	}
	return trials, nil
}

// coreTime returns for how many clock ticks the cores of this machine have been busy, and how many have passed on
// them (proc(5)).
func coreTime() (busy, all float64, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	var user, nice, system, idle, wait, irq, softirq float64
	_, err = fmt.Sscanf(string(stat), "cpu %f %f %f %f %f %f %f", &user, &nice, &system, &idle, &wait, &irq, &softirq)
	busy = user + nice + system + irq + softirq
	return busy, busy + idle + wait, err
}

func showFill(r *report, s *samples) error {
	n := max(1, math.Round(fillJobs*r.scale))
	of := fmt.Sprint(fillSlots)
	r.table("program", "jobs/s", "the cores are busy", "the paper")
	for _, c := range []struct{ program, name, paper string }{
		{theirs, "xargs -P", ""}, {ours, "dcs-tui", "over 75%"},
	} {
		r.row(c.name, s.of(of, c.program, "s", rate(n)).text("%.1f"), s.of(of, c.program, "busy", plain).text("%.1f%%"),
			c.paper)
	}
	r.say("%.0f jobs that count to 100,000, on %d slots of four hosts over ssh, connecting and leaving included. "+
		"xargs runs on this machine alone. The paper's figure is from the weeks before a deadline, on its cluster.",
		n, fillSlots)
	return nil
}
