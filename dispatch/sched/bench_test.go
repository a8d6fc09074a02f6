package sched

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// BenchmarkMillion submits a million jobs and runs them through four hosts of 16
// slots that report 64 exits at a time, as at full speed. It reports the cost of
// a job in the core, all of its events and records together, and what a queued
// job costs beyond jobs.Job and jobs.Spec.
func BenchmarkMillion(b *testing.B) {
	const n, block = 1_000_000, 10_000
	for b.Loop() {
		specs := make([]*jobs.Spec, n)
		for i := range specs {
			specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: jobs.NoOptions}
		}
		table := &jobs.Table{Specs: specs, Jobs: make([]jobs.Job, 0, n)}
		var inv []*hosts.Host
		for i := range 4 {
			inv = append(inv, &hosts.Host{Name: fmt.Sprintf("melon%d", i+1), Slots: hosts.SlotRule{Fixed: 16}})
		}
		c := New(Config{}, table, inv)
		before := heapBytes()
		start := time.Now()
		now := Time{Wall: wallStart}
		for i := 0; i < n; i += block {
			c.Step(now, Submit{Specs: specs[i : i+block], Last: i+block == n})
		}
		submitted := time.Since(start)
		perQueued := float64(heapBytes()-before) / n

		start = time.Now()
		running := make([][]jobs.AttemptID, 4)
		take := func(orders []Order) {
			for _, o := range orders {
				if l, ok := o.(Launch); ok {
					i := int(l.Host[5] - '1')
					for _, p := range l.Jobs {
						running[i] = append(running[i], p.Attempt)
					}
				}
			}
		}
		for _, h := range inv {
			_, o := c.Step(now, HostUp{h.Name, &hosts.Hello{Slots: 16, Cores: 17}})
			take(o)
		}
		done, steps := 0, 0
		for done < n {
			for i, h := range inv {
				k := min(64, len(running[i]))
				if k == 0 {
					continue
				}
				now.Mono += time.Millisecond
				now.Wall += jobs.Stamp(time.Millisecond)
				s := &hosts.Started{}
				x := &hosts.Exits{}
				for _, id := range running[i][:k] {
					s.Jobs = append(s.Jobs, hosts.StartedJob{Attempt: id, Slot: 1, At: now.Wall})
					x.Jobs = append(x.Jobs, hosts.ExitedJob{Attempt: id, Slot: 1,
						Outcome: jobs.Outcome{Started: now.Wall, Ended: now.Wall + 1e6}})
				}
				running[i] = append(running[i][:0], running[i][k:]...)
				_, o := c.Step(now, AttemptsStarted{h.Name, s})
				take(o)
				_, o = c.Step(now, AttemptsEnded{h.Name, x})
				take(o)
				c.Step(now, HostBeat{h.Name, &hosts.Beat{MemFree: -1, DiskFree: -1}})
				done += k
				steps += 3
			}
		}
		if c.table.Counts[jobs.Succeeded] != n || c.Defects != 0 {
			b.Fatalf("%d of %d jobs succeeded, %d defects", c.table.Counts[jobs.Succeeded], n, c.Defects)
		}
		b.ReportMetric(float64(submitted.Nanoseconds())/n, "submit-ns/job")
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/n, "run-ns/job")
		b.ReportMetric(perQueued, "B/queued")
		b.ReportMetric(float64(steps), "steps")
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
