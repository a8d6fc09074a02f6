package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/hosts/hosttest"
)

// tagged writes n jobs that each append their attempt id to a file of their own. The files show
// what ran, and how often, independently of the program's records.
func (l *lab) tagged(n int, rest string) string {
	if err := os.MkdirAll(l.path("ran"), 0o700); err != nil {
		l.t.Fatal(err)
	}
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID; %s\n", l.path("ran"), rest)
	}
	return l.file("jobs.txt", b.String())
}

// ranOnce checks that each job ran, and that each attempt id ran once.
func (l *lab) ranOnce(n int) {
	l.t.Helper()
	for id := 1; id <= n; id++ {
		b, err := os.ReadFile(l.path(fmt.Sprintf("ran/%d", id)))
		if err != nil {
			l.t.Errorf("job %d never ran", id)
			continue
		}
		seen := map[string]bool{}
		for line := range strings.Lines(string(b)) {
			if seen[line] {
				l.t.Errorf("attempt %s ran twice", strings.TrimSpace(line))
			}
			seen[line] = true
		}
	}
}

type line struct {
	Job   int
	State string
	Host  string
	Seq   int
}

func jsonLines(t *testing.T, out string) []line {
	t.Helper()
	var ls []line
	for text := range strings.Lines(out) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		ls = append(ls, l)
	}
	return ls
}

