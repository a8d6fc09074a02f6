package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/hosts/helper"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/link"
	"dcs-tui/jobs"
)

const (
	soakSlots          = 16 // in all, on four hosts
	soakFaultInterval  = 30 * time.Second
	soakSampleInterval = 20 * time.Second
)

// soak runs jobs of one second on the four hosts, with a fault every 30 seconds, and compares what
// dispatcher and helpers use after a twelfth of the jobs with what they use at the end. The
// dispatcher is in this process. No fault of it strikes the last host, whose helper gets old.
func soak(l *lab, r *report) error {
	programs, err := l.hostPrograms()
	if err != nil {
		return err
	}
	ran, err := os.OpenFile(filepath.Join(l.dir, "ran"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer ran.Close()
	config, err := link.LoadSSHConfig(l.sshd[0].ConfigFile)
	if err != nil {
		return err
	}
	inventory, _, err := hosts.Load(l.inventory(len(l.sshd), soakSlots/len(l.sshd)))
	if err != nil {
		return err
	}
	running, err := l.dispatch(l.newRun("soak"), run.Options{
		Inventory: inventory,
		Connector: func(log func(host, line string)) (hosts.Connector, error) {
			return helper.New(helper.Options{
				Opener: link.NewSSH(link.SSHOptions{Config: config}), Log: log, Programs: programs,
			}), nil
		},
		Lines: lines(l.jobs, func(int) string {
			return fmt.Sprintf("echo $DCS_ATTEMPT >>%s; sleep 1", hosts.ShellQuote(ran.Name()))
		}),
	})
	if err != nil {
		return err
	}
	results, ended := acknowledge(running)
	begin := time.Now()
	numFaults, samples := l.strike(ended, results)
	took := time.Since(begin)
	if _, err := running.Close(); err != nil {
		return err
	}
	missing, again, repeated, err := countRuns(ran.Name(), l.jobs)
	if err != nil {
		return err
	}
	r.table("process", "measure", "after a twelfth", "at the end", "ratio")
	if len(samples) == 0 {
		return fmt.Errorf("%d jobs end too soon to be measured", l.jobs)
	}
	early, late := around(samples, int64(l.jobs)/12), around(samples, int64(l.jobs)-soakSlots)
	for i, m := range soakMeasures {
		a, b := early[i], late[i]
		r.row(m.process, m.what, fmt.Sprintf(m.format, a), fmt.Sprintf(m.format, b), fmt.Sprintf("%.2f", b/a))
	}
	var faults []string
	for i, n := range numFaults {
		faults = append(faults, fmt.Sprintf("%d times %s", n, soakFaults[i].name))
	}
	r.say("%d jobs of 1 s on %d slots of four hosts took %.0f minutes. Faults: %s. Each figure is the "+
		"median of five samples, %.0f s apart. The dispatcher is measured after a garbage collection; its heap "+
		"has a row for each job that has ended. The helper is that of a host without faults. Of the jobs, %d did "+
		"not run, and %d ran again, because they were killed with the session that they belonged to. %d attempts "+
		"ran twice.",
		l.jobs, soakSlots, took.Minutes(), strings.Join(faults, ", "), soakSampleInterval.Seconds(), missing, again,
		repeated)
	return nil
}

func (l *lab) hostPrograms() (fs.FS, error) {
	dir := filepath.Join(l.dir, "programs")
	if out, err := exec.Command("scripts/host-programs", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("scripts/host-programs: %w: %s", err, out)
	}
	return os.DirFS(dir), nil
}

// soakFaults are the kinds of faults, which strike a host in turn.
var soakFaults = []struct {
	name   string
	strike func(*hosttest.SSHD)
	end    func(*hosttest.SSHD) // before the next fault; nil: the host recovers by itself
}{
	{"all processes of a host's sessions killed", (*hosttest.SSHD).Drop, nil},
	{"helpers killed", killHelpers, nil},
	{"networks cut", (*hosttest.SSHD).Pause, (*hosttest.SSHD).Resume},
}

func killHelpers(s *hosttest.SSHD) {
	for _, pid := range helpersOf(s) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// helpersOf returns the helpers on a host.
func helpersOf(s *hosttest.SSHD) (pids []int) {
	for _, p := range withArg("__host", []string{"\x00HOME=" + s.Home() + "\x00"}) {
		pids = append(pids, p.PID)
	}
	return pids
}

// soakUse is what dispatcher and helper use, each measure as in soakMeasures.
type soakUse struct {
	ended  int64 // jobs
	values [8]float64
}

var soakMeasures = [len(soakUse{}.values)]struct{ process, what, format string }{
	{"dispatcher", "live heap, MiB", "%.1f"},
	{"dispatcher", "resident, MiB", "%.1f"},
	{"dispatcher", "goroutines", "%.0f"},
	{"dispatcher", "threads", "%.0f"},
	{"dispatcher", "descriptors", "%.0f"},
	{"helper", "resident, MiB", "%.1f"},
	{"helper", "threads", "%.0f"},
	{"helper", "descriptors", "%.0f"},
}

func (l *lab) measureSoak(ended int64) soakUse {
	const mib = 1 << 20
	u := soakUse{ended: ended}
	own := measureSelf()
	number := func(pid int, dir string) float64 {
		list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, dir))
		return float64(len(list))
	}
	copy(u.values[:], []float64{float64(own.heap) / mib, float64(own.rss) / mib, float64(own.goroutines),
		float64(own.threads), number(os.Getpid(), "fd")})
	for _, pid := range helpersOf(l.sshd[len(l.sshd)-1]) {
		p, _ := readProc(pid)
		copy(u.values[5:], []float64{float64(p.rss) / mib, number(pid, "task"), number(pid, "fd")})
	}
	return u
}

// strike strikes the hosts with faults until the run has ended, and takes samples meanwhile. It returns
// the number of faults of each kind.
func (l *lab) strike(ended <-chan struct{}, results *atomic.Int64) (numFaults []int, samples []soakUse) {
	numFaults = make([]int, len(soakFaults))
	sample, fault := time.NewTicker(soakSampleInterval), time.NewTicker(soakFaultInterval)
	defer sample.Stop()
	defer fault.Stop()
	endLast := func() {}
	defer func() { endLast() }()
	for n := 0; ; {
		select {
		case <-ended:
			return numFaults, samples
		case <-sample.C:
			samples = append(samples, l.measureSoak(results.Load()))
		case <-fault.C:
			endLast()
			f, s := soakFaults[n%len(soakFaults)], l.sshd[n/len(soakFaults)%(len(l.sshd)-1)]
			f.strike(s)
			endLast = func() {}
			if f.end != nil {
				endLast = func() { f.end(s) }
			}
			numFaults[n%len(soakFaults)]++
			n++
		}
	}
}

// around returns the medians of the five samples up to the one with n jobs ended.
func around(samples []soakUse, n int64) (values []float64) {
	last := slices.IndexFunc(samples, func(u soakUse) bool { return u.ended >= n })
	if last < 0 {
		last = len(samples) - 1
	}
	some := samples[max(0, last-4) : last+1]
	for i := range soakMeasures {
		var list []float64
		for _, u := range some {
			list = append(list, u.values[i])
		}
		values = append(values, median(list))
	}
	return values
}

// countRuns reads the attempts that have added a line to the file. It counts the jobs from 1 to n
// without any, those with several, and the attempts with several lines.
func countRuns(file string, n int) (missing, again, repeated int, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, 0, err
	}
	attempts, seen := make([]int, n+1), map[jobs.AttemptID]bool{}
	for line := range strings.Lines(string(b)) {
		id, err := jobs.ParseAttemptID(strings.TrimSpace(line))
		if err != nil || id.Job < 1 || int(id.Job) > n {
			return 0, 0, 0, fmt.Errorf("%s: no job has written %q", file, line)
		}
		if seen[id] {
			repeated++
			continue
		}
		seen[id] = true
		attempts[id.Job]++
	}
	for _, count := range attempts[1:] {
		switch {
		case count == 0:
			missing++
		case count > 1:
			again++
		}
	}
	return missing, again, repeated, nil
}
