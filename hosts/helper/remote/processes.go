//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// A host limits how many processes and threads there may be: pids.max of the control groups above
// us, RLIMIT_NPROC of our user, and the kernel's own limits. At a limit, fork fails with EAGAIN,
// for a job as well as for us. The kernel counts in pids.events how often pids.max was reached. It
// counts nothing for the other limits: they were reached if nearly as many processes are there.

// processLimits finds the limits that were reached. It is owned by one goroutine.
type processLimits struct {
	groups []pidsGroup // from our own control group to the outermost one
}

// pidsGroup is a control group with the pids controller.
type pidsGroup struct {
	dir    string
	events int    // descriptor of the file that counts; -1: there is none
	exact  bool   // it counts only what the group's own limit refused
	hits   uint64 // count at begin
}

// openProcessLimits finds the control groups of this process.
func openProcessLimits() (l processLimits) {
	for _, dir := range openControlGroups().dirs("pids") {
		g := pidsGroup{dir: dir, exact: true}
		var err error
		// Since Linux 6.11, pids.events of version 2 also counts what limits further down refused.
		// Before that, it counts in the group of the process whatever group had the limit.
		if g.events, err = openProc(filepath.Join(dir, "pids.events.local")); err != nil {
			g.exact = false
			if g.events, err = openProc(filepath.Join(dir, "pids.events")); err != nil {
				g.events = -1
			}
		}
		l.groups = append(l.groups, g)
	}
	l.begin()
	return l
}

// controlGroupDirs returns the directories of a process's control groups with a controller, from its
// own to the outermost that is visible. mounts and groups are its mountinfo and cgroup files.
func controlGroupDirs(mounts, groups, controller string) (dirs []string) {
	path, isV1, known := "", false, false
	for line := range strings.Lines(groups) {
		w := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(w) != 3:
		case slices.Contains(strings.Split(w[1], ","), controller):
			path, isV1, known = w[2], true, true
		case w[0] == "0" && !isV1:
			path, known = w[2], true
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if !known || len(f) < 5 || len(kind) < 3 {
			continue
		}
		if isV1 && (kind[0] != "cgroup" || !slices.Contains(strings.Split(kind[2], ","), controller)) ||
			!isV1 && kind[0] != "cgroup2" {
			continue
		}
		root, mount := unescapeMount(f[3]), unescapeMount(f[4])
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
		if !ok || strings.HasPrefix(rest, "/..") { // in a container that sees only its own group
			rest = ""
		}
		for dir := filepath.Join(mount, rest); ; dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
			if dir == filepath.Clean(mount) || dir == "/" {
				return dirs
			}
		}
	}
	return nil
}

// unescapeMount undoes the escapes of mountinfo, such as \040 for a blank.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// count returns how often a limit has refused a process.
func (g *pidsGroup) count() uint64 {
	if g.events < 0 {
		return 0
	}
	var buf [64]byte
	n, _ := unix.Pread(g.events, buf[:], 0)
	_, after, _ := bytes.Cut(buf[:max(0, n)], []byte("max "))
	return parseNumber(after)
}

