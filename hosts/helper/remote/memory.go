//go:build linux

package remote

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"dcs-tui/jobs"
)

// A job that asks for memory (mem=) is ended when its processes together use more. Where
// the user's systemd offers it, a scope with a control group of its own limits the job,
// so that it cannot exceed the limit for an instant. Otherwise the supervisor sums what
// the processes use, at intervals.

const (
	memoryEvery = 500 * time.Millisecond
	// memoryCost bounds the CPU time of the sums: the next one waits for so many times
	// as long as the last one took.
	memoryCost = 200
)

// checkMemory ends c if it uses more memory than its limit, and otherwise looks again
// later, until c is over.
func (w *watch) checkMemory(c *current) {
	w.mu.Lock()
	over := w.cur != c || c.ending != nil
	w.mu.Unlock()
	if over {
		return
	}
	began := uptime()
	if used := w.memoryOf(c); used > c.limit {
		w.mu.Lock()
		c.used = used
		w.mu.Unlock()
		w.stop(c, endMemory)
		return
	}
	time.AfterFunc(max(memoryEvery, memoryCost*(uptime()-began)), func() { w.checkMemory(c) })
}

// memoryOf returns what the processes of c use. The sum of their resident sizes is cheap
// but counts shared pages several times, so it serves only while it is below the limit.
func (w *watch) memoryOf(c *current) (used int64) {
	t := scan(nil)
	for pid, start := range c.left {
		if t[pid].start == start { // an earlier job left it
			delete(t, pid)
		}
	}
	pids := t.under(w.slot.by.pid)
	for _, pid := range pids {
		used += t[pid].rss
	}
	if used <= c.limit {
		return used
	}
	used = 0
	hungProcs.each(pids, func(pid int) func() {
		n := proportional(pid)
		return func() { used += n }
	})
	return used
}

// proportional returns the memory of a process, with its part of what it shares (Pss).
// If the kernel does not say it, what the process shares is left out.
func proportional(pid int) int64 {
	if _, rest, ok := bytes.Cut(procFile(pid, "smaps_rollup"), []byte("\nPss:")); ok {
		return int64(number(bytes.TrimLeft(rest, " "))) << 10
	}
	if w := bytes.Fields(procFile(pid, "statm")); len(w) > 2 {
		return max(0, int64(number(w[1]))-int64(number(w[2]))) * int64(pageSize)
	}
	return 0
}

// memoryEnd notes in an outcome that the job was ended for its memory.
func (s *slot) memoryEnd(limit int64, why endCause, used int64, o *jobs.Outcome) {
	switch {
	case why == endMemory:
		o.Memory, o.MaxRSSBytes = jobs.MemoryLimit, max(o.MaxRSSBytes, used)
	case why != endNone || o.Signal != "SIGKILL" && o.Exit != 128+9 || !s.oom.killed():
	case limit > 0 && s.scopes.offered():
		o.Memory, o.MaxRSSBytes = jobs.MemoryLimit, max(o.MaxRSSBytes, limit)
	default:
		o.Memory = jobs.OutOfMemory
	}
}

// scopes starts jobs in scopes of the user's systemd.
type scopes struct {
	asked bool
	path  string // of systemd-run; "": scopes are not offered
}

// scopePatience is how long the user's systemd may take to answer.
const scopePatience = 10 * time.Second

// command returns the command before a job's shell that limits its memory; nil: scopes
// are not offered. systemd-run replaces itself by the shell, so the process stays our
// child.
func (s *scopes) command(limit int64) []string {
	if !s.asked {
		s.asked = true
		s.path = findScopes()
	}
	if s.path == "" {
		return nil
	}
	return append([]string{s.path}, scopeArgs(limit)...)
}

func (s *scopes) offered() bool { return s.path != "" }

// scopeArgs are the arguments of systemd-run. The kernel ends all processes of the scope
// when one of them exceeds the limit; swapping would only delay that.
func scopeArgs(limit int64) []string {
	return []string{"--user", "--scope", "--quiet", "--collect", "-p", "MemoryMax=" + strconv.FormatInt(limit, 10),
		"-p", "MemorySwapMax=0", "-p", "OOMPolicy=kill", "--"}
}

// findScopes returns the path of systemd-run if scopes can be used. Without lingering
// the user's systemd ends, with all scopes, when the user's last session does; jobs must
// outlive that. The limit is read back, because without cgroup v2 it has no effect.
func findScopes() string {
	path, err := exec.LookPath("systemd-run")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopePatience)
	defer cancel()
	linger, err := exec.CommandContext(ctx, "loginctl", "show-user", "--property=Linger", "--value", strconv.Itoa(os.Getuid())).Output()
	if err != nil || string(bytes.TrimSpace(linger)) != "yes" {
		return ""
	}
	const limit = 64 << 20
	show := `IFS=: read -r _ _ group < /proc/self/cgroup && cat "/sys/fs/cgroup$group/memory.max"`
	got, err := exec.CommandContext(ctx, path, append(scopeArgs(limit), "/bin/sh", "-c", show)...).Output()
	if err != nil || string(bytes.TrimSpace(got)) != fmt.Sprint(limit) {
		return ""
	}
	return path
}
