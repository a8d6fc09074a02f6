package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// TestLoadsCoverTheWholeRun checks that a host that is up has a sample every 30 s. A full file
// drops every second sample, so that it covers the whole run.
func TestLoadsCoverTheWholeRun(t *testing.T) {
	r := newRun(t)
	log, begin := NewLoadLog(r), time.Unix(1_800_000_000, 0)
	at := begin
	for range 12_000 { // every 10 s, for 33 hours
		log.Record(&State{At: at, Hosts: []Host{{Name: "ws01", HostStatus: jobs.HostStatus{State: "up"},
			Load: [3]float64{1.234, 9, 9}}, {Name: "ws02", HostStatus: jobs.HostStatus{State: "lost"}}}})
		at = at.Add(10 * time.Second)
	}
	info, err := os.Stat(r.Path(rundir.HostsDir, "ws01.load"))
	if err != nil || info.Size() > maxLoadBytes || info.Mode() != 0o600 {
		t.Fatalf("the file: got %v, %v; want at most maxLoadBytes and mode 0600", info, err)
	}
	loads := ReadLoads(r)
	list := loads["ws01"]
	if len(loads) != 1 || len(list) < 1500 || list[0] != (LoadSample{begin, 1.23}) ||
		at.Sub(list[len(list)-1].At) > time.Minute {
		t.Errorf("%d hosts, %d samples", len(loads), len(list))
	}
	for i := 1; i < len(list); i++ {
		if gap := list[i].At.Sub(list[i-1].At); gap < loadInterval || gap > 2*loadInterval {
			t.Fatalf("sample %d comes %v after the one before", i, gap)
		}
	}
	// The next dispatcher continues the file.
	NewLoadLog(r).Record(&State{At: at, Hosts: []Host{{Name: "ws01", HostStatus: jobs.HostStatus{State: "draining"},
		Load: [3]float64{7}}}})
	if more := ReadLoads(r)["ws01"]; len(more) != len(list)+1 || more[len(list)].Load != 7 {
		t.Errorf("%d samples after %d", len(more), len(list))
	}
}

// TestForeignLoadsFileIsNotWritten checks that nothing is written to a file that somebody else put
// there, and that invalid lines are ignored.
func TestForeignLoadsFileIsNotWritten(t *testing.T) {
	r := newRun(t)
	other := filepath.Join(t.TempDir(), "other")
	for path, text := range map[string]string{other: "x",
		r.Path(rundir.HostsDir, "ws02.load"): "1800000000 1\nx\n1800000030\n1700000000 2\n1800000060 NaN\n1800000090 1e300\n1800000120 3"} {
		t.Run(path, func(t *testing.T) {
			must(t, os.WriteFile(path, []byte(text), 0o600))
		})
	}
	must(t, os.Symlink(other, r.Path(rundir.HostsDir, "ws01.load")))
	NewLoadLog(r).Record(&State{At: time.Now(),
		Hosts: []Host{{Name: "ws01", HostStatus: jobs.HostStatus{State: "up"}}}})
	if b, err := os.ReadFile(other); string(b) != "x" {
		t.Errorf("the other file holds %q, %v; want it unchanged", b, err)
	}
	loads := ReadLoads(r)
	if list := loads["ws02"]; len(loads) != 1 || len(list) != 2 || list[1].Load != 3 {
		t.Errorf("ReadLoads: got %v, want the two valid lines of ws02", loads)
	}
}

// FuzzLoads checks that a file of loads has at most one sample per line.
func FuzzLoads(f *testing.F) {
	f.Add("1800000000 1.25\n1800000030 0\n")
	r := newRun(f)
	f.Fuzz(func(t *testing.T, text string) {
		must(t, os.WriteFile(r.Path(rundir.HostsDir, "a.load"), []byte(text), 0o600))
		if n := len(ReadLoads(r)["a"]); n > strings.Count(text, "\n")+1 {
			t.Errorf("%d samples of %q", n, text)
		}
	})
}
