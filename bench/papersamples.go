package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

const samplesHeader = "experiment\tcase\tprogram\tmeasure\tvalue\tscale\tcommit\tdate\tload\tkernel\tgo\n"

// sample is one value that was measured. A trial with several measures has a sample for each.
type sample struct {
	experiment, of, program, measure string
	value                            float64
	commit, date, system             string
	load                             float64
}

// samples are all samples of a scale, in the order in which they were measured, and the file to
// which new ones are appended.
type samples struct {
	file       string
	scale      float64
	commit     string
	system     string
	list       []sample
	experiment string // whose samples the methods of and last return
}

// loadSamples reads the samples of a scale. A file that does not exist has none.
func loadSamples(file string, scale float64) (*samples, error) {
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return nil, fmt.Errorf("git describe: %w", err)
	}
	s := &samples{file: file, scale: scale, commit: strings.TrimSpace(string(commit)),
		system: kernel() + "\t" + runtime.Version()}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if i == 0 || line == "" {
			continue
		}
		if len(f) != strings.Count(samplesHeader, "\t")+1 {
			return nil, fmt.Errorf("%s: line %d has %d fields", file, i+1, len(f))
		}
		value, err1 := strconv.ParseFloat(f[4], 64)
		of, err2 := strconv.ParseFloat(f[5], 64)
		load, err3 := strconv.ParseFloat(f[8], 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file, i+1, err)
		}
		if of == scale {
			s.list = append(s.list, sample{f[0], f[1], f[2], f[3], value, f[6], f[7], f[9] + ", " + f[10], load})
		}
	}
	return s, nil
}

// add keeps what a trial has measured, in the file, too.
func (s *samples) add(experiment, of, program string, measured values) error {
	var text strings.Builder
	if _, err := os.Stat(s.file); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(s.file), 0o755); err != nil {
			return err
		}
		text.WriteString(samplesHeader)
	}
	now := sample{experiment: experiment, of: of, program: program, commit: s.commit,
		date: time.Now().UTC().Format("2006-01-02"), load: loadNow(), system: strings.ReplaceAll(s.system, "\t", ", ")}
	for _, measure := range slices.Sorted(maps.Keys(measured)) {
		now.measure, now.value = measure, measured[measure]
		s.list = append(s.list, now)
		fmt.Fprintf(&text, "%s\t%s\t%s\t%s\t%.6g\t%v\t%s\t%s\t%.2f\t%s\n", experiment, of, program, measure, now.value,
			s.scale, now.commit, now.date, now.load, s.system)
	}
	f, err := os.OpenFile(s.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}

// kernel returns the name and the version of the operating system.
func kernel() string {
	name, _ := exec.Command("uname", "-sr").Output()
	return strings.TrimSpace(string(name))
}

// loadNow returns the load average of the last minute.
func loadNow() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	busy, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(busy, 64)
	return load
}

// count returns how many trials of a case there are.
func (s *samples) count(experiment, of, program string) (n int) {
	measure := ""
	for _, m := range s.list {
		if m.experiment == experiment && m.of == of && m.program == program && (measure == "" || measure == m.measure) {
			measure = m.measure
			n++
		}
	}
	return n
}

// of returns the values of a measure of the current experiment, each passed through change.
func (s *samples) of(of, program, measure string, change func(float64) float64) spread {
	var list []float64
	for _, m := range s.list {
		if m.experiment == s.experiment && m.of == of && m.program == program && m.measure == measure {
			list = append(list, change(m.value))
		}
	}
	return spreadOf(list)
}

// plain is for samples.of: the value itself.
func plain(v float64) float64 { return v }

// rate is for samples.of: n in the measured time, each second.
func rate(n float64) func(float64) float64 { return func(s float64) float64 { return n / s } }

// conditions describes when and where the samples of an experiment were measured.
func (s *samples) conditions(experiment string) string {
	var commits, dates, systems jobs.Numbering[string]
	numRuns, loads := map[[2]string]int{}, []float64{}
	for _, m := range s.list {
		if m.experiment != experiment {
			continue
		}
		commits.Number(m.commit)
		dates.Number(m.date)
		systems.Number(m.system)
		loads = append(loads, m.load)
		numRuns[[2]string{m.of, m.program}] = s.count(experiment, m.of, m.program)
	}
	fewest, most := slices.Min(slices.Collect(maps.Values(numRuns))), slices.Max(slices.Collect(maps.Values(numRuns)))
	runs := fmt.Sprintf("%d runs each", most)
	switch {
	case fewest != most:
		runs = fmt.Sprintf("%d to %d runs each", fewest, most)
	case most == 1:
		runs = "one run each"
	}
	return fmt.Sprintf("Scale %v, %s, on %s at %s; load %.1f to %.1f; %s, %d cores.", s.scale, runs,
		strings.Join(dates.Values, ", "), strings.Join(commits.Values, ", "), slices.Min(loads), slices.Max(loads),
		strings.Join(systems.Values, "; "), runtime.NumCPU())
}
