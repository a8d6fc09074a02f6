package journal

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// BenchmarkReplayMillion folds the journal of a million finished jobs, each with a launching and an
// exited record and every tenth with a running one. It reports the memory that the table then
// holds.
func BenchmarkReplayMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("writes 350 MB")
	}
	const n = 1_000_000
	r := newRun(b)
	if err := r.AppendSpecs(specs(n)); err != nil {
		b.Fatal(err)
	}
	j, _, _, err := Take(context.Background(), r, TakeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	batch := []jobs.Record{{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: n}}
	for i := 1; i <= n; i++ {
		batch = append(batch, pair(i)...)
		if len(batch) > 1000 || i == n {
			if err := j.Append(batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	size, err := sizeOf(r, fileOf(1))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		before := heap()
		t, report, err := Replay(r)
		if err != nil || report.Damaged || t.Counts[jobs.Succeeded] != n {
			b.Fatal(err, report)
		}
		b.ReportMetric(float64(heap()-before)/1e6, "MB-table")
		runtime.KeepAlive(t)
	}
}

// BenchmarkQueuedMillion reports the memory of a million queued jobs.
func BenchmarkQueuedMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("writes 80 MB")
	}
	const n = 1_000_000
	r := newRun(b)
	if err := r.AppendSpecs(specs(n)); err != nil {
		b.Fatal(err)
	}
	j, _, _, err := Take(context.Background(), r, TakeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if err := j.Append([]jobs.Record{{Kind: jobs.KindAccepted, Job: 1, Count: n}}); err != nil {
		b.Fatal(err)
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before := heap()
		t, _, err := Replay(r)
		if err != nil || t.Counts[jobs.Queued] != n {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap()-before)/1e6, "MB-table")
		runtime.KeepAlive(t)
	}
}

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
	j, _, _, err := Take(context.Background(), r, TakeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	recs := make([]jobs.Record, 16)
	for i := range recs {
		recs[i] = pair(i + 1)[0]
	}
	for b.Loop() {
		if err := j.Append(recs); err != nil {
			b.Fatal(err)
		}
		if err := j.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}

// pair returns the records of a job that succeeded at its first attempt.
func pair(i int) []jobs.Record {
	at := jobs.Stamp(1_700_000_000_000_000_000 + int64(i)*1_234_567)
	host := fmt.Sprintf("melon%d", i%40)
	recs := []jobs.Record{{Kind: jobs.KindLaunching, At: at, Job: jobs.ID(i), N: 1, Host: host}}
	if i%10 == 0 {
		recs = append(recs, jobs.Record{Kind: jobs.KindRunning, At: at + 1e6, Job: jobs.ID(i), N: 1, Host: host, Slot: i%8 + 1, Started: at + 9e5})
	}
	return append(recs, jobs.Record{Kind: jobs.KindExited, At: at + 3e9, Job: jobs.ID(i), N: 1, Host: host, Slot: i%8 + 1,
		Next: jobs.Succeeded, Seq: int64(i), Outcome: &jobs.Outcome{Started: at + 9e5, Ended: at + 29e8, CPU: 2 * time.Second, MaxRSSBytes: 12 << 20}})
}

func specs(n int) []*jobs.Spec {
	all := make([]*jobs.Spec, n)
	for i := range all {
		all[i] = &jobs.Spec{ID: jobs.ID(i + 1), Line: i + 1, Command: fmt.Sprintf("./simulate --seed %d --out res/%d", i, i), Options: jobs.NoOptions}
	}
	return all
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func newRun(tb testing.TB) *rundir.Run {
	tb.Helper()
	r, err := rundir.Create(tb.TempDir()+"/"+rundir.Base, "test", rundir.Asked{Cwd: "/", Version: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
