package jobs

import "testing"

// benchmarkRequeued is the number of jobs that are requeued at once. Their results arrived in
// reverse order of the jobs, and the consumer has not acknowledged them.
const benchmarkRequeued = 10_000

func BenchmarkFoldRequeue(b *testing.B) {
	specs := make([]*Spec, benchmarkRequeued)
	for i := range specs {
		specs[i] = &Spec{ID: ID(i + 1), Options: NoOptions}
	}
	for b.Loop() {
		t := &Table{Specs: specs}
		must := func(r Record) {
			if err := Fold(t, &r); err != nil {
				b.Fatal(err)
			}
		}
		must(Record{Kind: KindAccepted, Job: 1, Count: benchmarkRequeued})
		for i := range benchmarkRequeued {
			must(Record{Kind: KindJob, Job: ID(benchmarkRequeued - i), Next: Canceled, Seq: int64(i + 1)})
		}
		for i := range benchmarkRequeued {
			must(Record{Kind: KindRound, Job: ID(i + 1)})
		}
		if len(t.Past) != benchmarkRequeued {
			b.Fatalf("%d results are kept", len(t.Past))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchmarkRequeued, "ns/job")
}
