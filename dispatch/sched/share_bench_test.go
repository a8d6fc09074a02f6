package sched

import (
	"fmt"
	"testing"
	"time"

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
				f := newFleet(table)
				f.c.Step(f.now, Submit{Specs: specs, Last: true})
				f.connect()
				start := time.Now()
				done := f.work(mostDone)
				if f.c.Defects != 0 {
					b.Fatalf("%d defects", f.c.Defects)
				}
				b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(done), "run-ns/job")
			}
		})
	}
}