// TestThousandJobsOnFourHosts runs 1,000 real jobs over ssh on four hosts (P1, P2, B3, promises 1,
// 2, 4).
func TestThousandJobsOnFourHosts(t *testing.T) {
	l := newLab(t, 4)
	file := l.tagged(1000, fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", l.path("gate")))
	run := l.start(l.args(4, "--json", file)...)
	l.until("four jobs running on each host", func() bool { return l.count("ran/*") >= 16 })
	l.file("gate", "")
	p := run.wait()
	if p.code != 0 {
		t.Fatalf("exit %d\n%s", p.code, p.err)
	}
	ls := jsonLines(t, p.out)
	if len(ls) != 1000 {
		t.Errorf("%d results", len(ls))
	}
	hosts := map[string]int{}
	for i, x := range ls {
		if x.State != "succeeded" || x.Seq != i+1 {
			t.Errorf("result %d: %+v", i, x)
		}
		hosts[x.Host]++
	}
	if len(hosts) != 4 {
		t.Errorf("hosts used: %v", hosts)
	}
	l.ranOnce(1000)
	for i := range l.sshd {
		if n := strings.Count(l.read(l.sshd[i].LogFile()), "Accepted publickey"); n > 1 {
			t.Errorf("host %d: %d connections for one run", i+1, n)
		}
	}
}

func (l *lab) read(path string) string {
	l.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(b)
}

// TestSixtyFourSlotsOnOneHost checks that 64 slots on one sshd with its default limits (10 sessions
// per connection, MaxStartups 10:30:100) lose no job.
func TestSixtyFourSlotsOnOneHost(t *testing.T) {
	l := newLab(t, 1)
	p := l.do(l.args(64, l.tagged(256, "true"))...)
	if p.code != 0 {
		t.Fatalf("exit %d\n%s", p.code, p.err)
	}
	l.ranOnce(256)
}

// TestBadHostsAmongGoodOnes checks that an unreachable host, one with a wrong key, and one with a
// changed host key are named in messages and do not affect the others (promise 5).
func TestBadHostsAmongGoodOnes(t *testing.T) {
	l := newLab(t, 1)
	// Its key and host key are unknown to the program.
	stranger := hosttest.StartSSHD(t, hosttest.Options{})
	l.more = fmt.Sprintf("[[host]]\nname = \"closed\"\naddress = \"127.0.0.1\"\nport = 1\nslots = 2\n\n"+
		"[[host]]\nname = \"stranger\"\naddress = \"127.0.0.1\"\nport = %d\nuser = %q\nidentity = %q\nslots = 2\n",
		stranger.Port, stranger.User, l.sshd[0].Identity)
	p := l.do(l.args(2, l.tagged(20, "true"))...)
	if p.code != 0 {
		t.Fatalf("exit %d\n%s", p.code, p.err)
	}
	for _, name := range []string{"closed", "stranger"} {
		if !strings.Contains(p.err, name) {
			t.Errorf("%s is not named:\n%s", name, p.err)
		}
	}
	l.ranOnce(20)
}

// TestKilledDispatcherIsResumed kills the dispatcher. A second run in its directory is refused;
// resume adopts what runs, and nothing runs twice (X1, first half).
func TestKilledDispatcherIsResumed(t *testing.T) {
	l := newLab(t, 2)
	gate := l.path("gate")
	file := l.tagged(12, fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", gate))
	p := l.start(l.args(2, file)...)
	l.until("four jobs running", func() bool { return l.count("ran/*") >= 4 })
	p.signal(syscall.SIGKILL)
	p.wait()
	l.file("gate", "")
	q := l.do("resume", "--no-tui", "--ssh-config", l.sshd[0].ConfigFile, l.path("run"))
	if q.code != 0 {
		t.Fatalf("resume: exit %d\n%s", q.code, q.err)
	}
	l.ranOnce(12)
	for id := 1; id <= 12; id++ {
		if n := strings.Count(l.read(l.path(fmt.Sprintf("ran/%d", id))), "\n"); n != 1 {
			t.Errorf("job %d ran %d times", id, n)
		}
	}
}

// TestARunInUseIsRefused checks that a second run in a directory in use is refused with the owner's
// name.
func TestARunInUseIsRefused(t *testing.T) {
	l := newLab(t, 1)
	file := l.tagged(1, fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", l.path("gate")))
	p := l.start(l.args(1, file)...)
	l.until("the job runs", func() bool { return l.count("ran/*") == 1 })
	q := l.do("resume", "--no-tui", l.path("run"))
	host, _ := os.Hostname()
	if q.code != 2 || !strings.Contains(q.err, host) || !strings.Contains(q.err, fmt.Sprint(p.cmd.Process.Pid)) {
		t.Errorf("exit %d: %s", q.code, q.err)
	}
	q = l.do("run", "--no-tui", "--run-dir", l.path("run"), file)
	if q.code != 2 || !strings.Contains(q.err, "in use by") || !strings.Contains(q.err, host) {
		t.Errorf("run: exit %d: %s", q.code, q.err)
	}
	l.file("gate", "")
	if e := p.wait(); e.code != 0 {
		t.Errorf("the owner: exit %d\n%s", e.code, e.err)
	}
}

// TestAHostComesBack checks that a host that refuses connections costs no job a try and is used
// again when it is back.
func TestAHostComesBack(t *testing.T) {
	l := newLab(t, 2)
	l.sshd[1].Stop()
	file := l.tagged(40, fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", l.path("gate")))
	p := l.start(l.args(2, "--json", file)...)
	l.until("the good host works", func() bool { return l.count("ran/*") >= 2 })
	if err := l.sshd[1].Start(); err != nil {
		t.Fatal(err)
	}
	l.until("the other host works too", func() bool { return l.count("ran/*") >= 4 })
	l.file("gate", "")
	e := p.wait()
	if e.code != 0 {
		t.Fatalf("exit %d\n%s", e.code, e.err)
	}
	used := map[string]int{}
	for _, x := range jsonLines(t, e.out) {
		used[x.Host]++
	}
	if used["ws1"] == 0 || used["ws2"] == 0 {
		t.Errorf("hosts used: %v", used)
	}
	l.ranOnce(40)
}

// TestInterruptCancelEndsTheTree checks that canceling ends the whole process tree on the host,
// including processes that left the session (promise 4). The lab's clean-up scans for them.
func TestInterruptCancelEndsTheTree(t *testing.T) {
	l := newLab(t, 1)
	file := l.tagged(2, "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.2; done' & sleep 1000")
	p := l.start(l.args(2, "--on-interrupt", "cancel", file)...)
	l.until("the jobs run", func() bool { return l.count("ran/*") == 2 })
	p.signal(os.Interrupt)
	if e := p.wait(); e.code != 130 {
		t.Errorf("exit %d\n%s", e.code, e.err)
	}
}

// TestLoginShells checks login shells on the host: bash with a noisy rc file, dash, and tcsh.
func TestLoginShells(t *testing.T) {
	l := newLab(t, 3,
		hosttest.Options{Shell: "/bin/bash", Noise: "Welcome to ws1!\nfortune: \"$HOME is where the `heart` is\"\n"},
		hosttest.Options{Shell: "/bin/dash"},
		hosttest.Options{Shell: "/usr/bin/tcsh", Noise: "hello from tcsh\n"})
	file := l.tagged(60, fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", l.path("gate")))
	run := l.start(l.args(2, "--json", file)...)
	l.until("two jobs running on each host", func() bool { return l.count("ran/*") >= 6 })
	l.file("gate", "")
	p := run.wait()
	if p.code != 0 {
		t.Fatalf("exit %d\n%s", p.code, p.err)
	}
	used := map[string]int{}
	for _, x := range jsonLines(t, p.out) {
		used[x.Host]++
	}
	if len(used) != 3 {
		t.Errorf("hosts used: %v\n%s", used, p.err)
	}
	l.ranOnce(60)
}
