//go:build linux

package remote

import (
	"errors"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Jobs are suspended by a separate process, the suspender, which the helper starts while an
// owner of the machine wants that. It stops the trees of all jobs and records that in the
// control page with a short lease, which it extends. Whichever process dies, one that is left
// continues the trees:
//
//   - the helper, and with it the dispatcher: the suspender sees the end of its input and
//     continues them;
//   - the suspender: the helper starts another one or continues them itself;
//   - both: supervisors see that the lease has run out, and continue them;
//   - a supervisor: the helper ends its tree; without a helper the suspender continues it;
//   - all three: the kernel sends SIGHUP and SIGCONT to the stopped process groups, because
//     the death of its supervisor orphans each of them.

const (
	suspendLease         = 10 * time.Second      // lease in the control page
	suspendInterval      = 3 * time.Second       // between looks for processes that are not stopped
	suspendShortInterval = 50 * time.Millisecond // the same, after a look that found some
	maxShortIntervals    = 20                    // short intervals in a row
)

// suspend records that jobs are suspended until a time, unless that is extended. It reports whether
// they were not suspended before. Each markResumed is thus seen by the next suspend, also if both
// happen at the same time.
func (c *control) suspend(to time.Duration) (begins bool) {
	for {
		was := c.word(ctlSuspendTo).Load()
		added := int64(to) - max(was, int64(uptime()))
		c.word(ctlSuspended).Add(added) // before ctlSuspendTo, so that no reader counts too little
		if c.word(ctlSuspendTo).CompareAndSwap(was, int64(to)) {
			return was == 0
		}
		c.word(ctlSuspended).Add(-added)
	}
}

// markResumed records that jobs continue.
func (c *control) markResumed() {
	if to := c.word(ctlSuspendTo).Swap(0); to != 0 {
		c.word(ctlSuspended).Add(int64(uptime()) - to) // corrects what suspend has added in advance
	}
}

// suspended returns for how long jobs have been suspended on this host in all, and until when
// they are suspended now (0: they are not).
func (c *control) suspended() (total, to time.Duration) {
	to = time.Duration(c.word(ctlSuspendTo).Load())
	total = time.Duration(c.word(ctlSuspended).Load())
	if to != 0 {
		total += min(0, uptime()-to)
	}
	return total, to
}

// isSuspendOverdue reports whether jobs are marked as suspended although the lease has run out.
func (c *control) isSuspendOverdue() bool {
	_, to := c.suspended()
	return to != 0 && uptime() > to
}

// trees returns the processes of all jobs of a run on this host (those with a cookie of that
// prefix, and those below a supervisor), and the pids of the supervisors.
func (s spool) trees(t table, prefix string) (members []proc, supervisors map[int]bool) {
	supervisors = map[int]bool{}
	var below []int
	for pid, p := range t {
		if isEndable(p) && s.isSupervisor(p) {
			supervisors[pid] = true
			below = append(below, t.descendants(pid)...)
		}
	}
	for _, p := range withCookie(func(c string) bool { return strings.HasPrefix(c, prefix) }, pgroup{}, nil, nil)(t) {
		below = append(below, p.pid)
	}
	return t.pickEndable(below, supervisors), supervisors
}

// resume continues the trees of all jobs.
func (s spool) resume(c *control, prefix string) {
	members, _ := s.trees(scan(nil), prefix)
	signalAll(members, unix.SIGCONT)
	c.markResumed()
}

// stopper stops trees. It stops each process once: a process that was continued since is being
// ended, and so are its children.
type stopper struct {
	spool   spool
	prefix  string
	stopped map[int]uint64 // pid: start of processes that were stopped
}

// stopNew stops new processes and reports whether there were any.
func (s *stopper) stopNew() bool {
	t := scan(nil)
	members, _ := s.spool.trees(t, s.prefix)
	var fresh []proc
	for _, p := range members {
		up, known := t[p.ppid]
		if s.stopped[p.pid] == p.start || known && s.stopped[up.pid] == up.start && up.state != 'T' && up.state != 'D' {
			continue
		}
		s.stopped[p.pid] = p.start
		fresh = append(fresh, p)
	}
	signalAll(fresh, unix.SIGSTOP)
	return len(fresh) > 0
}

// suspendMain is `__suspend SPOOL GENERATION COOKIE`: the suspender. It ends at the end of its input,
// when nothing was received for suspendLease, or when another helper serves the spool, which
// then handles the jobs.
func suspendMain(args []string) error {
	if len(args) != 3 {
		return errors.New("this is started by the helper, not by people")
	}
	generation, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	keepDescriptors()
	relaxTimers(helperSlack)
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	s := spool{args[0]}
	ctl, err := openControl(s.dir)
	if err != nil {
		return err
	}
	st := stopper{s, args[2], map[int]uint64{}}
	receivedAt, hurry := uptime(), 0
	for uptime()-receivedAt < suspendLease && ctl.word(ctlEnd).Load() == 0 {
		if ctl.word(ctlGeneration).Load() != generation {
			return nil
		}
		if ctl.suspend(uptime() + suspendLease) {
			clear(st.stopped) // this is the first round, or somebody has continued everything
		}
		wait := suspendInterval
		hurry++
		if !st.stopNew() {
			hurry = 0
		} else if hurry < maxShortIntervals {
			wait = suspendShortInterval
		}
		input := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
		if n, _ := unix.Poll(input, int(wait/time.Millisecond)); n > 0 {
			var b [64]byte
			if n, err := unix.Read(0, b[:]); n == 0 || err != nil && err != unix.EINTR {
				break
			}
			receivedAt = uptime()
		}
	}
	s.resume(ctl, st.prefix)
	return nil
}

// startSuspender starts a suspender, and returns the descriptor of its input.
func (h *helper) startSuspender() (int, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, err
	}
	defer unix.Close(p[0])
	h.mu.Lock() // so that isOrphan does not see a process that is not in h.suspender yet
	defer h.mu.Unlock()
	if h.closing {
		unix.Close(p[1])
		return -1, nil
	}
	pid, err := spawn([]uintptr{uintptr(p[0]), 2, 2}, wordSuspend, h.spool.dir, strconv.FormatInt(h.generation, 10),
		cookie(h.config.Run, h.config.Host, ""))
	if err != nil {
		unix.Close(p[1])
		return -1, err
	}
	h.suspenderPID = pid
	return p[1], nil
}

// endSuspender ends the suspender at the end of the run and continues what is suspended.
func (h *helper) endSuspender() {
	h.mu.Lock()
	pid := h.suspenderPID
	h.mu.Unlock()
	if p, ok := readProc(pid); ok && p.ppid == h.self.pid {
		signalAll([]proc{p}, unix.SIGKILL)
	}
	if _, to := h.control.suspended(); to != 0 {
		h.spool.resume(h.control, cookie(h.config.Run, h.config.Host, ""))
	}
}
