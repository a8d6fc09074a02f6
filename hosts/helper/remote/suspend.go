//go:build linux

package remote

import (
	"errors"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Jobs are suspended by a process of its own, the suspender, which the helper starts while an
// owner of the machine wants that. It stops the trees of all jobs and says so in the control
// page, for a short time that it prolongs. Whatever dies, something that is left continues the
// trees:
//
//   - the helper, and with it the dispatcher: the suspender reads the end of its input, and
//     continues them;
//   - the suspender: the helper starts another, or continues them itself;
//   - both: supervisors see that the time in the control page has passed, and continue them;
//   - a supervisor: the helper ends its tree; without a helper the suspender continues it;
//   - all three: the kernel sends SIGHUP and SIGCONT to the stopped process groups, because each
//     is orphaned by the death of its supervisor.

const (
	suspendFor   = 10 * time.Second      // how long the control page is believed
	suspendRound = 3 * time.Second       // between two looks for processes that are not stopped
	suspendSoon  = 50 * time.Millisecond // the same, after some have been found
	suspendHurry = 20                    // so many looks in a row are soon
)

// suspend says that jobs are suspended until then, unless it is prolonged.
func (c *control) suspend(to time.Duration) {
	was := max(time.Duration(c.at(ctlSuspendTo).Load()), uptime())
	c.at(ctlSuspended).Add(int64(to - was)) // first, so that nobody counts too little in between
	c.at(ctlSuspendTo).Store(int64(to))
}

// resumed says that jobs go on.
func (c *control) resumed() {
	if to := c.at(ctlSuspendTo).Swap(0); to != 0 {
		c.at(ctlSuspended).Add(int64(uptime()) - to) // less what was left, or more by what it took to notice
	}
}

// suspended returns for how long jobs have been suspended on this host in all, and until when
// they are; 0: they are not.
func (c *control) suspended() (total, to time.Duration) {
	to = time.Duration(c.at(ctlSuspendTo).Load())
	total = time.Duration(c.at(ctlSuspended).Load())
	if to != 0 {
		total += min(0, uptime()-to)
	}
	return total, to
}

// overdue reports whether jobs are still marked as suspended after the time for that.
func (c *control) overdue() bool {
	_, to := c.suspended()
	return to != 0 && uptime() > to
}

// trees returns the processes of all jobs of a run on this host, and the supervisors: what
// carries a cookie with the prefix, and what is below a supervisor.
func (s spool) trees(t table, prefix string) (members []proc, supervisors map[int]bool) {
	supervisors = map[int]bool{}
	var below []int
	for pid, p := range t {
		if endable(p) && s.isSupervisor(p) {
			supervisors[pid] = true
			below = append(below, t.under(pid)...)
		}
	}
	for _, p := range withCookie(func(c string) bool { return strings.HasPrefix(c, prefix) }, pgroup{}, nil)(t) {
		below = append(below, p.pid)
	}
	return t.pick(below, supervisors), supervisors
}

// resume continues the trees of all jobs.
func (s spool) resume(c *control, prefix string) {
	members, _ := s.trees(scan(nil), prefix)
	signalAll(members, unix.SIGCONT)
	c.resumed()
}

// stopper stops trees. Each process is stopped once: one that was continued since is being
// ended, and so are its children.
type stopper struct {
	spool  spool
	prefix string
	told   map[int]uint64 // start of processes that were stopped, by pid
}

// round stops what has not been stopped, and reports whether there was anything.
func (s *stopper) round() bool {
	t := scan(nil)
	members, _ := s.spool.trees(t, s.prefix)
	var fresh []proc
	for _, p := range members {
		up, known := t[p.ppid]
		if s.told[p.pid] == p.start || known && s.told[up.pid] == up.start && up.state != 'T' && up.state != 'D' {
			continue
		}
		s.told[p.pid] = p.start
		fresh = append(fresh, p)
	}
	signalAll(fresh, unix.SIGSTOP)
	return len(fresh) > 0
}

// suspendMain is `__suspend SPOOL GENERATION`: the suspender. It ends when its input does, when
// it has heard nothing for suspendFor, or when another helper serves the spool, which then
// sees to the jobs.
func suspendMain(args []string) error {
	if len(args) != 2 {
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
	cfg, err := s.readConfig(generation)
	if err != nil {
		return err
	}
	ctl, err := openControl(s.dir)
	if err != nil {
		return err
	}
	st := stopper{s, cookie(cfg.Run, cfg.Host, ""), map[int]uint64{}}
	heard, hurry := uptime(), 0
	for uptime()-heard < suspendFor && ctl.at(ctlEnd).Load() == 0 {
		if ctl.at(ctlGeneration).Load() != generation {
			return nil
		}
		if _, to := ctl.suspended(); to == 0 {
			clear(st.told) // at first, or somebody has continued everything
		}
		ctl.suspend(uptime() + suspendFor)
		wait := suspendRound
		if hurry++; !st.round() {
			hurry = 0
		} else if hurry < suspendHurry {
			wait = suspendSoon
		}
		input := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
		if n, _ := unix.Poll(input, int(wait/time.Millisecond)); n > 0 {
			var b [64]byte
			if n, err := unix.Read(0, b[:]); n == 0 || err != nil && err != unix.EINTR {
				break
			}
			heard = uptime()
		}
	}
	s.resume(ctl, st.prefix)
	return nil
}

// watchOwner looks for owners of the machine, and suspends and continues jobs. It may hang
// with the home directory of a user; then the suspender hears nothing and continues the jobs.
func (h *helper) watchOwner() {
	<-h.ownerKnown
	pipe := -1 // to the suspender; -1: there is none
	for ; ; time.Sleep(h.lim.beat) {
		held := h.owners.look()
		if was := h.owner.Swap(&held); *was != held {
			select {
			case h.files.kick <- struct{}{}:
			default:
			}
		}
		h.mu.Lock()
		wanted := held.Suspend && len(h.running) > 0
		h.mu.Unlock()
		if wanted && pipe < 0 {
			var err error
			if pipe, err = h.startSuspender(); err != nil {
				h.trouble(jobs.AttemptID{}, "jobs cannot be suspended: "+err.Error())
			}
		}
		if pipe < 0 {
			if _, to := h.ctl.suspended(); to != 0 && !wanted { // left by one that was killed
				h.spool.resume(h.ctl, cookie(h.cfg.Run, h.cfg.Host, ""))
			}
			continue
		}
		if _, err := unix.Write(pipe, []byte{'\n'}); !wanted || err != nil && err != unix.EAGAIN {
			unix.Close(pipe)
			pipe = -1
		}
	}
}

// firstLook bounds how long the hello waits for the first look at the owners.
const firstLook = time.Second

// lookFirst looks for owners before the hello, so that nothing is started on a host that is
// to be left alone.
func (h *helper) lookFirst() hosts.Owner {
	h.owner.Store(&hosts.Owner{})
	within(firstLook, func() {
		held := h.owners.look()
		h.owner.Store(&held)
		close(h.ownerKnown)
	})
	return *h.owner.Load()
}

// startSuspender starts a suspender, and returns the descriptor of its input.
func (h *helper) startSuspender() (int, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, err
	}
	defer unix.Close(p[0])
	argv := []string{"dcs-tui", wordSuspend, h.spool.dir, strconv.FormatInt(h.generation, 10)}
	h.mu.Lock() // so that it is not taken for a stray
	defer h.mu.Unlock()
	if h.closing {
		unix.Close(p[1])
		return -1, nil
	}
	pid, err := syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Dir: "/", Env: syscall.Environ(), Files: []uintptr{uintptr(p[0]), 2, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		unix.Close(p[1])
		return -1, err
	}
	h.suspender = pid
	return p[1], nil
}

// endSuspender ends the suspender at the end of the run. Nothing stays suspended.
func (h *helper) endSuspender() {
	h.mu.Lock()
	pid := h.suspender
	h.mu.Unlock()
	if p, ok := readProc(pid); ok && p.ppid == h.self.pid {
		signalAll([]proc{p}, unix.SIGKILL)
	}
	if _, to := h.ctl.suspended(); to != 0 {
		h.spool.resume(h.ctl, cookie(h.cfg.Run, h.cfg.Host, ""))
	}
}
