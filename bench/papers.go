package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// paper is an experiment of a paper whose features the program has: the figure of dcs-tui, that of
// xargs on the same machine, and the paper's where its text has one. A scale below 1 shortens it by
// that factor.
type paper struct {
	name, what string
	trials     func(*lab) ([]trial, error) // in the order of a round; the two programs alternate
	show       func(*report, *samples) error
}

// trial is one measurement of a case with one program.
type trial struct {
	of, program string
	measure     func() (values, error)
}

// values are the results of a trial, by the names of measures.
type values map[string]float64

const (
	ours   = "dcs-tui"
	theirs = "xargs"
)

var papers = []paper{
	{"slots", "throughput against slots", slotTrials, showSlots},
	{"jobs", "time against the number of jobs", numberTrials, showNumbers},
	{"tries", "success rate and time against the number of tries K", tryTrials, showTries},
	{"zero", "jobs of `sleep 0` a second against slots", zeroTrials, showZero},
	{"start", "the time of one job, with its host up and with its host to be created", startTrials, showStart},
	{"workers", "jobs that do nothing, on 1 to 8 workers", workerTrials, showWorkers},
	{"foreign", "the work of three hosts of four slots, one with two foreign processes that compute", foreignTrials,
		showForeign},
	{"fill", fmt.Sprintf("jobs that compute, on %d workers", fillSlots), fillTrials, showFill},
	{"sleep", "efficiency with a fixed time of sleep for each slot", sleepTrials, showSleep},
}

// measurePapers measures rounds of the chosen experiments, at most o.rounds of each trial at this scale,
// and writes the report after each experiment of a round. Samples of earlier calls count.
func measurePapers(o options, only, out string) error {
	beside := strings.TrimSuffix(out, ".md") // the directory of samples and charts
	all, err := loadSamples(filepath.Join(beside, "samples.tsv"), o.scale)
	if err != nil {
		return err
	}
	os.Setenv("DCS_TUI_RUN_SHARE", "off") // other runs on this machine would get slots of ours
	l, err := prepare(o)
	if err != nil {
		return err
	}
	defer l.close()
	r := &report{suite: &suite{file: out, charts: beside, heading: papersHeading}, options: o}
	for _, p := range papers {
		r.list = append(r.list, experiment{name: p.name})
	}
	for round := 1; round <= o.rounds; round++ {
		for _, p := range papers {
			if !isChosen(p.name, only) {
				continue
			}
			trials, err := p.trials(l)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			for _, t := range trials {
				if all.count(p.name, t.of, t.program) >= round {
					continue
				}
				fmt.Println("round", round, p.name, t.of, t.program)
				measured, err := t.measure()
				if err == nil {
					err = all.add(p.name, t.of, t.program, measured)
				}
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", p.name, t.of, t.program, err)
				}
			}
			all.experiment = p.name
			r.begin(p.name, p.what, all.conditions(p.name))
			if err := p.show(r, all); err != nil {
				return err
			}
			if err := r.write(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// scaled returns a scaled number of jobs, which is at least one.
func (l *lab) scaled(n int) int { return max(1, int(float64(n)*l.scale+0.5)) }

// local prepares a run on slots of this machine without ssh.
func (l *lab) local(slots int, extra ...string) *exec.Cmd {
	return l.command(append([]string{"run", "--no-tui", "--hosts", l.here(slots), "--run-dir",
		l.runDir()}, extra...)...)
}

// here writes a hosts.toml with slots of this machine.
func (l *lab) here(slots int) string {
	return l.file("local.toml", fmt.Sprintf("[[host]]\nname = \"here\"\nlink = \"local\"\nslots = %d\n"+
		"yield = false\nnice = 0\nwork_dir = %q\n",
		slots, filepath.Join(l.dir, "here")))
}

// place is where the jobs of a case run.
type place struct {
	name  string // "local" or "ssh"
	title string
	hosts int // over ssh
}

var (
	localPlace  = place{"local", "this machine", 0}
	remotePlace = place{"ssh", "4 over ssh", 4}
	singlePlace = place{"ssh", "1 over ssh", 1}
)

// beside returns the trials of a case with both programs, which measure seconds.
func (l *lab) beside(of string, p place, slots int, file string) []trial {
	run := func() *exec.Cmd { return l.local(slots, file) }
	if p.hosts > 0 {
		run = func() *exec.Cmd { return l.spread(p.hosts, slots, l.runDir(), file) }
	}
	return []trial{
		{of, ours, func() (values, error) { return seconds(run()) }},
		{of, theirs, func() (values, error) { return seconds(xargs(slots, file, "sh")) }},
	}
}

// seconds runs a command and returns how long it took.
func seconds(cmd *exec.Cmd) (values, error) {
	c, err := timed(cmd)
	if err != nil && !someFailed(err) {
		return nil, err
	}
	return values{"s": c.wall.Seconds()}, nil
}

// someFailed reports whether the program completed all of its work but some jobs failed: exit code
// 1 of dcs-tui, 123 of xargs.
func someFailed(err error) bool {
	return strings.Contains(err.Error(), "exit status 1\n") || strings.Contains(err.Error(), "exit status 123\n")
}

// sleeps returns n lines that sleep for a time.
func sleeps(n int, each float64) string {
	return strings.Repeat(fmt.Sprintf("sleep %.3g\n", each), n)
}

// spread is mean and standard deviation of samples.
type spread struct{ mean, deviation float64 }

func spreadOf(list []float64) (s spread) {
	for _, v := range list {
		s.mean += v / float64(len(list))
	}
	for _, v := range list {
		s.deviation += (v - s.mean) * (v - s.mean)
	}
	s.deviation = math.Sqrt(s.deviation / float64(max(1, len(list)-1)))
	return s
}

// text formats the mean, and the deviation where there is one, with a format for numbers.
func (s spread) text(format string) string {
	if s.deviation == 0 {
		return fmt.Sprintf(format, s.mean)
	}
	return fmt.Sprintf(format+" ± "+format, s.mean, s.deviation)
}
