package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report gathers tables in Markdown and shows them as they come.
type report struct{ b bytes.Buffer }

func newReport() *report {
	r := &report{}
	commit, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	kernel, _ := exec.Command("uname", "-sr").Output()
	fmt.Fprintf(&r.b, "# Results\n\nWritten by `make bench` on %s at commit %s; %s, %d cores, %s. "+
		"The machine is shared: look at the ratios, which are of one run.\n",
		time.Now().UTC().Format("2006-01-02"), strings.TrimSpace(string(commit)),
		strings.TrimSpace(string(kernel)), runtime.NumCPU(), runtime.Version())
	return r
}

func (r *report) section(name, what string) { fmt.Fprintf(&r.b, "\n## %s: %s\n\n", name, what) }

// table writes a header; rows follow with row.
func (r *report) table(columns ...string) {
	r.row(columns...)
	fmt.Fprintln(&r.b, strings.Repeat("|---", len(columns))+"|")
}

func (r *report) row(cells ...string) {
	line := "| " + strings.Join(cells, " | ") + " |"
	fmt.Fprintln(&r.b, line)
	fmt.Fprintln(os.Stderr, line)
}

func (r *report) say(format string, args ...any) { fmt.Fprintf(&r.b, "\n"+format+"\n", args...) }

func (r *report) write(path string) error { return os.WriteFile(path, r.b.Bytes(), 0o644) }

// median of values; they are sorted in place.
func median[T int64 | float64 | time.Duration](v []T) T { return quantile(v, 0.5) }

// quantile by nearest rank.
func quantile[T int64 | float64 | time.Duration](v []T, q float64) T {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
func mib(b int64) string        { return fmt.Sprintf("%.0f MiB", float64(b)/(1<<20)) }
