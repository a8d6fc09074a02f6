package grid

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestFilterKeepsTheSelectedPoints checks that a filter keeps the points that it selects, however
// its conditions are distributed over the axes.
func TestFilterKeepsTheSelectedPoints(t *testing.T) {
	for where, keeps := range map[string]func(x, y, z int) bool{
		"x > 2":                                func(x, y, z int) bool { return x > 2 },
		"z = 3":                                func(x, y, z int) bool { return z == 3 },
		"x > y and y > z":                      func(x, y, z int) bool { return x > y && y > z },
		"x + y = z or z = 1":                   func(x, y, z int) bool { return x+y == z || z == 1 },
		"x > 1 and z < 3 and (y = 2 or x = 4)": func(x, y, z int) bool { return x > 1 && z < 3 && (y == 2 || x == 4) },
		"1 = 1":                                func(x, y, z int) bool { return true },
	} {
		t.Run(where, func(t *testing.T) {
			var want []string
			for k := range 64 {
				if x, y, z := k/16+1, k/4%4+1, k%4+1; keeps(x, y, z) {
					want = append(want, fmt.Sprint(" ", x, " ", y, " ", z))
				}
			}
			if got := points(t, parse(t, "a [x] [y] [z]\n[x] 1..4\n[y] 1..4\n[z] 1..4\n@where "+
				where)); !slices.Equal(got,
				want) {
				t.Errorf("%s: got %q, want %q", where, got, want)
			}
		})
	}
}

// TestLargeProductIsLazy checks that a product of 10^7 or more jobs with a filter yields its first
// job at once and does not hold the rest in memory.
func TestLargeProductIsLazy(t *testing.T) {
	tmpl := parse(t, "a [x] [y] [z]\n[x] 1..100000\n[y] 1..100000\n[z] 1..100000\n@where x >= 99999 and y > z")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for s, err := range tmpl.Jobs() {
		if err != nil || n == 0 && s.Command != "a 99999 2 1" {
			t.Fatal(s, err)
		}
		if n++; n == 1000 {
			break
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
		t.Errorf("%d bytes for 1000 jobs of 10^15", used)
	}
}

// TestJobTakesLittleMemory checks that equal options are shared and that a job costs little memory
// beyond its texts.
func TestJobTakesLittleMemory(t *testing.T) {
	tmpl := parse(t,
		"#DCS default timeout=2h\n./simulate --temperature [T] --seed [seed]\n[T] 0..1 step 0.001\n[seed] 1..100")
	var all []*jobs.Spec
	text := 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for s := range tmpl.Jobs() {
		all, text = append(all, s), text+len(s.Command)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (int(after.HeapAlloc-before.HeapAlloc) - text) / len(all); each >= 400 {
		t.Errorf("%d bytes a job beyond its command", each)
	}
	for _, s := range all {
		if s.Options != all[0].Options {
			t.Fatal("options are not shared")
		}
	}
}

// TestValuesComeFromFilesAndCommands checks that values come from a file, or from a command that
// runs where the jobs do.
func TestValuesComeFromFilesAndCommands(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("list.txt", "\ufeffone\r\n\n  two  \n1..3\nlast")
	write("a b.csv", "")
	write("c.csv", "")
	for text, want := range map[string]string{
		"a '[f]'\n[f] file: list.txt":                             "a 'one'|a '  two  '|a '1..3'|a 'last'",
		"a '[f]'\n[f] file: \"list.txt\" ":                        "a 'one'|a '  two  '|a '1..3'|a 'last'",
		"a '[f]'\n[f] file: " + dir + "/list.txt":                 "a 'one'|a '  two  '|a '1..3'|a 'last'",
		"a [f:q]\n[f] command: ls *.csv":                          "a 'a b.csv'|a c.csv",
		"a [f]\n[f] command: seq 3 | sort -r; echo no >&2":        "a 3|a 2|a 1",
		"a [f]\n[f] command: sleep 1000 >/dev/null 2>&1 & echo x": "a x",
	} {
		tmpl, err := Config{Dir: dir}.Parse(context.Background(), strings.NewReader(text), "t.txt")
		if err != nil {
			t.Error(err)
			continue
		}
		same(t, text, strings.Join(commandsOf(t, tmpl), "|"), want)
	}
}

// TestSourcesAreEnded checks that a command for values that does not end, or prints forever, is
// killed.
func TestSourcesAreEnded(t *testing.T) {
	for text, want := range map[string]string{
		"echo waiting >&2; sleep 1000; echo": "did not end within 200ms and was stopped: waiting",
		"yes":                                "prints more than 16 MiB",
	} {
		t.Run(text, func(t *testing.T) {
			c := Config{Timeout: 200 * time.Millisecond}
			if text == "yes" {
				c.Timeout = time.Minute
			}
			refused(t, c, "a [f]\n[f] command: "+text, "t.txt:2:14", want)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (Config{}).Parse(ctx, strings.NewReader("a [f]\n[f] command: sleep 1000"), "t.txt"); err == nil ||
		!strings.Contains(err.Error(), "stopped") {
		t.Error(err)
	}
}

// TestFaultyTemplateRunsNothing checks that no command is run for a template that has an error.
func TestFaultyTemplateRunsNothing(t *testing.T) {
	ran := false
	c := Config{read: func(source, context.Context, Config) (texts, error) { ran = true; return texts{"x"}, nil }}
	if _, err := c.Parse(context.Background(), strings.NewReader("a [f] [g]\n[f] command: x\n"), "t.txt"); err == nil ||
		ran {
		t.Error(err, ran)
	}
}

// Parse parses a template without options.
func Parse(r io.Reader, name string) (*Template, error) {
	return Config{}.Parse(context.Background(), r, name)
}

// BenchmarkJobs makes the jobs of a plain grid, of one with a filter that keeps half, and of a
// sample. It reports ns and bytes per job.
func BenchmarkJobs(b *testing.B) {
	const head = "./simulate -T [T] --seed [seed] --out 'run [T] [seed].csv'\n[T] 0..1 step 0.001\n[seed] 1..1000\n"
	for name, text := range map[string]string{
		"product": head, "filter": head + "@where seed % 2 = 0 and T * 1000 < 2000\n", "sample": head +
			"@sample 500000\n",
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
	tmpl, err := Parse(strings.NewReader("a [x] [y]\n[x] 1..1000\n[y] 1..10000\n@where x * y > 20000000 and y != x"),
		"t.txt")
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
