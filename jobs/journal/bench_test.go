package journal

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// BenchmarkReplayMillion folds the journal of a million jobs, queued or finished, and reports the
// memory that the table then holds. Each finished job has a launching and an exited record, and
// every tenth a running one.
func BenchmarkReplayMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("writes 350 MB")
	}
	const n = 1_000_000
	for _, state := range []jobs.JobState{jobs.Queued, jobs.Succeeded} {
		b.Run(state.String(), func(b *testing.B) {
			r := newRun(b)
			must(b, r.AppendSpecs(specs(n)))
			j, _, _ := mustTake(b, r, TakeOptions{})
			must(b, j.Append([]jobs.Record{{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: n}}))
			for i := 1; i <= n && state != jobs.Queued; i++ {
				must(b, j.Append(pair(i)))
			}
			must(b, j.Close())
			b.SetBytes(j.Written())
			for b.Loop() {
				before := heap()
				t, report, err := Replay(r)
				if err != nil || report.Damaged || t.Counts[state] != n {
					b.Fatal(err, report)
				}
				b.ReportMetric(float64(heap()-before)/1e6, "MB-table")
				runtime.KeepAlive(t)
			}
		})
	}
}

// BenchmarkAppendRecord measures the encoding of a record.
func BenchmarkAppendRecord(b *testing.B) {
	recs := pair(123456)
	var buf []byte
	for b.Loop() {
		for i := range recs {
			buf = appendLine(buf[:0], &recs[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
}

// BenchmarkAppendSync measures one group commit of 16 records on this disk.
func BenchmarkAppendSync(b *testing.B) {
	r := newRun(b)
	j, _, _ := mustTake(b, r, TakeOptions{})
	recs := make([]jobs.Record, 16)
	for i := range recs {
		recs[i] = pair(i + 1)[0]
	}
	for b.Loop() {
		record(b, j, recs...)
	}
	must(b, j.Close())
}

// pair returns the records of a job that succeeded at its first attempt.
func pair(i int) []jobs.Record {
	at := jobs.Stamp(1_700_000_000_000_000_000 + int64(i)*1_234_567)
	host := fmt.Sprintf("melon%d", i%40)
	recs := []jobs.Record{{Kind: jobs.KindLaunching, At: at, Job: jobs.ID(i), N: 1, Host: host}}
	if i%10 == 0 {
		recs = append(recs, jobs.Record{Kind: jobs.KindRunning, At: at + 1e6, Job: jobs.ID(i), N: 1, Host: host,
			Slot: i%8 + 1, Started: at + 9e5})
	}
	return append(recs, jobs.Record{Kind: jobs.KindExited, At: at + 3e9, Job: jobs.ID(i), N: 1, Host: host,
		Slot: i%8 + 1,
		Next: jobs.Succeeded, Seq: int64(i), Outcome: &jobs.Outcome{Started: at + 9e5, Ended: at + 29e8,
			CPU: 2 * time.Second, MaxRSSBytes: 12 << 20}})
}

func specs(n int) []*jobs.Spec {
	all := make([]*jobs.Spec, n)
	for i := range all {
		all[i] = &jobs.Spec{ID: jobs.ID(i + 1), Line: i + 1, Command: fmt.Sprintf("./simulate --seed %d --out res/%d",
			i, i), Options: jobs.NoOptions}
	}
	return all
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
