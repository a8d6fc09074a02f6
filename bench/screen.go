package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// screen measures the screen with a million jobs on a pseudo-terminal, and the bytes that it sends
// while jobs end all the time.
func screen(l *lab, r *report) error {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "Screen", "-benchtime", "1x",
		"./tui").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	r.table("what", "median", "worst of 200")
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 5 && strings.HasPrefix(f[0], "BenchmarkScreen") {
			figures := map[string]string{}
			for i := 2; i+1 < len(f); i += 2 {
				figures[f[i+1]] = f[i]
			}
			r.row("key to frame in the program, a million jobs, 160x48", figures["frame-median-ms"]+" ms",
				figures["frame-worst-ms"]+" ms")
			r.row("the same, with the look at the board that the key asks for, and its frame",
				figures["look-median-ms"]+" ms", figures["look-worst-ms"]+" ms")
		}
	}
	million := l.file("million.txt", strings.Repeat("sleep 100000\n", 1_000_000))
	s, err := l.watch(160, 48, l.runDir(), "--hosts", l.here(2), million)
	if err != nil {
		return err
	}
	defer s.end(l)
	time.Sleep(5 * time.Second)
	var first, last []time.Duration
	// Each key changes the screen. Together they return to the start.
	keys := []string{"g", "j", "j", "k", "\x04", "\x15", "G", "k", "\x1b[5~", "\x1b[6~", "\x1b[A", "\x1b[B", "2", "1",
		"5", "1", " ", "k", " ", "S", "S"}
	for i := 0; len(first) < 200 && i < 400; i++ {
		if f, z, ok := s.press(keys[i%len(keys)]); ok {
			first, last = append(first, f), append(last, z)
		}
	}
	r.row("key to the first byte on the terminal, a million jobs, 160x48", ms(median(first)), ms(quantile(first, 1)))
	r.row("key to the last byte that follows from it", ms(median(last)), ms(quantile(last, 1)))

	s.quiet(80 * time.Millisecond)
	time.Sleep(3 * time.Second)
	dispatcher := owner(s.dir)
	const span = 30 * time.Second
	before, _ := readProc(dispatcher)
	cpu, sent, after, _ := s.useOver(span)
	d, _ := readProc(dispatcher)
	r.say("Idle at a million jobs, 160x48, over %.0f s: the screen %s of a core and %s resident, "+
		"its dispatcher %s and %s; %d bytes/s to the terminal (clocks run).", span.Seconds(), share(cpu, span),
		mib(after.rss), share(d.cpu-before.cpu, span), mib(d.rss), sent/int64(span.Seconds()))

	r.say("Jobs that end all the time (`sleep 0.1` on 4 slots), so that each look, four a second, brings a change:\n")
	r.table("size", "bytes/s", "screen's CPU of a core")
	short := l.file("short.txt", strings.Repeat("sleep 0.1\n", 100_000))
	for _, size := range [][2]int{{80, 24}, {160, 48}} {
		if err := l.flow(r, size, "--hosts", l.here(4), short); err != nil {
			return err
		}
	}
	return nil
}

// flow measures the bytes that a busy run sends to a terminal.
func (l *lab) flow(r *report, size [2]int, args ...string) error {
	s, err := l.watch(size[0], size[1], l.runDir(), args...)
	if err != nil {
		return err
	}
	defer s.end(l)
	time.Sleep(5 * time.Second)
	const span = 20 * time.Second
	cpu, sent, _, err := s.useOver(span)
	r.row(fmt.Sprintf("%dx%d", size[0], size[1]), fmt.Sprint(sent/int64(span.Seconds())),
		fmt.Sprintf("%.1f %%", 100*cpu.Seconds()/span.Seconds()))
	return err
}

// owner returns the pid of the dispatcher of a run.
func owner(dir string) int {
	var o struct {
		PID int `json:"pid"`
	}
	if b, err := os.ReadFile(filepath.Join(dir, "owner")); err == nil {
		json.Unmarshal(b, &o)
	}
	return o.PID
}
