package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// The experiment foreign runs jobs on three hosts with four slots each. On one of them, two foreign
// processes use one core each. If that host yields, it gives up two slots and does about half as much
// work as each of the others.
//
// The hosts share a machine and therefore /proc/stat. So each host has a mount namespace in which
// /proc/stat is a file with the time for which the foreign processes of that host were busy. The
// time for which a process waits for a core counts too, because on a host with four cores it would
// have a core to itself.
const (
	foreignEach  = 500 * time.Millisecond
	foreignSlots = 4
	foreignHosts = 3
	burners      = 2
	foreignJobs  = 80 * (foreignHosts*foreignSlots - burners)
)

func foreignTrials(l *lab) ([]trial, error) {
	return []trial{
		{"without balancing", ours, func() (values, error) { return l.foreign(false) }},
		{"with balancing", ours, func() (values, error) { return l.foreign(true) }},
	}, nil
}

// foreign counts the jobs of each host and of each slot.
func (l *lab) foreign(balanced bool) (values, error) {
	var burning []*exec.Cmd
	for range burners {
		cmd := exec.Command("nice", "-n", "19", "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		defer func() { cmd.Process.Kill(); cmd.Wait() }()
		burning = append(burning, cmd)
	}
	busy := l.file("stat", statView(burning))
	var inventory strings.Builder
	for i, view := range []string{busy, l.file("stat", statView(nil)), l.file("stat", statView(nil))} {
		dir := filepath.Join(l.dir, fmt.Sprintf("foreign%d-%d", l.serial, i+1))
		fmt.Fprintf(&inventory, "[[host]]\nname = \"host%d\"\nlink = ['unshare', '--map-root-user', '--mount', "+
			"'sh', '-c', 'mount --bind %s /proc/stat && exec \"$@\"', 'sh']\n"+
			"slots = %d\nnice = 0\nyield = %v\nwork_dir = %q\nshare_dir = %q\n\n", i+1, view, foreignSlots, balanced,
			dir, filepath.Join(dir, "share"))
	}
	stop := make(chan bool)
	defer close(stop)
	go func() {
		for tick := time.Tick(100 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick:
				if f, err := os.OpenFile(busy, os.O_WRONLY, 0); err == nil {
					f.WriteString(statView(burning)) // in place, because the file is mounted
					f.Close()
				}
			}
		}
	}()
	ran := l.file("ran", "")
	job := fmt.Sprintf("echo $DCS_HOST $DCS_SLOT >>%s; sleep %v\n", ran, foreignEach.Seconds())
	cmd := l.command("run", "--no-tui", "--hosts", l.file("foreign.toml", inventory.String()), "--run-dir", l.runDir(),
		l.file("sleeps.txt", strings.Repeat(job, foreignJobs)))
	if _, err := timed(cmd); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(ran)
	v := values{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 {
			v[f[0]]++
			v[f[0]+"/"+f[1]]++
		}
	}
	return v, err
}

func showForeign(r *report, s *samples) error {
	r.table("balancing", "host", "foreign processes", "jobs", "jobs of each slot", "of the others' work", "the paper")
	for _, c := range []struct{ of, said string }{
		{"without balancing", "slightly less than the others"}, {"with balancing", "about one half"},
	} {
		jobs := func(i int) spread { return s.of(c.of, ours, fmt.Sprint("host", i), plain) }
		for i := 1; i <= foreignHosts; i++ {
			foreign, share, said := "0", "", ""
			if i == 1 {
				foreign, said = fmt.Sprint(burners), c.said
				share = fmt.Sprintf("%.2f", 2*jobs(1).mean/max(1, jobs(2).mean+jobs(3).mean))
			}
			var slots []string
			for k := 1; k <= foreignSlots; k++ {
				slots = append(slots, fmt.Sprintf("%.0f", s.of(c.of, ours, fmt.Sprintf("host%d/%d", i, k), plain).mean))
			}
			r.row(c.of, fmt.Sprint("host", i), foreign, jobs(i).text("%.0f"), strings.Join(slots, ", "), share, said)
		}
	}
	r.say("%d jobs of %v, whatever the scale: they sleep, because one machine with %d cores plays the three hosts, so "+
		"without balancing nothing slows the jobs of host1 down. The first 3 s count, too, in which no host has "+
		"measured yet and host1 has four jobs.", foreignJobs, foreignEach, runtime.NumCPU())
	return nil
}

// statView returns the content of /proc/stat on a host with these processes. Its length is
// constant.
func statView(list []*exec.Cmd) string {
	var busy time.Duration
	for _, cmd := range list {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", cmd.Process.Pid))
		for i, word := range strings.Fields(string(b)) { // time on a core, time waiting for one, number of turns
			if n, err := strconv.ParseInt(word, 10, 64); err == nil && i < 2 {
				busy += time.Duration(n)
			}
		}
	}
	return fmt.Sprintf("cpu  %020d 0 0 0 0 0 0 0 0 0\n", busy/(10*time.Millisecond))
}
