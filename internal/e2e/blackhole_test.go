package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestBlackHole checks that a host on which every job fails immediately, while jobs succeed
// elsewhere, is put on probation. Its jobs run elsewhere and keep their tries (B2).
func TestBlackHole(t *testing.T) {
	l := newLab(t, 3)
	const n = 120
	file := l.tagged(n, `[ "$DCS_HOST" != ws2 ] || exit 7; sleep 0.2`)
	p := l.do(l.args(2, "--tries", "2", "--json", file)...)
	if p.code != 0 {
		t.Fatalf("exit %d\n%s", p.code, p.err)
	}
	there := 0
	for _, x := range jsonLines(t, p.out) {
		if x.State != "succeeded" || x.Host == "ws2" {
			t.Errorf("%+v", x)
		}
	}
	for _, line := range strings.Split(p.err, "\n") {
		if strings.Contains(line, "failed (exit 7)") {
			there++
		}
	}
	if !strings.Contains(p.err, "is on probation: ") || there > n/4 {
		t.Errorf("%d jobs failed on the black hole\n%s", there, p.err)
	}
	l.ranOnce(n)
}

// TestABadJobIsNoBlackHole checks that a job that fails on three hosts counts as the cause, and
// that the hosts leave probation (B2).
func TestABadJobIsNoBlackHole(t *testing.T) {
	l := newLab(t, 3)
	var b strings.Builder
	for range 30 {
		fmt.Fprintln(&b, "sleep 0.1")
	}
	fmt.Fprintln(&b, "exit 9")
	p := l.do(l.args(2, "--tries", "3", "--json", l.file("jobs.txt", b.String()))...)
	if p.code != 1 || strings.Contains(p.err, "is on probation: ") {
		t.Errorf("exit %d\n%s", p.code, p.err)
	}
	failed := 0
	for _, x := range jsonLines(t, p.out) {
		if x.State == "failed" {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d jobs failed", failed)
	}
}
