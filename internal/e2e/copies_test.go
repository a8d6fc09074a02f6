//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestCopiesOfUnfinishedJobsRunElsewhere checks --speculate: jobs that a host does not finish run
// on another host too, the first success counts, and the run ends without waiting for the other
// attempts.
func TestCopiesOfUnfinishedJobsRunElsewhere(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	const jobs = 12
	// No job ends before ws2 has one, and no job on ws2 ends.
	file := l.writeTaggedJobs(jobs, fmt.Sprintf("if [ $DCS_HOST = ws2 ]; then touch %[1]s; while [ ! -e %[2]s ]; "+
		"do sleep 0.1; done; fi; while [ ! -e %[1]s ]; do sleep 0.1; done",
		l.path("ws2"), l.path("gate")))
	e := l.mustRun(l.runArgs(2, "--json", "--speculate", file)...)
	if n := strings.Count(e.stdout, `"state":"succeeded"`); n != jobs || strings.Contains(e.stdout, `"host":"ws2"`) {
		t.Errorf("%d results of %d, and none may be of ws2:\n%s", n, jobs, e.stdout)
	}
	if !strings.Contains(e.stderr, "runs on ws1 too") {
		t.Errorf("nothing is said of copies:\n%s", e.stderr)
	}
	l.writeFile("gate", "") // a copy that still runs would now end, too, with a second success
	if e = l.run("results", l.path("run"), "--json"); strings.Count(e.stdout, `"failures":0`) != jobs &&
		strings.Contains(e.stdout, `"failures":1`) {
		t.Errorf("the losers are charged:\n%s", e.stdout)
	}
}

// TestAttemptsStartAtOnceOnOneHost checks --copy-at submit and --copy-on any: if enough slots are
// free, a job starts with all its attempts, here on a single host with heartbeats every second, and
// the first success counts.
func TestAttemptsStartAtOnceOnOneHost(t *testing.T) {
	t.Parallel()
	l := newLocalLab(t, 4, "heartbeat = \"1s\"\nsuspect_after = \"30s\"\n")
	l.writeTaggedJobs(1, fmt.Sprintf("mkdir -p %[1]s; touch %[1]s/$DCS_ATTEMPT; until [ $(ls %[1]s | wc -l) = 3 ]; "+
		"do sleep 0.1; done",
		l.path("started")))
	e := l.mustRun(append(l.tinyArgs(), "--speculate", "--copies", "3", "--copy-at", "submit", "--copy-on", "any")...)
	if strings.Count(e.stdout, `"state":"succeeded"`) != 1 ||
		strings.Count(e.stderr, "runs on here too: more slots are free than jobs wait") != 2 {
		t.Errorf("want one success, and two copies at once:\n%s%s", e.stdout, e.stderr)
	}
	e = l.run(append(l.tinyArgs(), "--speculate", "--copy-at", "submit", "--delay", "1s")...)
	if e.code == 0 || !strings.Contains(e.stderr, "--copy-at submit") {
		t.Errorf("--delay with --copy-at submit: exit code %d, %s", e.code, e.stderr)
	}
}
