// Command bench measures dcs-tui on real sshd servers over loopback, each
// figure beside `xargs -P` on the same jobs in the same run, and writes
// bench/results.md. It is for figures, not for passing or failing: the tests
// know no times. See bench/README.md for what each figure means.
//
//	go run ./bench                  everything, three rounds
//	go run ./bench -only gap,idle   some of it
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// experiment is one measurement; it writes its table into the report.
type experiment struct {
	name string
	what string
	run  func(*lab, *report) error
}

var experiments = []experiment{
	{"throughput", "jobs of `sleep 0` a second (P6, K15)", throughput},
	{"gap", "between a job's end and its successor's start in the same slot", gaps},
	{"latency", "from submission to the job's first instruction", latency},
	{"efficiency", "of `sleep 1`, 16 s a slot, over 4 hosts", efficiency},
	{"queue", "the dispatcher with many queued jobs", queued},
	{"replay", "parse, fold and replay of a million jobs", replay},
	{"idle", "100 long jobs on 4 hosts", idle},
	{"observe", "attaching to a run, and what observers cost", observe},
	{"screen", "the screen: keys, idling, bytes to the terminal", screen},
}

func main() {
	only := flag.String("only", "", "comma-separated experiments; all when empty")
	rounds := flag.Int("rounds", 3, "rounds of each comparison; the median is quoted")
	jobs := flag.Int("jobs", 10000, "jobs of the throughput experiment")
	out := flag.String("o", "bench/results.md", "where the report goes")
	bin := flag.String("bin", "./dcs-tui", "the program to measure")
	flag.Parse()
	if err := run(*only, *rounds, *jobs, *out, *bin); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(only string, rounds, jobs int, out, bin string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	l, err := newLab(bin, rounds, jobs)
	if err != nil {
		return err
	}
	defer l.close()
	r := newReport()
	for _, e := range experiments {
		if only != "" && !strings.Contains(","+only+",", ","+e.name+",") {
			continue
		}
		fmt.Fprintf(os.Stderr, "== %s: %s\n", e.name, e.what)
		start := time.Now()
		r.section(e.name, e.what)
		if err := e.run(l, r); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		fmt.Fprintf(os.Stderr, "   %.0f s\n", time.Since(start).Seconds())
	}
	return r.write(out)
}
