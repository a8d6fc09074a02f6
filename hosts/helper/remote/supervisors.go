//go:build linux

package remote

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// supervisor is one that this helper started and that has not ended.
type supervisor struct {
	slot int
	pid  int
	born time.Duration
	log  string // its standard error
}

// warm is how many supervisors wait for work while a helper is there, so that a
// job on an idle host starts without the making of a process.
const warm = 1

// maxCrashes is how many supervisors in a row may die young before what waits is
// given back: something is wrong with this host.
const maxCrashes = 3

// staffLocked starts supervisors until there is one for each job that waits or
// runs, within the limit. Those of earlier helpers count while they are busy.
func (h *helper) staffLocked() {
	if h.closing || h.open.Check || h.superseded() { // a check is given no job
		return
	}
	serving, used := 0, map[int]bool{}
	for _, s := range h.sups {
		if h.ctl.serving(s.slot).Load() == int64(s.pid) {
			serving++
			used[s.slot] = true
		}
	}
	old := 0
	for _, r := range h.running {
		if h.sups[r.by.pid] == nil {
			old++
			used[r.by.slot] = true
		}
	}
	want := min(h.limit-old, max(warm, len(h.running)-old+len(h.waiting)))
	for slot := 1; serving < want && slot <= h.limit; slot++ {
		if used[slot] {
			continue
		}
		if err := h.startSupervisor(slot); err != nil {
			h.troubleLocked(fmt.Sprintf("starting a supervisor: %v", err))
			if serving == 0 && old == 0 {
				h.giveBackLocked("no supervisor could be started on this host: " + err.Error())
			}
			return
		}
		serving++
	}
}

// startSupervisor is `nohup dcs-tui __slot … &`: a session of its own, no
// descriptor of ours but the tokens.
func (h *helper) startSupervisor(slot int) error {
	null, err := openat(unix.AT_FDCWD, os.DevNull, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer closeFile(null, os.DevNull)
	log := h.spool.path(dirLog, fmt.Sprintf("%d.%d", h.generation, slot))
	errFD, err := openat(unix.AT_FDCWD, log, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer closeFile(errFD, log)
	argv := []string{"dcs-tui", wordSlot, h.spool.dir, strconv.Itoa(slot), strconv.FormatInt(h.generation, 10)}
	// The running file itself: its name may be gone by now.
	pid, err := syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(errFD), uintptr(h.wakePipe.read)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	h.ctl.serving(slot).Store(int64(pid))
	h.sups[pid] = &supervisor{slot: slot, pid: pid, born: uptime(), log: log}
	return nil
}

// reap hears of supervisors that have ended.
func (h *helper) reap(ended <-chan os.Signal) {
	for range ended {
		for {
			var ws syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
			if err == syscall.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			h.supervisorEnded(pid, ws)
		}
	}
}

func (h *helper) supervisorEnded(pid int, ws syscall.WaitStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sups[pid]
	if s == nil {
		return
	}
	delete(h.sups, pid)
	h.ctl.serving(s.slot).CompareAndSwap(int64(pid), 0)
	crashed := (ws.Signaled() || ws.ExitStatus() != 0) && !h.closing // in the end we hurry them
	if crashed {
		how := fmt.Sprintf("exit %d", ws.ExitStatus())
		if ws.Signaled() {
			how = jobs.SignalName(int(ws.Signal()))
		}
		h.troubleLocked(fmt.Sprintf("the supervisor of slot %d died (%s); its last words: %s", s.slot, how, lastWords(s.log)))
		h.takenLocked() // what it held, though it may have died before it said so
		h.probes.do(func() { h.cfg.temps(h.holder()).sweep() })
	}
	if crashed && uptime()-s.born < time.Second {
		h.crashes++
	} else {
		h.crashes = 0
	}
	if h.crashes >= maxCrashes {
		h.crashes = 0
		h.giveBackLocked("supervisors die on this host: " + lastWords(s.log))
		return
	}
	if len(h.waiting) > 0 {
		h.staffLocked()
		h.wakePipe.send()
	}
}

// giveBackLocked refuses all that waits: this host cannot run it.
func (h *helper) giveBackLocked(why string) {
	m := &hosts.Refused{Why: why}
	for id := range h.waiting {
		if h.takeBackLocked(id) {
			m.Attempts = append(m.Attempts, id)
		}
	}
	if len(m.Attempts) > 0 {
		slices.SortFunc(m.Attempts, compareAttempts)
		h.out.send(m)
	}
}

func (h *helper) troubleLocked(text string) { h.trouble(jobs.AttemptID{}, text) }

// lastWords returns what a log tells, on one line.
func lastWords(path string) string {
	if text, err := beginning(path); err == nil && text != "" {
		return text
	}
	return "none"
}
