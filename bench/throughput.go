package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"dcs-tui/internal/polltest"
)

// throughput runs jobs that do nothing, over ssh, with logs, claims, sentinels, and a durable
// journal. Beside each run it runs the same lines with a local xargs, and with an xargs at the far
// end of one ssh. The remote xargs keeps nothing, so it shows the limit.
func throughput(l *lab, r *report) error {
	file := l.file("zero.txt", strings.Repeat("sleep 0\n", l.jobs))
	n := float64(l.jobs)
	r.table("hosts", "slots", "xargs -P jobs/s", "dcs-tui jobs/s", "ratio", "all ratios", "remote xargs, ratio", "all",
		"CPU a job: xargs", "dcs-tui in all", "dispatcher", "all")
	for _, numHosts := range l.hosts {
		for _, slots := range l.slots {
			var ours, theirs, ratio, far, cpuTheirs, cpuAll, cpu []float64
			for range l.rounds {
				before := l.hostCPU()
				a, err := timed(l.spread(numHosts, slots, l.runDir(), file))
				if err != nil {
					return err
				}
				hosts := l.hostCPU() - before
				b, err := timed(xargs(slots, file, "sh"))
				if err != nil {
					return err
				}
				c, err := timed(l.remoteXargs(slots, file))
				if err != nil {
					return err
				}
				ours = append(ours, n/a.wall.Seconds())
				theirs = append(theirs, n/b.wall.Seconds())
				ratio = append(ratio, b.wall.Seconds()/a.wall.Seconds())
				far = append(far, b.wall.Seconds()/c.wall.Seconds())
				cpuTheirs = append(cpuTheirs, b.cpu.Seconds()*1e3/n)
				cpuAll = append(cpuAll, (a.cpu+hosts).Seconds()*1e3/n)
				cpu = append(cpu, a.cpu.Seconds()*1e3/n)
			}
			allRatios, allFar, allCPU := all("%.2f", ratio), all("%.2f", far), all("%.2f", cpu)
			r.row(fmt.Sprint(min(numHosts, slots)), fmt.Sprint(slots), fmt.Sprintf("%.0f", median(theirs)),
				fmt.Sprintf("%.0f", median(ours)),
				fmt.Sprintf("%.2f", median(ratio)), allRatios, fmt.Sprintf("%.2f", median(far)), allFar,
				fmt.Sprintf("%.2f ms", median(cpuTheirs)), fmt.Sprintf("%.2f ms",
					median(cpuAll)), fmt.Sprintf("%.2f ms", median(cpu)), allCPU)
		}
	}
	r.say("%d jobs a run, on %s. Each repetition is a run of dcs-tui, of xargs -P, and of one ssh into xargs -P; "+
		"ratios are of runs that follow each other. "+
		"Connecting and leaving are inside. CPU in all is that of the dispatcher, sshd, helpers, "+
		"supervisors, and jobs.",
		l.jobs, l.fileSystem)
	return nil
}

// remoteXargs prepares `xargs -P slots` at the far end of one ssh. The lines are sent over the ssh.
func (l *lab) remoteXargs(slots int, file string) *exec.Cmd {
	cmd := l.ssh(fmt.Sprintf(`exec xargs -d '\n' -P %d -I{} sh -c {}`, slots))
	in, err := os.Open(file)
	if err != nil {
		panic(err) // a benchmark without its files would measure nothing
	}
	cmd.Stdin = in
	return cmd
}

// hostCPU returns the CPU time that all hosts have used since they were started. It waits until
// nobody is logged in, because the time of a process counts only after it has ended.
func (l *lab) hostCPU() (sum time.Duration) {
	for _, s := range l.daemons {
		polltest.Within(3*time.Second, func() bool { return len(children(s)) == 0 })
		if p, err := readProc(s); err == nil {
			sum += p.cpu + p.childCPU
		}
	}
	return sum
}
