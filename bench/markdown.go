package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report writes sections in Markdown and prints their rows as they are made.
type report struct {
	*suite
	options
	name string       // of the current section
	b    bytes.Buffer // its text
}

// conditions describes when and where a measurement that begins now is made.
func (o options) conditions() string {
	commit, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	return fmt.Sprintf("Measured on %s at commit %s, rounds %d; %s, %d cores, load %.2f at the beginning, %s.",
		time.Now().UTC().Format("2006-01-02"), strings.TrimSpace(string(commit)), o.rounds, kernel(), runtime.NumCPU(),
		loadNow(), runtime.Version())
}

// begin begins a section. conditions describes when and where it was measured.
func (r *report) begin(name, what, conditions string) {
	r.name = name
	r.b.Reset()
	fmt.Fprintf(&r.b, "## %s: %s\n\n%s\n\n", name, what, conditions)
}

// table writes a table header. row adds the rows.
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

// kept returns the sections of a report that was written before, by name. A file that does not
// exist has none.
func kept(path string) (map[string]string, error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string]string{}
	for _, text := range strings.Split("\n"+string(old), "\n## ")[1:] {
		name, _, _ := strings.Cut(text, ":")
		all[name] = "## " + strings.TrimSpace(text)
	}
	return all, nil
}

// write replaces the current section in the file. The other sections of the file are kept.
func (r *report) write(path string) error {
	all, err := kept(path)
	if err != nil {
		return err
	}
	all[r.name] = strings.TrimSpace(r.b.String())
	text := r.heading
	for _, e := range r.list {
		if all[e.name] != "" {
			text += "\n" + all[e.name] + "\n"
		}
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// median returns the median of the values.
func median[T int64 | float64 | time.Duration](v []T) T { return quantile(v, 0.5) }

// quantile returns a quantile by nearest rank.
func quantile[T int64 | float64 | time.Duration](v []T, q float64) T {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

// all formats each repetition in the order in which they were made.
func all[T float64 | time.Duration](format string, v []T) string {
	words := make([]string, len(v))
	for i := range v {
		if d, ok := any(v[i]).(time.Duration); ok {
			words[i] = fmt.Sprintf(format, float64(d)/1e6)
		} else {
			words[i] = fmt.Sprintf(format, v[i])
		}
	}
	return strings.Join(words, " ")
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
func mib(b int64) string        { return fmt.Sprintf("%.0f MiB", float64(b)/(1<<20)) }
