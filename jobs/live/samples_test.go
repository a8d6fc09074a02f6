package live

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// busyHost returns a host that is up.
func busyHost(load float64, ended int) Host {
	return Host{Name: "ws01", HostStatus: jobs.HostStatus{State: "up"}, Load: [3]float64{load, 9, 9}, Slots: 8,
		Running: 5,
		Usable:  6.5, MemBytes: 64 << 30, MemFree: 40 << 30, GPUs: 2, GPUsUsed: 1.5, Done: ended - 1, Failed: 1}
}

// TestSamplesCoverTheWholeRun checks that a host that is up has a sample every 30 s, which the next
// dispatcher continues. A full file drops every second sample, so that it covers the whole run.
func TestSamplesCoverTheWholeRun(t *testing.T) {
	r := newRun(t)
	log, begin := NewSampleLog(r), time.Unix(1_800_000_000, 0)
	at := begin
	for i := range 12_000 { // every 10 s, for 33 hours
		log.Record(&State{At: at, Hosts: []Host{busyHost(1.234, i+1),
			{Name: "ws02", HostStatus: jobs.HostStatus{State: "lost"}}}})
		at = at.Add(10 * time.Second)
	}
	info, err := os.Stat(r.Path(rundir.HostsDir, "ws01.load"))
	if err != nil || info.Size() > maxSampleBytes || info.Mode() != 0o600 {
		t.Fatalf("the file: got %v, %v; want at most maxSampleBytes and mode 0600", info, err)
	}
	samples := ReadSamples(r, 0)
	list := samples["ws01"]
	if len(samples) != 1 || len(list) < 600 || !list[0].At.Equal(begin) || !math.IsNaN(list[0].Rate) ||
		at.Sub(list[len(list)-1].At) > time.Minute {
		t.Errorf("%d hosts, %d samples", len(samples), len(list))
	}
	want := Sample{Load: 1.23, Slots: 8, Own: 5, Others: 1.5, Mem: 24 << 30, MemAll: 64 << 30, GPUs: 1.5, GPUAll: 2,
		Rate: 6}
	for i := 1; i < len(list); i++ {
		gap, got := list[i].At.Sub(list[i-1].At), list[i]
		if gap < sampleInterval || gap%sampleInterval != 0 || at.Sub(list[i].At) < time.Hour && gap > 2*sampleInterval {
			t.Fatalf("sample %d comes %v after the one before", i, gap)
		}
		if got.At, got.ended = (time.Time{}), 0; got != want {
			t.Fatalf("sample %d: got %+v, want %+v", i, got, want)
		}
	}
	host := busyHost(7, 3)
	host.State, host.Usable = jobs.HostDraining, 0
	NewSampleLog(r).Record(&State{At: at, Hosts: []Host{host}})
	more := ReadHostSamples(r, "ws01", 0)
	if len(more) != len(list)+1 {
		t.Fatalf("%d samples after %d", len(more), len(list))
	}
	hour := ReadHostSamples(r, "ws01", LastHour)
	if at.Sub(hour[0].At) < time.Hour || !slices.ContainsFunc(list,
		func(s Sample) bool { return s.At.Equal(hour[0].At) && s.Load == hour[0].Load }) {
		t.Errorf("the last hour begins with %+v", hour[0])
	}
	took := at.Sub(list[len(list)-1].At).Minutes()
	if last := more[len(list)]; last.Load != 7 || last.Others != 0 || last.Rate != 3/took {
		t.Errorf("got the sample %+v, want the load 7, none for others, and three jobs since the sample before", last)
	}
}

// TestMeans checks the means over equal parts of the time. A sample is valid until the next one, but
// at most for a minute and a half.
func TestMeans(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	gap := math.NaN()
	every := func(interval time.Duration, values ...float64) (list []Sample) {
		for i, v := range values {
			list = append(list, Sample{At: begin.Add(time.Duration(i) * interval), Load: v})
		}
		return list
	}
	for _, c := range []struct {
		name string
		list []Sample
		took time.Duration
		want []float64
	}{
		{"no samples", nil, time.Minute, []float64{gap, gap}},
		{"as many as parts", every(30*time.Second, 1, 2, 3, 4), 2 * time.Minute, []float64{1, 2, 3, 4}},
		{"fewer parts", every(30*time.Second, 1, 2, 3, 4), 2 * time.Minute, []float64{1.5, 3.5}},
		{"more parts", every(time.Minute, 1, 2), 2 * time.Minute, []float64{1, 1, 2, 2}},
		{"only a short run", every(30*time.Second, 1, 2), 8 * time.Minute,
			[]float64{1.5, 2, gap, gap, gap, gap, gap, gap}},
		{"not up for a while", every(4*time.Minute, 1, 2), 8 * time.Minute, []float64{1, 1, gap, gap, 2, 2, gap, gap}},
		{"earlier samples", append([]Sample{{At: begin.Add(-2 * time.Hour), Load: 9},
			{At: begin.Add(-time.Minute), Load: 5}}, every(time.Minute, 1)...), time.Minute, []float64{1, 1}},
		{"valid since before", []Sample{{At: begin.Add(-time.Minute), Load: 5}}, time.Minute, []float64{5, gap}},
		{"a sample at the end, and a later one", every(time.Minute, 1, 2, 3), time.Minute, []float64{1.5}},
		{"unknown values", every(30*time.Second, gap, 2), time.Minute, []float64{gap, 2}},
		{"no time", every(30*time.Second, 1), 0, []float64{1}},
	} {
		got := Means(c.list, begin, begin.Add(c.took), len(c.want), func(s *Sample) float64 { return s.Load })
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestForeignFileOfSamplesIsNotWritten checks that nothing is written to a file that somebody else put
// there, and that invalid lines are ignored.
func TestForeignFileOfSamplesIsNotWritten(t *testing.T) {
	r := newRun(t)
	other := filepath.Join(t.TempDir(), "other")
	for path, text := range map[string]string{other: "x",
		r.Path(rundir.HostsDir, "ws02.load"): "1800000000 1\nx\n1800000030\n1700000000 2\n1800000060 NaN\n" +
			"1800000090 1e300\n1800000100 3 4 5\n1800000120 3"} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	must(t, os.Symlink(other, r.Path(rundir.HostsDir, "ws01.load")))
	NewSampleLog(r).Record(&State{At: time.Now(),
		Hosts: []Host{{Name: "ws01", HostStatus: jobs.HostStatus{State: "up"}}}})
	if b, err := os.ReadFile(other); string(b) != "x" {
		t.Errorf("the other file holds %q, %v; want it unchanged", b, err)
	}
	samples := ReadSamples(r, 0)
	if list := samples["ws02"]; len(samples) != 1 || len(list) != 2 || list[1].Load != 3 {
		t.Errorf("ReadSamples: got %v, want the two valid lines of ws02", samples)
	}
}

// FuzzSamples checks that a file of samples has at most one sample per line.
func FuzzSamples(f *testing.F) {
	f.Add("1800000000 1.25\n1800000030 0\n1800000060 1 8 5 1.5 24576 65536 1.5 2 17 9\n")
	r := newRun(f)
	f.Fuzz(func(t *testing.T, text string) {
		must(t, os.WriteFile(r.Path(rundir.HostsDir, "a.load"), []byte(text), 0o600))
		if n := len(ReadSamples(r, 0)["a"]); n > strings.Count(text, "\n")+1 {
			t.Errorf("%d samples of %q", n, text)
		}
	})
}
