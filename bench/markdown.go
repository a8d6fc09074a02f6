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

// report collects sections in Markdown and prints them as they are written.
type report struct {
	*suite
	b        bytes.Buffer // the current section
	sections []section
}

// section is a part of the report. Its text describes when and where it was measured.
type section struct{ name, text string }

// measured returns a line that describes when, of which version, and where the measurement was
// made.
func measured() string {
	commit, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	kernel, _ := exec.Command("uname", "-sr").Output()
	load, _ := os.ReadFile("/proc/loadavg")
	busy, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("Measured on %s at commit %s; %s, %d cores, load %s at the beginning, %s.",
		time.Now().UTC().Format("2006-01-02"),
		strings.TrimSpace(string(commit)), strings.TrimSpace(string(kernel)), runtime.NumCPU(), busy, runtime.Version())
}

func (r *report) section(name, what string) {
	r.end()
	r.sections = append(r.sections, section{name: name})
	fmt.Fprintf(&r.b, "## %s: %s\n\n%s\n\n", name, what, measured())
}

// end completes the current section.
func (r *report) end() {
	if n := len(r.sections); n > 0 {
		r.sections[n-1].text = strings.TrimSpace(r.b.String())
	}
	r.b.Reset()
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

// write puts the sections into the file and replaces those with the same names. The other sections
// of the file are kept.
func (r *report) write(path string) error {
	r.end()
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept := map[string]string{}
	for _, text := range strings.Split("\n"+string(old), "\n## ")[1:] {
		name, _, _ := strings.Cut(text, ":")
		kept[name] = "## " + strings.TrimSpace(text)
	}
	for _, s := range r.sections {
		kept[s.name] = s.text
	}
	text := r.heading
	for _, e := range r.list {
		if kept[e.name] != "" {
			text += "\n" + kept[e.name] + "\n"
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
