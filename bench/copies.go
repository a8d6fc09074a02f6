package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"dcs-tui/internal/progtest"
)

// copies measures the time that --speculate saves in two cases: a host that dies, and a host that
// takes ten times as long for each job. There are four hosts with two slots each.
func copies(l *lab, r *report) error {
	modes := []struct {
		name  string
		flags []string
	}{{"without copies", nil}, {"--speculate", []string{"--speculate"}}}
	r.table("80 jobs of 1 s, one host dies after 3 s", "median", "all")
	for _, c := range modes {
		var took []float64
		for range min(l.rounds, 3) {
			d, err := l.dying(c.flags)
			if err != nil {
				return err
			}
			took = append(took, d.Seconds())
		}
		r.row(c.name, fmt.Sprintf("%.1f s", median(took)), all("%.1f s", took))
	}
	r.table("200 jobs of 2 s, 20 s on one host", "time")
	slow := strings.Repeat("case $DCS_HOST in ws4) sleep 20;; *) sleep 2;; esac\n", 200)
	for _, c := range modes {
		run, err := timed(l.dcs(4, 2, l.runDir(), append(c.flags, l.file("slow.txt", slow))...))
		if err != nil {
			return err
		}
		r.row(c.name, fmt.Sprintf("%.1f s", run.wall.Seconds()))
	}
	// In T seconds, six slots complete T/2 jobs each, and two slots complete T/20 each.
	r.row("ideal", fmt.Sprintf("%.1f s", 200/(6./2+2./20)))
	return nil
}

// dying runs 80 jobs of one second and kills everything on one host after three seconds.
func (l *lab) dying(flags []string) (time.Duration, error) {
	cmd := l.dcs(4, 2, l.runDir(), append(flags, l.file("second.txt", strings.Repeat("sleep 1\n", 80)))...)
	done := make(chan bool)
	time.AfterFunc(3*time.Second, func() { l.killHost(3); close(done) })
	c, err := timed(cmd)
	<-done
	return c.wall, errors.Join(err, l.sshd[3].Start())
}

// killHost kills the sshd of a host and all processes below it.
func (l *lab) killHost(i int) {
	s := l.sshd[i]
	s.Stop()
	mark := fmt.Sprintf("\x00DCS_HOST=ws%d\x00", i+1)
	for range 3 { // a supervisor may have started a process in the meantime
		for _, p := range progtest.FindProcesses(func(p progtest.Process) bool {
			return strings.Contains(p.Args, s.Dir) || isMarked(p, []string{mark})
		}) {
			syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}
