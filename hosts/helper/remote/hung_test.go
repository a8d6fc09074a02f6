//go:build linux

package remote

import (
	"slices"
	"testing"
	"testing/synctest"
)

// Promise 5: a process whose files in /proc do not answer keeps nobody from seeing
// the others; it is left out until it answers, and is not asked meanwhile.
func TestHungProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hung{pids: map[int]bool{}}
		free := make(chan struct{})
		asked := map[int]int{}
		see := func(want ...int) {
			t.Helper()
			var got []int
			h.each([]int{1, 3, 4, 13, 16}, func(pid int) func() {
				h.mu.Lock()
				asked[pid]++
				h.mu.Unlock()
				if pid%10 == 3 {
					<-free
				}
				return func() { got = append(got, pid) }
			})
			if !slices.Equal(got, want) {
				t.Errorf("seen %v, want %v", got, want)
			}
		}
		see(1, 4, 16)
		see(1, 4, 16)
		if asked[3] != 1 || asked[13] != 1 || asked[1] != 2 {
			t.Errorf("asked %v", asked)
		}
		close(free)
		synctest.Wait()
		see(1, 3, 4, 13, 16)
		if len(h.pids) > 0 {
			t.Errorf("said to hang: %v", h.pids)
		}
	})
}

// DESIGN 5: what hangs and may be of a job is waited for, for a while, before it
// is said that nothing of the job is left.
func TestHungOfOurs(t *testing.T) {
	h := hung{pids: map[int]bool{}}
	if !h.clear() {
		t.Error("nothing hangs and it was waited for")
	}
	h.set(1<<22+1, true) // there is no such process
	if len(h.ours()) > 0 {
		t.Error("what is no more hangs")
	}
}
