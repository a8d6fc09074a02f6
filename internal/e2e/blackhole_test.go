//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// TestHostThatFailsEveryJobIsOnProbation checks that a host on which every job fails, while jobs
// succeed elsewhere, is put on probation. Its jobs run elsewhere and keep their tries (B2).
func TestHostThatFailsEveryJobIsOnProbation(t *testing.T) {
	polltest.Long(t)
	l := newLab(t, 3)
	const n = 120
	// Jobs fail on ws2 only after jobs have succeeded on the other hosts. Before that, their failures
	// would use up tries. Most other jobs wait, too, so that ws2 does not get too few.
	file := l.writeTaggedJobs(
		n, fmt.Sprintf(`cd %s; echo >> up-$DCS_HOST; if [ "$DCS_HOST" = ws2 ] || [ $(wc -l < up-$DCS_HOST) -gt 10 `+
			`]; then until [ -e gate ]; do sleep 0.05; done; fi; [ "$DCS_HOST" != ws2 ] || exit 7; sleep 0.2`, l.dir),
	)
	run := l.start(l.runArgs(2, "--tries", "2", "--json", file)...)
	l.until("jobs succeed on the other hosts", func() bool {
		out := run.stdout.String()
		return strings.Contains(out, `"host":"ws1"`) && strings.Contains(out, `"host":"ws3"`)
	})
	l.writeFile("gate", "")
	p := run.mustSucceed()
	for _, x := range l.completeResults(p.stdout) {
		if x.State != "succeeded" || x.Host == "ws2" {
			t.Errorf("got %+v, want a success on another host than ws2", x)
		}
	}
	if there := strings.Count(p.stderr, "failed (exit 7)"); !strings.Contains(p.stderr, "is on probation: ") ||
		there > n/4 {
		t.Errorf("%d jobs failed on the black hole\n%s", there, p.stderr)
	}
	l.checkAttemptsRanOnce(n)
}

// TestABadJobIsNoBlackHole checks that a job that fails on three hosts counts as the cause, and
// that the hosts leave probation (B2).
func TestABadJobIsNoBlackHole(t *testing.T) {
	l := newLab(t, 3)
	p := l.run(l.runArgs(2, "--tries", "3", "--json",
		l.writeFile("jobs.txt", strings.Repeat("sleep 0.1\n", 30)+"exit 9\n"))...)
	if p.code != 1 || strings.Contains(p.stderr, "is on probation: ") {
		t.Errorf("exit %d\n%s", p.code, p.stderr)
	}
	failed := 0
	for _, x := range l.completeResults(p.stdout) {
		if x.State == "failed" {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d jobs failed", failed)
	}
}
