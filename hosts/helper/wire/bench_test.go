package wire

import (
	"bytes"
	"io"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

const batch = 100

func benchLaunch() *hosts.Launch {
	l := &hosts.Launch{Epoch: 1, ExpireUptime: time.Hour}
	for i := range batch {
		l.Jobs = append(l.Jobs, hosts.LaunchJob{
			Attempt: jobs.AttemptID{Job: jobs.ID(i + 1000), N: 1}, Command: "python3 sweep.py --rate 0.01 --seed 1234 > out.1234",
			Params: []jobs.Param{{Name: "rate", Value: "0.01"}}, Timeout: time.Hour, Slots: 1})
	}
	return l
}

func benchExits() *hosts.Exits {
	e := &hosts.Exits{}
	for i := range batch {
		e.Jobs = append(e.Jobs, hosts.ExitedJob{Attempt: jobs.AttemptID{Job: jobs.ID(i + 1000), N: 1}, Slot: 3,
			Outcome: jobs.Outcome{Exit: 1, Started: 1790000000123456789, Ended: 1790000001123456789, CPU: time.Second, MaxRSSBytes: 1 << 30, LastLine: "Traceback: something is wrong"}})
	}
	return e
}

// BenchmarkFrames gives the cost of a job in ns/job, each way, in batches of 100.
func BenchmarkFrames(b *testing.B) {
	for name, m := range map[string]hosts.Message{"Launch": benchLaunch(), "Exits": benchExits()} {
		b.Run(name+"/write", func(b *testing.B) {
			w := NewWriter(io.Discard)
			b.ReportAllocs()
			for b.Loop() {
				_ = w.Write(m)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/job")
		})
		b.Run(name+"/read", func(b *testing.B) {
			var buf bytes.Buffer
			w := NewWriter(&buf)
			const rounds = 50
			for range rounds {
				_ = w.Write(m)
			}
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(bytes.NewReader(buf.Bytes()))
				for range rounds {
					if _, err := r.Read(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch*rounds), "ns/job")
		})
	}
}
