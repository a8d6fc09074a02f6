//go:build linux

package labfs_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/labfs"
	"dcs-tui/internal/polltest"
)

// callOnMachine is a kind of call and the machine that makes it.
type callOnMachine struct {
	machine int
	kind    labfs.Kind
}

// collectCalls runs some jobs without faults and returns the kinds of calls of each machine.
func collectCalls(t *testing.T) []callOnMachine {
	l := newLab(t, 3, 100*time.Millisecond)
	l.start(l.inventory(2, 2), l.jobs(30, "true")).exits(0)
	var list []callOnMachine
	for i, m := range l.mounts[:2] {
		for kind := range m.NumCalls() {
			list = append(list, callOnMachine{i, kind})
		}
	}
	slices.SortFunc(list, func(a, b callOnMachine) int {
		return cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.kind.Op, b.kind.Op),
			cmp.Compare(a.kind.Name, b.kind.Name))
	})
	return list
}

// TestEachCallFails makes calls of each kind on each kind of file of a run fail, one at a time on
// each machine, in an order chosen by a fixed seed, while the run continues. It checks that every
// job has its one right result, and that no attempt starts twice.
func TestEachCallFails(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	kinds := collectCalls(t)
	for _, errno := range []syscall.Errno{syscall.ESTALE, syscall.EIO, syscall.ENOSPC, syscall.EDQUOT} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			t.Parallel()
			failEachCall(t, errno, kinds)
		})
	}
}

func failEachCall(t *testing.T, errno syscall.Errno, kinds []callOnMachine) {
	const machines, n = 7, 400
	l := newLab(t, machines, 100*time.Millisecond)
	p := l.start(l.inventory(machines-1, 2), l.jobs(n, "sleep 0.1"))
	p.until("jobs run", func() bool { return l.numStarted() >= 1 })
	until := time.Now().Add(polltest.Scale(8*time.Second, 8*time.Second, 3*time.Minute))
	var wg sync.WaitGroup
	var mu sync.Mutex
	hits, met := 0, map[callOnMachine]bool{}
	for machine := range machines {
		var mine []callOnMachine
		for _, k := range kinds {
			if k.machine == min(machine, 1) {
				mine = append(mine, k)
			}
		}
		rng := rand.New(rand.NewPCG(uint64(machine), uint64(errno)))
		wg.Go(func() {
			for _, i := range rng.Perm(len(mine)) {
				f := l.mounts[machine].Fail(labfs.Fault{Ops: mine[i].kind.Op, Name: mine[i].kind.Name, Errno: errno,
					Count: 1})
				polltest.Within(200*time.Millisecond, func() bool { // there may be no further call of that kind
					return f.NumFailed() > 0 || time.Now().After(until) || l.numStarted() == n
				})
				f.Stop()
				mu.Lock()
				if f.NumFailed() > 0 {
					hits++
					met[mine[i]] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	e := p.wait()
	t.Logf("%d calls of %d kinds failed, of %d kinds", hits, len(met), len(kinds))
	l.wantSucceeded(n, e)
	if hits == 0 {
		t.Error("no call failed")
	}
}
