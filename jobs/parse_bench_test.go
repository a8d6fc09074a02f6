package jobs

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// jobsFileOf returns a jobs file of n lines, as a script would write it.
func jobsFileOf(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "./simulate --seed %d --temperature 0.%03d --out results/run-%d.csv\n", i, i%1000, i)
	}
	return b.Bytes()
}

// sweepWithOptions returns a jobs file with a #DCS line before each job, as a script would write
// it.
func sweepWithOptions(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "#DCS name=run-%d est=%dm\n./simulate --seed %d\n", i, i%100+1, i)
	}
	return b.Bytes()
}

func sweepJSON(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"command":"./simulate --seed %d --out \"r %d.csv\"","est":"%dm"}`+"\n", i, i, i%100+1)
	}
	return b.Bytes()
}

// heldBytes returns the number of bytes that the result of f keeps alive.
func heldBytes(f func() []*Spec) (held int, specs []*Spec) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	specs = f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int(after.HeapAlloc) - int(before.HeapAlloc), specs
}

// TestParsedJobTakesLittleMemory checks that a job takes less than 300 bytes of memory beyond its
// text.
func TestParsedJobTakesLittleMemory(t *testing.T) {
	const n = 100_000
	text := jobsFileOf(n)
	held, specs := heldBytes(func() []*Spec {
		s, err := Parse(bytes.NewReader(text), "sweep.txt", false, 1)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	if each := (held - len(text)) / n; each >= 300 {
		t.Errorf("%d bytes a job beyond its text", each)
	}
	runtime.KeepAlive(specs)
}

// BenchmarkParse reports ns per job and the bytes per job that are held beyond the text.
func BenchmarkParse(b *testing.B) {
	const n = 100_000
	for _, c := range []struct {
		name string
		text []byte
	}{{"lines", jobsFileOf(n)}, {"options", sweepWithOptions(n)}, {"jsonl", sweepJSON(n)}} {
		b.Run(c.name, func(b *testing.B) {
			held := 0
			for b.Loop() {
				b.StopTimer()
				var specs []*Spec
				held, specs = heldBytes(func() []*Spec {
					b.StartTimer()
					defer b.StopTimer()
					s, err := Parse(bytes.NewReader(c.text), "sweep.txt", strings.HasPrefix(c.name, "json"), 1)
					if err != nil {
						b.Fatal(err)
					}
					return s
				})
				runtime.KeepAlive(specs)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/job")
			b.ReportMetric(float64(held-len(c.text))/n, "B/job-beyond-text")
		})
	}
}

// TestEqualDependenciesAreShared checks that consecutive jobs with the same dependencies share them, that
// a job with others has its own, and that an option of one job is none of the next one.
func TestEqualDependenciesAreShared(t *testing.T) {
	specs, err := Parse(strings.NewReader("a\nb\n#DCS after=1\nc\n#DCS after=1\nd\n#DCS after=2\ne\n"+
		"#DCS name=x after=2 tries=7\nf\n#DCS name=y\ng\n"), "jobs.txt", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "", "1", "1", "2", "2", ""} {
		if got := specs[i].After().String(); got != want {
			t.Errorf("job %d comes after %q, want %q", i+1, got, want)
		}
	}
	if specs[2].Labels != specs[3].Labels || specs[3].Labels == specs[4].Labels || specs[6].Labels != nil {
		t.Error("not exactly the equal dependencies are shared")
	}
	if specs[5].Tries != 7 || specs[6].Tries != 0 || specs[6].Name != "y" || specs[6].Options != specs[0].Options {
		t.Errorf("jobs 6 and 7 are %+v and %+v", specs[5], specs[6])
	}
}