// number reads a file of the group with one number. ok is false if it has no number, as with
// "max".
func (g *pidsGroup) number(name string) (n int64, ok bool) {
	b, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// begin forgets what was reached before.
func (l *processLimits) begin() {
	for i := range l.groups {
		l.groups[i].hits = l.groups[i].count()
	}
}

// reached returns the limit that was reached since begin, or that is nearly reached now. The zero
// value means that there is none.
func (l *processLimits) reached() jobs.ProcessLimit {
	for i := range l.groups {
		if g := &l.groups[i]; g.count() > g.hits {
			return l.limitFrom(i)
		}
	}
	return reachedByCount()
}

// limitFrom returns the limit of the group of which a process was refused: that of the group
// itself if it counts exactly, otherwise that of the group above it that is the nearest to its
// limit.
func (l *processLimits) limitFrom(first int) (limit jobs.ProcessLimit) {
	limit.Kind = jobs.LimitPids
	least := int64(math.MaxInt64)
	for _, g := range l.groups[first:] {
		most, limited := g.number("pids.max")
		now, _ := g.number("pids.current")
		if limited && most-now < least {
			least, limit.Max, limit.Path = most-now, most, g.dir
		}
		if g.exact {
			break
		}
	}
	return limit
}

// sinceNow returns limits for which a new begin is now. Both share descriptors.
func (l *processLimits) sinceNow() processLimits {
	now := processLimits{groups: slices.Clone(l.groups)}
	now.begin()
	return now
}

// check returns a *limitError unless so many processes and threads can be started, as far as is
// known.
func (l *processLimits) check(needed int64) error {
	if n, limit := l.available(needed); n < needed {
		return &limitError{limit, unix.EAGAIN}
	}
	return nil
}

// available returns how many processes and threads may still be started, and the limit that allows
// the fewest. Limits that allow more than needed may be left out.
func (l *processLimits) available(needed int64) (n int64, limit jobs.ProcessLimit) {
	n = math.MaxInt64
	for _, g := range l.groups {
		most, limited := g.number("pids.max")
		now, known := g.number("pids.current")
		if limited && known && most-now < n {
			n, limit = max(0, most-now), jobs.ProcessLimit{Kind: jobs.LimitPids, Max: most, Path: g.dir}
		}
	}
	for _, c := range countLimits(needed) {
		if c.max-c.now < n {
			n, limit = max(0, c.max-c.now), jobs.ProcessLimit{Kind: c.kind, Max: c.max}
		}
	}
	return n, limit
}

// countLimit is a limit for which only the present number is known.
type countLimit struct {
	kind     jobs.LimitKind
	max, now int64
}

// countLimits returns the limits of the system and the user. It counts the processes of the user
// only if all processes together are within margin of their limit.
func countLimits(margin int64) (list []countLimit) {
	all := numTasks()
	for _, name := range []string{"threads-max", "pid_max"} {
		b, _ := os.ReadFile("/proc/sys/kernel/" + name)
		if n := int64(parseNumber(b)); n > 0 {
			list = append(list, countLimit{jobs.LimitSystem, n, all})
		}
	}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &r) == nil && r.Cur < math.MaxInt64 && isUserLimited() {
		limit := int64(r.Cur)
		if all >= limit-margin {
			list = append(list, countLimit{jobs.LimitUser, limit, numUserTasks(ownUID)})
		}
	}
	return list
}

// nearLimit is the number of processes below a limit from which on it counts as reached: a job that
// failed because of it has ended, with all its processes, when we count.
func nearLimit(limit int64) int64 { return min(max(limit/8, 4), maxNear) }

const maxNear = 64

// reachedByCount returns a limit that is nearly reached, or none.
func reachedByCount() jobs.ProcessLimit {
	for _, c := range countLimits(maxNear) {
		if c.now >= c.max-nearLimit(c.max) {
			return jobs.ProcessLimit{Kind: c.kind, Max: c.max}
		}
	}
	return jobs.ProcessLimit{}
}

// numTasks returns the number of processes and threads of the system.
func numTasks() int64 {
	b, _ := os.ReadFile("/proc/loadavg")
	f := bytes.Fields(b)
	if len(f) < 4 {
		return 0
	}
	_, total, _ := bytes.Cut(f[3], []byte("/"))
	return int64(parseNumber(total))
}

