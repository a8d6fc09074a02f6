//go:build linux

package remote

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A process that hangs in the kernel, on a file server that is gone, can hold locks
// that its files in /proc need: who reads them hangs too, as `ps` does. Nobody of
// us may, so what does not answer is left out until it does.

const (
	procPatience = time.Second            // for the first process that does not answer
	procHurry    = 100 * time.Millisecond // for each further one of the same picture
	hungPatience = 2 * time.Second        // before the end of a tree is called complete without them
)

// hung are processes whose files do not answer. They are asked again when they did.
type hung struct {
	mu   sync.Mutex
	pids map[int]bool
}

var hungProcs = hung{pids: map[int]bool{}}

func (h *hung) has(pid int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pids[pid]
}

func (h *hung) set(pid int, yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if yes {
		h.pids[pid] = true
	} else {
		delete(h.pids, pid)
	}
}

// ours returns those that belong to our user: they may be of any job of ours. A
// directory of /proc itself always answers.
func (h *hung) ours() (out []proc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid := range h.pids {
		var st unix.Stat_t
		if unix.Stat(fmt.Sprintf("/proc/%d", pid), &st) == nil && int(st.Uid) == os.Getuid() {
			out = append(out, proc{pid: pid})
		}
	}
	return out
}

// walk asks processes one after the other, on a goroutine of its own.
type walk struct {
	mu     sync.Mutex
	at     int // index of the one that is being asked
	asking bool
	left   bool
}

// each asks all of pids that answer, waiting for none that does not. tell gets the
// answers, in a goroutine that may outlive the call, but not after it.
func (h *hung) each(pids []int, ask func(pid int) (tell func())) {
	patience := procPatience
	for len(pids) > 0 {
		w := &walk{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.walk(w, pids, ask)
		}()
		at, timer := 0, time.NewTimer(patience)
		for waiting := true; waiting; {
			select {
			case <-done:
				timer.Stop()
				return
			case <-timer.C:
			}
			w.mu.Lock()
			if w.asking && w.at == at {
				w.left, waiting = true, false
				h.set(pids[at], true)
			}
			at = w.at
			w.mu.Unlock()
			timer.Reset(patience)
		}
		timer.Stop()
		pids, patience = pids[at+1:], procHurry
	}
}

func (h *hung) walk(w *walk, pids []int, ask func(pid int) func()) {
	for i, pid := range pids {
		if h.has(pid) {
			continue
		}
		w.mu.Lock()
		w.at, w.asking = i, true
		w.mu.Unlock()
		tell := ask(pid)
		w.mu.Lock()
		w.asking = false
		if w.left { // given up meanwhile: it answers again
			h.set(pid, false)
			w.mu.Unlock()
			return
		}
		tell()
		w.mu.Unlock()
	}
}

// procs returns those of pids that are there and answer.
func (h *hung) procs(pids []int) (found []proc) {
	h.each(pids, func(pid int) func() {
		p, ok := readProc(pid)
		return func() {
			if ok {
				found = append(found, p)
			}
		}
	})
	return found
}

// clear waits for a while until none of ours hangs. false: some did, and they answer
// now, so it is worth looking again.
func (h *hung) clear() bool {
	if len(h.ours()) == 0 {
		return true
	}
	for until := uptime() + hungPatience; uptime() < until; time.Sleep(procHurry) {
		if len(h.ours()) == 0 {
			return false
		}
	}
	return true
}
