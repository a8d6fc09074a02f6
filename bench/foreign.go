package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// paperForeign runs jobs on three hosts with four slots each. On one of them, two foreign processes
// use one core each. That host yields two slots, so it does about half as much work as each of the
// others.
//
// The hosts share a machine and therefore /proc/stat. So each host has a mount namespace in which
// /proc/stat is a file with the time for which the foreign processes of that host were busy. The
// time for which a process waits for a core counts too, because on a host with four cores it would
// have a core to itself.
func paperForeign(l *lab, r *report) error {
	const each, lasts, burners = 500 * time.Millisecond, 40 * time.Second, 2
	var burning []*exec.Cmd
	for range burners {
		cmd := exec.Command("nice", "-n", "19", "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { cmd.Process.Kill(); cmd.Wait() }()
		burning = append(burning, cmd)
	}
	busy := l.file("stat", statView(burning))
	var inventory strings.Builder
	for i, view := range []string{busy, l.file("stat", statView(nil)), l.file("stat", statView(nil))} {
		dir := filepath.Join(l.dir, fmt.Sprint("foreign", i+1))
		fmt.Fprintf(&inventory, "[[host]]\nname = \"host%d\"\nlink = ['unshare', '--map-root-user', '--mount', "+
			"'sh', '-c', 'mount --bind %s /proc/stat && exec \"$@\"', 'sh']\n"+
			"slots = 4\nnice = 0\nwork_dir = %q\nshare_dir = %q\n\n", i+1, view, dir, filepath.Join(dir, "share"))
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
	run := l.runDir()
	n := int(lasts/each) * (3*4 - burners)
	cmd := l.command("run", "--no-tui", "--hosts", l.file("foreign.toml", inventory.String()), "--run-dir", run,
		l.file("sleeps.txt", sleeps(n, each.Seconds())))
	if _, err := timed(cmd); err != nil {
		return err
	}
	log, err := os.ReadFile(filepath.Join(run, "joblog.tsv"))
	if err != nil {
		return err
	}
	var did [3]float64
	for i := range did {
		did[i] = float64(strings.Count(string(log), fmt.Sprintf("\thost%d\t", i+1)))
	}
	r.table("host", "slots", "foreign processes", "jobs", "of the others' work", "the paper")
	r.row("host1", "4", fmt.Sprint(burners), fmt.Sprint(did[0]), fmt.Sprintf("%.2f", did[0]/max(1, (did[1]+did[2])/2)),
		"about one half")
	r.row("host2", "4", "0", fmt.Sprint(did[1]), "", "")
	r.row("host3", "4", "0", fmt.Sprint(did[2]), "", "")
	r.say("%d jobs of %v, not scaled. The first 3 s count, too, in which no host has measured yet and "+
		"host1 has four jobs.", n, each)
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
