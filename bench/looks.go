package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/link"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
	"dcs-tui/jobs/results"
)

// looks measures the helpers of 50 runs on this machine, each with one job that waits. The dispatchers
// are in this process.
func looks(l *lab, r *report) error {
	const numRuns, warmUp, span = 50, 20 * time.Second, time.Minute
	programs, err := l.hostPrograms()
	if err != nil {
		return err
	}
	connector := helper.New(helper.Options{Opener: link.LocalOpener{}, Programs: programs})
	gate := filepath.Join(l.dir, "looks.fifo")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		return err
	}
	var ended sync.WaitGroup
	defer ended.Wait()
	defer openGate(gate)
	for i := range numRuns {
		running, err := l.startLook(i, gate, connector)
		if err != nil {
			return err
		}
		ended.Go(func() {
			running.Consume(func(*results.Result) {})
			running.Close()
		})
	}
	if !polltest.Within(2*time.Minute, func() bool { return len(l.withArg("__slot")) == numRuns }) {
		return fmt.Errorf("%d of %d jobs run", len(l.withArg("__slot")), numRuns)
	}
	time.Sleep(warmUp)
	kinds := []string{"helper", "supervisor"}
	processes := [][]progtest.Process{l.withArg("__host"), l.withArg("__slot")}
	before := [][]time.Duration{cpuOf(processes[0]), cpuOf(processes[1])}
	machine := busyTime()
	time.Sleep(span)
	after := [][]time.Duration{cpuOf(processes[0]), cpuOf(processes[1])}
	busy := busyTime() - machine
	r.table("process", "number", "goal, each", "CPU a second, each: mean", "median", "most")
	for k, kind := range kinds {
		used := after[k]
		var sum time.Duration
		for i := range used {
			used[i] -= before[k][i]
			sum += used[i]
		}
		slices.Sort(used)
		perSecond := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", 1e3*d.Seconds()/span.Seconds()) }
		goal := "1 ms"
		if k > 0 {
			goal = ""
		}
		r.row(kind, fmt.Sprint(len(used)), goal, perSecond(sum/time.Duration(max(1, len(used)))),
			perSecond(used[len(used)/2]), perSecond(used[len(used)-1]))
	}
	r.say("All processes of the machine used %.1f cores. Helpers list processes only while half a core is busy.",
		busy.Seconds()/span.Seconds())
	return nil
}

// startLook starts a run with one job, which waits until the gate is opened.
func (l *lab) startLook(i int, gate string, connector hosts.Connector) (*run.Run, error) {
	h := &hosts.Host{Name: "here", Link: "local", Slots: hosts.SlotRule{Fixed: 64}, Yield: true, Weight: 1, GPUs: -1,
		WorkDir: filepath.Join(l.dir, "looks"), ShareDir: filepath.Join(l.dir, "looks-share")}
	return l.dispatch(l.newRun(fmt.Sprintf("look%d", i)), run.Options{
		Inventory: &hosts.Inventory{Hosts: []*hosts.Host{h}}, Policy: sched.Config{RunShare: 1},
		Connector: fixed(connector),
		Lines:     lines(1, func(int) string { return "read x <" + hosts.ShellQuote(gate) + " || true" }),
	})
}

// openGate lets all jobs end that wait at the gate, also those that still start.
func openGate(gate string) {
	f, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		return
	}
	fmt.Fprint(f, "\n\n")
	f.Close()
}

// cpuOf returns the CPU times of processes.
func cpuOf(processes []progtest.Process) []time.Duration {
	list := make([]time.Duration, len(processes))
	for i, p := range processes {
		use, _ := readProc(p.PID)
		list[i] = use.cpu
	}
	return list
}

// busyTime returns the time for which the cores of the machine have been busy.
func busyTime() (busy time.Duration) {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	for i, w := range strings.Fields(line) {
		n, _ := strconv.ParseInt(w, 10, 64)
		if i != 4 && i != 5 && i < 9 { // idle, iowait; guest times are counted twice
			busy += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return busy
}
