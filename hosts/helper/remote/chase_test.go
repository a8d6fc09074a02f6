//go:build linux

package remote

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// Promise 4: a child that has ended since our children were listed has left its own
// children to us, so such a look does not say that nothing is left.
func TestChaserIsSure(t *testing.T) {
	start := func(end bool) int {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		if end {
			cmd.Process.Kill()
			unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		}
		return cmd.Process.Pid
	}
	alive, zombie, gone := start(false), start(true), 1<<22+1
	c := &chaser{dead: map[int]bool{}}
	for _, look := range []struct {
		name string
		pids []int
		mine bool
		out  int
		sure bool
	}{
		{"none", nil, true, 0, true},
		{"a stranger", []int{alive}, false, 0, true},
		{"one of ours", []int{alive}, true, 1, true},
		{"one that has gone", []int{alive, gone}, false, 0, false},
		{"one that has just ended", []int{alive, zombie}, false, 0, false},
		{"one that had ended before", []int{alive, zombie}, false, 0, true},
	} {
		c.mine = func(proc) bool { return look.mine }
		out, sure := c.look(look.pids)
		if len(out) != look.out || sure != look.sure {
			t.Errorf("%s: got %d of ours, sure %t; want %d, %t", look.name, len(out), sure, look.out, look.sure)
		}
	}
}
