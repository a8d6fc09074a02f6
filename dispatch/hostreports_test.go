package dispatch

import (
	"context"
	"testing"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// BenchmarkReports measures the way of a job through frames, checks, and core: its launch, the
// report of its start, and that of its end, on one host.
func BenchmarkReports(b *testing.B) {
	d, err := Start(Config{
		RunUID: "u1", RunName: "test", RunDir: "/run", Sched: sched.Config{Seed: 1},
		Inventory:  &hosts.Inventory{Hosts: []*hosts.Host{fakeHost("a")}},
		Connector:  helper.New(helper.Options{Opener: &hosttest.Hostiles{}}),
		Journal:    new(jobstest.Journal),
		Table:      new(jobs.Table),
		StoreSpecs: func([]*jobs.Spec) error { return nil },
		Open:       hosts.Open{Run: "u1", Epoch: 1},
	})
	if err != nil {
		b.Fatal(err)
	}
	specs := jobstest.Specs(b.N)
	b.ResetTimer()
	if err := d.Submit(specs, true); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		res, err := d.Next(context.Background())
		if err != nil || res.State != jobs.Succeeded {
			b.Fatal(res, err)
		}
		d.Ack(res.Seq)
	}
	b.StopTimer()
	d.Close()
}
