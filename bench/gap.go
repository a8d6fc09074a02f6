package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stamp is a job that prints its host and slot and its first and last instant. It starts no process
// except its own sleep.
const stamp = `a=$EPOCHREALTIME; sleep 0.05; echo "${DCS_HOST-}/$DCS_SLOT $a $EPOCHREALTIME"`

// gaps measures, in each slot, the time from one job's last instruction to the next job's first
// one. The time includes the end of one bash and the start of another, both for dcs-tui and for
// xargs.
func gaps(l *lab, r *report) error {
	const jobs = 400
	file := l.file("gap.txt", strings.Repeat(stamp+"\n", jobs))
	r.table("hosts", "slots", "xargs -P median", "p95", "dcs-tui median", "p95")
	for _, c := range []struct{ hosts, slots int }{{1, 4}, {1, 16}, {4, 16}} {
		slots := c.slots
		var ours, theirs []time.Duration
		for range l.rounds {
			dir := l.runDir()
			if _, err := timed(l.spread(c.hosts, slots, dir, "--shell", "/bin/bash", file)); err != nil {
				return err
			}
			outs, err := outputs(dir)
			if err != nil || len(outs) != jobs {
				return fmt.Errorf("%d outputs of %d jobs: %v", len(outs), jobs, err)
			}
			ours = append(ours, gapsOf(strings.Join(outs, ""))...)

			cmd := xargs(slots, file, "bash")
			out := l.file("xargs.out", "")
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			cmd.Stdout = f
			_, err = timed(cmd)
			b, rerr := os.ReadFile(out)
			if err := errors.Join(err, rerr, f.Close()); err != nil {
				return err
			}
			theirs = append(theirs, gapsOf(string(b))...)
		}
		r.row(fmt.Sprint(c.hosts), fmt.Sprint(slots), ms(quantile(theirs, 0.5)), ms(quantile(theirs, 0.95)),
			ms(quantile(ours, 0.5)), ms(quantile(ours, 0.95)))
	}
	return nil
}

// gapsOf parses lines of stamp and returns the pauses between consecutive jobs of a slot.
func gapsOf(text string) []time.Duration {
	type span struct{ from, to float64 }
	slots := map[string][]span{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		from, err1 := strconv.ParseFloat(f[1], 64)
		to, err2 := strconv.ParseFloat(f[2], 64)
		if err1 == nil && err2 == nil {
			slots[f[0]] = append(slots[f[0]], span{from, to})
		}
	}
	var gaps []time.Duration
	for _, spans := range slots {
		slices.SortFunc(spans, func(a, b span) int { return int((a.from - b.from) * 1e6) })
		for i := 1; i < len(spans); i++ {
			gaps = append(gaps, time.Duration((spans[i].from-spans[i-1].to)*1e9))
		}
	}
	return gaps
}
