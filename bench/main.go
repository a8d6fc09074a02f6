// Command bench measures dcs-tui on real sshd servers over loopback and writes bench/results.md.
// Most metrics are compared with `xargs -P` on the same jobs in the same run. The benchmarks do not
// pass or fail, and the tests check no times. bench/README.md describes each metric.
//
//	go run ./bench                  all measurements
//	go run ./bench -only gap,idle   some of them, printed only
//	go run ./bench -only throughput -hosts 4 -slots 16 -jobs 3000 -rounds 3
//	                                one metric, in less than a minute
//	go run ./bench -only idle -o bench/results.md
//	                                measure one section of the report again
//	go run ./bench -papers -scale 0.1
//	                                the experiments of the papers, at a tenth of their length;
//	                                writes docs/internals/papers.md; goes on where the last call
//	                                stopped
//	go run ./bench -compare -o docs/compare.md
//	                                the same jobs through dcs-tui and other programs
//	go run ./bench -bigrun N DIR    write a run of N ended jobs to DIR, to measure commands on it
package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// experiment is one measurement. Its function writes a table to the report.
type experiment struct {
	name string
	what string
	run  func(*lab, *report) error
}

var experiments = []experiment{
	{"throughput", "jobs of `sleep 0` a second", throughput},
	{"gap", "between a job's end and its successor's start in the same slot", gaps},
	{"latency", "from submission to the job's first instruction", latency},
	{"exit", "from the end of the last job to the exit of the program", exits},
	{"efficiency", "of `sleep 1`, 16 s a slot, over 4 hosts", efficiency},
	{"queue", "the dispatcher with many queued jobs", queued},
	{"replay", "parse, fold and replay of a million jobs", replay},
	{"idle", "100 long jobs on 4 hosts", idle},
	{"fleet", "1,000 hosts without machines, 128 slots each, jobs of 60 s", fleet},
	{"links", "a dispatcher with links to 1,000 simulated hosts over ssh", fleetLinks},
	{"looks", "helpers of 50 runs on one host, each with one job that waits", looks},
	{"soak", "what dispatcher and helpers use after many jobs and faults", soak},
	{"million", "memory and CPU of commands on a run of 100,000 and of a million ended jobs", million},
	{"observe", "attaching to a run, and what observers cost", observe},
	{"copies", "what --speculate saves, on 4 hosts of 2 slots", copies},
	{"files", "launches and heartbeats while 1 GiB is sent to the same host", sendFiles},
	{"screen", "the screen: keys, idling, bytes to the terminal", screen},
	{"keys", "the screen of 100,000 jobs on 200 hosts: keys of each kind, idling, events", keys},
}

// options are the options of the command line.
type options struct {
	bin    string
	rounds int
	jobs   int
	hosts  []int
	slots  []int
	scale  float64
}

// suite is a list of experiments and the report to which they write.
type suite struct {
	list         []experiment
	file, charts string
	heading      string
}

//go:embed papers_heading.md
var papersHeading string

var benchmarks = suite{experiments, "bench/results.md", "",
	"# Results\n\nWritten by `make bench`. The machine is shared: look at the ratios, which are of one run.\n"}

func main() {
	status, err := execute()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		status = 1
	}
	os.Exit(status)
}

// execute carries the command line out, and returns the exit status unless there is an error.
func execute() (status int, err error) {
	var o options
	only := flag.String("only", "", "comma-separated experiments; all when empty")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each comparison; the median is quoted")
	flag.IntVar(&o.jobs, "jobs", 10000, "jobs of the experiments throughput and soak")
	hosts := flag.String("hosts", "1,4", "numbers of hosts of the throughput experiment, at most 4 each")
	slots := flag.String("slots", "1,4,16", "numbers of slots in all of the throughput experiment")
	out := flag.String("o", "", "file of the report, whose other sections are kept "+
		"(default bench/results.md with all experiments, none with -only)")
	ofPapers := flag.Bool("papers", false, "the experiments of the papers, and docs/internals/papers.md, instead")
	flag.Float64Var(&o.scale, "scale", 1, "length of the papers' experiments, as a part of theirs")
	flag.StringVar(&o.bin, "bin", "./dcs-tui", "the program to measure")
	withOthers := flag.Bool("compare", false,
		"compare with other programs instead; -o is a page with the markers of the table")
	programs := flag.String("programs", "", "comma-separated programs of the comparison; all when empty")
	python := flag.String("python", ".compare/bin/python", "interpreter that has the Python packages of the comparison")
	numEnded := flag.Int("bigrun", 0, "write a run of `N` ended jobs to the directory that is the argument, instead")
	endOfLinks := flag.String("links-end", "", "play the hosts of the experiment links, with files in `DIR`, instead")
	flag.Parse()
	switch {
	case *endOfLinks != "":
		return 0, playLinks(*endOfLinks)
	case *numEnded > 0:
		return 0, bigRun(flag.Arg(0), *numEnded, 0)
	case os.Getenv(labEnv) == "":
		return inLab()
	}
	if o.scale <= 0 || o.scale > 1 {
		err = fmt.Errorf("-scale %v: a number above 0 and up to 1 is wanted", o.scale)
	} else if o.hosts, err = numbers(*hosts, 4); err == nil {
		o.slots, err = numbers(*slots, 1024)
	}
	switch {
	case err != nil:
	case *withOthers:
		err = compare(o, *python, *only, *programs, *out)
	case *ofPapers:
		err = measurePapers(o, *only, cmp.Or(*out, "docs/internals/papers.md"))
	default:
		if *only == "" {
			*out = cmp.Or(*out, benchmarks.file)
		}
		err = measure(o, &benchmarks, *only, *out)
	}
	return 0, err
}

// numbers parses a list such as 1,4,16.
func numbers(list string, most int) (all []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("%q is not a list of numbers from 1 to %d", list, most)
		}
		all = append(all, n)
	}
	return all, nil
}

// prepare returns a lab whose hosts have the program.
func prepare(o options) (*lab, error) {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	o.bin = bin
	l, err := newLab(o)
	if err != nil {
		return nil, err
	}
	// The first connection to a host uploads the program.
	if _, err := timed(l.dcs(len(l.sshd), 1, l.runDir(),
		l.file("first.txt", strings.Repeat("true\n", len(l.sshd))))); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func measure(o options, set *suite, only, out string) error {
	l, err := prepare(o)
	if err != nil {
		return err
	}
	defer l.close()
	r := &report{suite: set, options: o}
	for _, e := range set.list {
		if !isChosen(e.name, only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "== %s: %s\n", e.name, e.what)
		start := time.Now()
		r.begin(e.name, e.what, o.conditions())
		if err := e.run(l, r); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		fmt.Fprintf(os.Stderr, "   %.0f s\n", time.Since(start).Seconds())
		if out == "" {
			continue
		}
		if err := r.write(out); err != nil {
			return err
		}
	}
	return nil
}
