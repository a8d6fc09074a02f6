package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// BenchmarkQueues is what a job costs in the core, from launch to end, with a million
// jobs queued in 1, 10 and 100 queues and ready on four hosts of 16 slots that report 64
// exits at a time: it grows with the queues, and not with the jobs.
func BenchmarkQueues(b *testing.B) {
	const n, mostDone = 1_000_000, 200_000
	for _, queues := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%d-queues", queues), func(b *testing.B) {
			opts := make([]*jobs.Options, queues)
			for q := range opts {
				opts[q] = &jobs.Options{Queue: fmt.Sprint("q", q)}
			}
			for b.Loop() {
				specs := make([]*jobs.Spec, n)
				for i := range specs {
					specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: opts[i%queues]}
				}
				table := &jobs.Table{Specs: specs, Jobs: make([]jobs.Job, 0, n)}
				var inv []*hosts.Host
				for i := range 4 {
					inv = append(inv, &hosts.Host{Name: fmt.Sprintf("melon%d", i+1), Slots: hosts.SlotRule{Fixed: 16}})
				}
				c := New(Config{}, table, inv)
				now := Time{Wall: wallStart}
				c.Step(now, Submit{Specs: specs, Last: true})
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
				start, done := time.Now(), 0
				for done < mostDone {
					for i, h := range inv {
						k := min(64, len(running[i]))
						if k == 0 {
							continue
						}
						now.Mono += time.Millisecond
						now.Wall += jobs.Stamp(time.Millisecond)
						s, x := &hosts.Started{}, &hosts.Exits{}
						for _, id := range running[i][:k] {
							s.Jobs = append(s.Jobs, hosts.StartedJob{Attempt: id, Slot: 1, At: now.Wall})
							x.Jobs = append(x.Jobs, hosts.ExitedJob{Attempt: id, Slot: 1, Outcome: jobs.Outcome{Started: now.Wall, Ended: now.Wall + 1e6}})
						}
						running[i] = append(running[i][:0], running[i][k:]...)
						_, o := c.Step(now, AttemptsStarted{h.Name, s})
						take(o)
						_, o = c.Step(now, AttemptsEnded{h.Name, x})
						take(o)
						c.Step(now, HostBeat{h.Name, &hosts.Beat{MemFree: -1, DiskFree: -1}})
						done += k
					}
				}
				if c.Defects != 0 {
					b.Fatalf("%d defects", c.Defects)
				}
				b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(done), "run-ns/job")
			}
		})
	}
}
