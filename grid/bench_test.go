package grid

import (
	"strings"
	"testing"
)

// BenchmarkJobs makes the jobs of a plain grid, of one with a filter that keeps half, and of a
// sample. It reports ns and bytes per job.
func BenchmarkJobs(b *testing.B) {
	const head = "./simulate -T [T] --seed [seed] --out 'run [T] [seed].csv'\n[T] 0..1 step 0.001\n[seed] 1..1000\n"
	for name, text := range map[string]string{
		"product": head, "filter": head + "@where seed % 2 = 0 and T * 1000 < 2000\n", "sample": head + "@sample 500000\n",
	} {
		b.Run(name, func(b *testing.B) {
			tmpl, err := Config{Limit: 2_000_000}.Parse(b.Context(), strings.NewReader(text), "t.txt")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			n := 0
			for n < b.N {
				for range tmpl.Jobs() {
					if n++; n == b.N {
						break
					}
				}
			}
		})
	}
}

// BenchmarkFilter evaluates points that the filter excludes and reports ns per point.
func BenchmarkFilter(b *testing.B) {
	tmpl, err := Parse(strings.NewReader("a [x] [y]\n[x] 1..1000\n[y] 1..10000\n@where x * y > 20000000 and y != x"), "t.txt")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if n, err := tmpl.Count(); n != 0 || err != nil {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e7, "ns/point")
}
