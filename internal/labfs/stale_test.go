//go:build linux

package labfs_test

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/internal/labfs"
)

// TestStaleCachesEverywhere checks that caches that stay stale for ten minutes delay nothing and
// lose nothing. Another machine, which has looked up every name before it existed, takes the run
// over, adopts the running jobs, and counts the ended ones (X1).
func TestStaleCachesEverywhere(t *testing.T) {
	l := newLab(t, 7, labfs.Options{Stale: long, WriteBack: true})
	const n = 300
	hosts := l.inventory(4, 4, "")
	file := l.jobs(n, "[ %d -le 200 ] || "+l.gate("gate"))
	// Machines 5 and 6 and the user's machine look for the run before it exists.
	for _, m := range []int{0, 5, 6} {
		l.on(m, "/bin/sh", "-c", "test -e run; test -e run/owner").wait()
	}
	p := l.dcs(0, "run", "--no-tui", "--json", "--hosts", hosts, "--run-dir", l.run(), file)
	l.until("the jobs that need no gate have run", func() bool { return l.ran() >= 200 }, p.err.String)
	// The machine has looked up names that do not exist yet, in a directory that it has listed
	// before.
	var poll strings.Builder
	poll.WriteString("ls . run run/attempts run/journal >/dev/null\n")
	for id := 1; id <= n; id++ {
		fmt.Fprintf(&poll, "test -e run/attempts/000/%d.1.status\n", id)
	}
	// It also reads unfinished status files.
	poll.WriteString("cat run/attempts/000/*.status > /dev/null\n")
	poll.WriteString("test -e run/journal/000002.jsonl; test -e run/STOP; true\n")
	if e := l.on(5, "/bin/sh", "-c", poll.String()).wait(); e.code != 0 {
		t.Fatal(e.err)
	}
	l.until("jobs wait at the gate", func() bool { return l.ran() >= 210 }, p.err.String)
	if e := l.dcs(6, "status", l.run()).wait(); e.code != 0 {
		t.Errorf("status where the run was looked for before: exit %d\n%s", e.code, e.err)
	}
	if e := l.dcs(6, "status", "--json", "run").wait(); e.code != 0 {
		t.Errorf("status of the relative name: exit %d\n%s", e.code, e.err)
	}
	p.cmd.Process.Kill()
	first := p.wait()
	l.open("gate")
	second := l.dcs(5, "resume", "--no-tui", "--json", "--hosts", hosts, l.run()).wait()
	if second.code != 0 {
		t.Fatalf("resume: exit %d\n%s", second.code, second.err)
	}
	l.counted(n, "succeeded", first, second)
	if got := l.ranOnce(n); got != n {
		t.Errorf("%d attempts for %d jobs: some were not adopted", got, n)
	}
}
