package main

import (
	"fmt"
	"strings"
	"time"
)

// exits measures the time from the last instruction of the last job to the exit of the program.
// Before it exits, the program searches each host for processes that jobs left behind.
func exits(l *lab, r *report) error {
	const slots = 16
	file := l.file("last.txt", strings.Repeat("sleep 0.5; echo $EPOCHREALTIME\n", slots))
	r.table("hosts", "slots", "median", "all, ms")
	for _, numHosts := range []int{1, 4} {
		var took []time.Duration
		for range max(7, l.rounds) {
			dir := l.runDir()
			if _, err := timed(l.spread(numHosts, slots, dir, "--shell", "/bin/bash", file)); err != nil {
				return err
			}
			ended := time.Now()
			last, err := lastInstant(dir)
			if err != nil {
				return err
			}
			took = append(took, ended.Sub(last))
		}
		r.row(fmt.Sprint(numHosts), fmt.Sprint(slots), ms(median(took)), all("%.0f", took))
	}
	return nil
}

// lastInstant returns the latest time that the jobs of a run printed.
func lastInstant(runDir string) (last time.Time, err error) {
	texts, err := outputs(runDir)
	for _, text := range texts {
		at, err := instant(text)
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, err
}
