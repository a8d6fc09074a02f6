//go:build linux

package remote

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// grouped starts a process in a group of its own that ends with the test.
func grouped(t *testing.T, env []string, argv ...string) (*exec.Cmd, proc) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env, c.SysProcAttr = env, &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not yet waited for: pid and group are still ours
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p, ok := readProc(c.Process.Pid)
	if !ok {
		t.Fatal("it is not there")
	}
	return c, p
}

// Promise 4 and its other side: a process that is found by nothing but the number
// of its group ends only if the number is certainly still the job's.
func TestGroupAlone(t *testing.T) {
	_, p := grouped(t, []string{"PATH=" + os.Getenv("PATH"), "A=1"}, "sh", "-c", "echo up; read x; while :; do sleep 1000; done")
	bare, q := grouped(t, nil, "sh", "-c", "env -i sleep 1000 & until test ! -s /proc/$!/environ; do :; done; echo $!; exit")
	for s := q.state; s != 'Z'; { // its shell has gone, or will; it stays a zombie
		now, _ := readProc(bare.Process.Pid)
		s = now.state
	}
	var child proc
	for _, r := range scan(nil) {
		if r.group == q.pid && r.pid != q.pid {
			child = r
		}
	}
	orphaned := scan(nil)
	delete(orphaned, q.pid) // as when somebody has collected it
	reused := scan(nil)
	other := reused[q.pid]
	other.start += 5
	reused[q.pid] = other
	none := func(string) bool { return false }
	for _, c := range []struct {
		name  string
		t     table
		g     pgroup
		p     proc
		taken bool
	}{
		{"the shell is there", scan(nil), pgroup{p.pid, p.start, p.start}, p, true},
		{"its number is another's", scan(nil), pgroup{p.pid, p.start - 5, p.start - 5}, p, false},
		{"the shell was never seen, and this one shows an environment", scan(nil), pgroup{p.pid, 0, 1}, p, false},
		{"the shell is a zombie", scan(nil), pgroup{q.pid, q.start, q.start}, child, true},
		{"the shell has gone, no environment", orphaned, pgroup{q.pid, q.start, q.start}, child, true},
		{"the shell was never seen, no environment", orphaned, pgroup{q.pid, 0, q.start}, child, true},
		{"older than the shell", orphaned, pgroup{q.pid, q.start + 1000, q.start + 1000}, child, false},
		{"another has the number now", reused, pgroup{q.pid, q.start, q.start}, child, false},
		{"no group", scan(nil), pgroup{}, child, false},
	} {
		got := withCookie(none, c.g, nil)(c.t)
		if has := slices.ContainsFunc(got, func(r proc) bool { return r.pid == c.p.pid }); has != c.taken {
			t.Errorf("%s: chosen %v, want %v (%s)", c.name, has, c.taken, strings.TrimSpace(name(got)))
		}
	}
}

// The start of the shell is what /proc says while it is the supervisor's child.
func TestGroupOf(t *testing.T) {
	_, p := grouped(t, os.Environ(), "sh", "-c", "echo up; read x; sleep 1000")
	self, _ := readProc(os.Getpid())
	me := holder{1, self.pid, self.start}
	if g := groupOf(p.pid, me); g != (pgroup{p.pid, p.start, p.start}) {
		t.Errorf("our child: %+v", g)
	}
	if g := groupOf(p.pid, holder{1, 1 << 22, 7}); g != (pgroup{p.pid, 0, 7}) {
		t.Errorf("another's child: %+v", g)
	}
}