// isUserLimited reports whether RLIMIT_NPROC applies to us. The kernel exempts root and processes
// with certain capabilities, but not those of a user namespace.
func isUserLimited() bool {
	ids, _ := os.ReadFile("/proc/self/uid_map")
	f := bytes.Fields(ids)
	isInitial := len(f) == 3 && string(f[0]) == "0" && string(f[1]) == "0" && parseNumber(f[2]) == math.MaxUint32
	if !isInitial {
		return true
	}
	const exempting = 1<<unix.CAP_SYS_RESOURCE | 1<<unix.CAP_SYS_ADMIN
	_, rest, _ := bytes.Cut(procFile(os.Getpid(), "status"), []byte("\nCapEff:"))
	caps, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte("\n"))
	set, err := strconv.ParseUint(string(caps), 16, 64)
	return ownUID != 0 && (err != nil || set&exempting == 0)
}

// numUserTasks returns the number of processes and threads of a user.
func numUserTasks(uid int) (n int64) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+e.Name(), &st) != nil || int(st.Uid) != uid {
			continue
		}
		n += max(1, numThreads(pid))
	}
	return n
}

// limitError is the error of a process that could not be started because of a limit.
type limitError struct {
	limit jobs.ProcessLimit
	err   error
}

func (e *limitError) Error() string {
	return fmt.Sprintf("no more processes can be started on this host: %s", e.limit.Text())
}
func (e *limitError) Unwrap() error { return e.err }

// explain turns the error of a fork that a known limit refused into a *limitError.
func (l *processLimits) explain(err error) error {
	if !errors.Is(err, unix.EAGAIN) {
		return err
	}
	if limit := l.reached(); limit.IsSet() {
		return &limitError{limit, err}
	}
	return err
}

// Helpers and supervisors create all their threads when they start: the Go runtime ends the process
// if it cannot create one. A supervisor that cannot is replaced before it has taken a job. Ending a
// job takes seven threads. One more is for a call that hangs.
const (
	supervisorThreads = 8
	helperThreads     = 10
	// slotTasks is the number of processes and threads that a slot needs at least: its supervisor,
	// the shell of a job, and a command.
	slotTasks = supervisorThreads + 2
)

// runtimeThreads is the number of threads that every Go program has.
const runtimeThreads = 2

// endedByRuntime reports whether the Go runtime has ended a helper or a supervisor, because it could
// not create a thread or for another fatal error. They use this exit status for nothing else.
func endedByRuntime(ws syscall.WaitStatus) bool {
	return ws.ExitStatus() == 2 || ws.Signaled() && ws.Signal() == syscall.SIGABRT
}

// reserveThreads creates threads until there are n of them. They stay.
func reserveThreads(n int) {
	var started, ended sync.WaitGroup
	leave := make(chan struct{})
	for range n - runtimeThreads {
		started.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // a goroutine that is locked needs a thread of its own
			defer runtime.UnlockOSThread()
			started.Done()
			<-leave
		})
	}
	started.Wait()
	close(leave)
	ended.Wait()
}

// checkRoomLocked returns a *limitError if the host has no room for another slot. Supervisors that
// have just been started will create threads.
func (h *helper) checkRoomLocked() error {
	return h.processes.check(slotTasks + h.missingThreadsLocked())
}

// missingThreadsLocked returns how many threads the supervisors will still create. One that has all
// of them is not looked at again, because they stay.
func (h *helper) missingThreadsLocked() (n int64) {
	for pid, s := range h.supervisors {
		if s.hasThreads {
			continue
		}
		missing := max(0, supervisorThreads-numThreads(pid))
		s.hasThreads = missing == 0
		n += missing
	}
	return n
}

// numThreads returns the number of threads of a process, or 0 if it is gone.
func numThreads(pid int) int64 {
	p, _ := readProc(pid)
	return int64(p.threads)
}

// giveBackAtLimitLocked refuses everything that waits because a limit leaves only so many slots.
func (h *helper) giveBackAtLimitLocked(e *limitError, slots int) {
	if gone := h.takeAllBackLocked(); len(gone) > 0 {
		h.outbox.send(&hosts.Refused{Attempts: gone, Why: e.Error(), Limit: e.limit, Slots: slots})
	}
}
