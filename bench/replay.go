package main

import (
	"os/exec"
	"strings"
)

// replay runs the Go benchmarks of the parser and the journal and keeps their lines.
func replay(_ *lab, r *report) error {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "Million", "-benchtime", "1x",
		"./jobs", "./jobs/journal", "./dispatch/sched").CombinedOutput()
	if err != nil {
		return err
	}
	r.say("```")
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Benchmark") {
			r.say("%s", strings.TrimRight(line, "\n"))
		}
	}
	r.say("```")
	return nil
}
