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

// TestPointsAreInOrder checks that random access agrees with the order of the jobs, with and
// without zips and several commands, and that every point occurs once.
func TestPointsAreInOrder(t *testing.T) {
	tmpl := parse(t, "a [x] [y] [z]\nb [z]\n[x] 1..4\n[y] 1..3\n[z] 1..4\n[w] p q\n@zip x z\n")
	if tmpl.Points() != 4*3*2 || tmpl.Commands() != 2 {
		t.Fatalf("%d points", tmpl.Points())
	}
	seen := map[string]bool{}
	k := 0
	for s := range tmpl.Jobs() {
		one := tmpl.Job(k)
		if one.Command != s.Command || !slices.Equal(one.Params, s.Params) || one.ID != s.ID || !slices.Equal(tmpl.Point(k/2), s.Params) {
			t.Fatalf("job %d: %+v, but in order %+v", k, one, s)
		}
		if s.Params[0].Value != s.Params[2].Value {
			t.Fatalf("not zipped: %+v", s.Params)
		}
		seen[fmt.Sprint(s.Params, s.Line)] = true
		k++
	}
	if n, _ := tmpl.Count(); n != k || len(seen) != k {
		t.Errorf("%d jobs, %d distinct, counted %d", k, len(seen), n)
	}
}

// TestFilterAgreesWithKeeps checks that a filter keeps the points that Keeps selects, however its
// conditions are distributed over the axes.
func TestFilterAgreesWithKeeps(t *testing.T) {
	for _, where := range []string{"x > 2", "z = 3", "x > y and y > z", "x + y = z or z = 1", "x > 1 and z < 3 and (y = 2 or x = 4)", "1 = 1", "1 = 2"} {
		tmpl := parse(t, "a [x] [y] [z]\n[x] 1..4\n[y] 1..4\n[z] 1..4\n@where "+where)
		var want []string
		for k := range tmpl.Points() {
			if tmpl.Keeps(k) {
				want = append(want, tmpl.Job(k).Command)
			}
		}
		if got := commandsOf(t, tmpl); !slices.Equal(got, want) {
			t.Errorf("%s: %d jobs, want %d", where, len(got), len(want))
		}
	}
}

// TestLazy checks that a product of 10^7 or more jobs with a filter yields its first job at once
// and does not hold the rest in memory.
func TestLazy(t *testing.T) {
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

// TestMemory checks that equal options are shared and that a job costs little memory beyond its
// texts.
func TestMemory(t *testing.T) {
	tmpl := parse(t, "#DCS default timeout=2h\n./simulate --temperature [T] --seed [seed]\n[T] 0..1 step 0.001\n[seed] 1..100")
	var all []*jobs.Spec
	text := 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for s := range tmpl.Jobs() {
		all = append(all, s)
		text += len(s.Command)
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

// TestSources checks that values come from a file, or from a command that runs where the jobs do.
func TestSources(t *testing.T) {
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
		if got := strings.Join(commandsOf(t, tmpl), "|"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestSourcesAreEnded checks that a command for values that does not end, or prints forever, is
// killed.
func TestSourcesAreEnded(t *testing.T) {
	for text, want := range map[string]string{
		"echo waiting >&2; sleep 1000; echo": "did not end within 200ms and was stopped: waiting",
		"yes":                                "prints more than 16 MiB",
	} {
		c := Config{Timeout: 200 * time.Millisecond}
		if text == "yes" {
			c.Timeout = time.Minute
		}
		if _, err := c.Parse(context.Background(), strings.NewReader("a [f]\n[f] command: "+text), "t.txt"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (Config{}).Parse(ctx, strings.NewReader("a [f]\n[f] command: sleep 1000"), "t.txt"); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Error(err)
	}
}

// TestFaultyTemplateRunsNothing checks that no command is run for a template that has an error.
func TestFaultyTemplateRunsNothing(t *testing.T) {
	ran := false
	c := Config{read: func(source, context.Context, Config) (texts, error) { ran = true; return texts{"x"}, nil }}
	if _, err := c.Parse(context.Background(), strings.NewReader("a [f] [g]\n[f] command: x\n"), "t.txt"); err == nil || ran {
		t.Error(err, ran)
	}
}

// Parse parses a template without options.
func Parse(r io.Reader, name string) (*Template, error) {
	return Config{}.Parse(context.Background(), r, name)
}

// Commands returns the number of command lines, which is the number of jobs of each point.
func (t *Template) Commands() int { return len(t.commands) }

// Job returns job k of the whole product, from 0, before filter and sample.
func (t *Template) Job(k int) *jobs.Spec {
	params := t.params(t.point(k / len(t.commands)))
	return t.spec(t.commands[k%len(t.commands)], jobs.ID(k+1), params, newTuples(t))
}

// Point returns point k of the whole product, from 0.
func (t *Template) Point(k int) []jobs.Param { return t.params(t.point(k)) }

// Keeps reports whether the filter keeps point k.
func (t *Template) Keeps(k int) bool { return t.keeps(t.point(k), len(t.axes)) }

func (t *Template) point(k int) []int {
	ix := make([]int, len(t.axes))
	t.place(k, ix)
	return ix
}
