package main

import (
	"os/exec"
	"strings"
)

// replay runs the Go benchmarks of the parser and the journal and copies their output lines to the
// report.
func replay(_ *lab, r *report) error {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "Million|Parse$", "-benchtime", "1x",
		"./jobs", "./jobs/journal", "./dispatch/sched").CombinedOutput()
	if err != nil {
		return err
	}
	var figures []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Benchmark") {
			figures = append(figures, strings.TrimSpace(line))
		}
	}
	r.say("```\n%s\n```", strings.Join(figures, "\n"))
	return nil
}
