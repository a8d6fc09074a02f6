//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	wire "dcs-tui/hosts/helper"
	"dcs-tui/jobs"
)

// supervisor is a running supervisor that this helper has started.
type supervisor struct {
	slot       int
	pid        int
	startedAt  time.Duration
	log        string        // its standard error
	processes  processLimits // begun when it was started
	hasThreads bool          // it has created all its threads
}

// warmSupervisors is the number of idle supervisors to keep, so that the first job on an idle
// host need not wait for a process.
const warmSupervisors = 1

// maxCrashes is the number of supervisors in a row that may die within a second. Then this
// host cannot run jobs, and what waits is refused.
const maxCrashes = 3

// startSupervisorsLocked starts supervisors until there is one for each waiting or running
// attempt, within the limit. Busy supervisors of earlier helpers count.
func (h *helper) startSupervisorsLocked() {
	if h.closing || h.open.Check || h.isSuperseded() {
		return
	}
	serving, used := 0, map[int]bool{}
	for _, s := range h.supervisors {
		if h.control.serving(s.slot).Load() == int64(s.pid) {
			serving++
			used[s.slot] = true
		}
	}
	old := 0
	for _, r := range h.running {
		if h.supervisors[r.holder.PID] == nil {
			old++
			used[r.holder.Slot] = true
		}
	}
	want := min(h.limit-old, max(warmSupervisors, len(h.running)-old+len(h.waiting)))
	for slot := 1; serving < want && slot <= h.limit; slot++ {
		if used[slot] {
			continue
		}
		if err := h.startSupervisor(slot); err != nil {
			if limited, ok := errors.AsType[*limitError](err); ok {
				h.giveBackAtLimitLocked(limited, serving+old)
				return
			}
			if serving == 0 { // those of earlier helpers take nothing more
				h.giveBackLocked("no supervisor could be started on this host: " + err.Error())
			} else {
				h.reportTrouble("starting a supervisor: %v", err)
			}
			return
		}
		serving++
	}
}

// spawn starts this program in a session of its own, with one processor (see smallEnv). It executes
// the running file, whose name may be gone.
func spawn(files []uintptr, args ...string) (pid int, err error) {
	return syscall.ForkExec("/proc/self/exe", append([]string{"dcs-tui"}, args...), &syscall.ProcAttr{
		Dir: "/", Env: smallEnv(os.Environ()), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// startSupervisor starts a supervisor that survives this helper. It inherits no descriptor of
// ours but the wake pipe.
func (h *helper) startSupervisor(slot int) error {
	if err := h.checkRoomLocked(); err != nil {
		return err
	}
	if _, err := stat(h.spool.path(configName(h.generation))); err != nil || !h.hasConfig {
		if err := h.spool.writeConfig(h.generation, &h.config); err != nil {
			return err
		}
		h.hasConfig = true
	}
	processes := h.processes.sinceNow()
	null, err := openKind(unix.S_IFCHR, unix.AT_FDCWD, os.DevNull, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer closeFile(null, os.DevNull)
	log := h.spool.path(dirLog, fmt.Sprintf("%d.%d", h.generation, slot))
	errFD, err := openOwn(log, unix.O_APPEND)
	if err != nil {
		return err
	}
	defer closeFile(errFD, log)
	pid, err := spawn([]uintptr{uintptr(null), uintptr(null), uintptr(errFD), uintptr(h.wakePipe.read)},
		wordSlot, h.spool.dir, strconv.Itoa(slot), strconv.FormatInt(h.generation, 10))
	if err != nil {
		return processes.explain(err)
	}
	h.control.serving(slot).Store(int64(pid))
	h.supervisors[pid] = &supervisor{slot: slot, pid: pid, startedAt: uptime(), log: log, processes: processes}
	return nil
}

// reap handles supervisors that have ended.
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
	s := h.supervisors[pid]
	if s == nil {
		return
	}
	delete(h.supervisors, pid)
	h.control.serving(s.slot).CompareAndSwap(int64(pid), 0)
	// The end of the run kills some.
	crashed := (ws.Signaled() || ws.ExitStatus() != 0) && !h.closing
	if crashed {
		h.reconcileTakenLocked() // it may not have reported what it held
		h.probes.do(func() { h.config.temps(h.holder()).removeDead() })
		if limit := s.processes.reached(); limit.IsSet() && endedByRuntime(ws) {
			remove(s.log)
			h.giveBackAtLimitLocked(&limitError{limit: limit}, len(h.running))
			return
		}
		how := fmt.Sprintf("exit %d", ws.ExitStatus())
		if ws.Signaled() {
			how = jobs.SignalName(int(ws.Signal()))
		}
		h.reportTrouble("the supervisor of slot %d died (%s); its last output: %s", s.slot, how, logText(s.log))
	}
	if crashed && uptime()-s.startedAt < time.Second {
		h.crashes++
	} else {
		h.crashes = 0
	}
	if h.crashes >= maxCrashes {
		h.crashes = 0
		h.giveBackLocked("supervisors die on this host: " + logText(s.log))
		return
	}
	if len(h.waiting) > 0 {
		h.startSupervisorsLocked()
		h.wakePipe.send()
	}
}

// giveBackLocked refuses everything that waits.
func (h *helper) giveBackLocked(why string) {
	h.sendRefused(h.takeAllBackLocked(), why)
}

// logText returns the beginning of a log on one line.
func logText(path string) string {
	if text, err := firstText(path); err == nil && text != "" {
		return text
	}
	return "none"
}

// maxIdleLooks is the number of looks in a row that must find idle supervisors before these
// are dismissed, which takes about 10 s.
const maxIdleLooks = 4

// maintain reconciles the spool every few seconds: lost reports, expired leases, outcomes
// that could not be written, and the progress of jobs.
func (h *helper) maintain() error {
	idle := 0
	for range time.Tick(h.limits.heartbeat) {
		if h.isSuperseded() {
			return errSuperseded
		}
		if h.hasEnded() {
			continue // the spool is being removed
		}
		if err := h.checkSpool(); err != nil && !h.hasEnded() { // the run may have ended meanwhile
			return err
		}
		if uptime() > h.control.lease() {
			h.takeBackAll(whyLapsed)
		}
		h.reconcile()
		idle = h.dismissIdle(idle)
		placeKeptFiles(h.spool, &h.config, h.holder())
		h.readProgress()
		h.watchGPUs()
	}
	return nil
}

// reconcile compares our state with the spool.
func (h *helper) reconcile() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.requeueFailed {
		h.requeueLocked()
	}
	names, err := h.spool.list(dirIn)
	if err == nil {
		there := make(map[jobs.AttemptID]bool, len(names))
		for _, n := range names {
			if id, ok := parseSpecName(n); ok {
				there[id] = true
			}
		}
		var lost []jobs.AttemptID
		for id := range h.waiting {
			if !there[id] {
				lost = append(lost, id)
			}
		}
		h.reconcileTakenLocked() // removes running attempts from waiting
		for _, id := range lost {
			if h.waiting[id] { // it has ended or lapsed, and the report was lost
				delete(h.waiting, id)
				h.resolveLocked(id, holder{}, pgroup{})
			}
		}
	}
	h.startSupervisorsLocked()
	h.wakePipe.resendLost(h.readyLocked())
}

// dismissIdle dismisses supervisors that have been idle for maxIdleLooks looks. looks is the
// number of looks in a row so far that found some; it returns the new number.
func (h *helper) dismissIdle(looks int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	idle := 0
	for _, s := range h.supervisors {
		if h.control.serving(s.slot).Load() == int64(s.pid) {
			idle++
		}
	}
	for _, r := range h.running {
		if h.supervisors[r.holder.PID] != nil {
			idle--
		}
	}
	if len(h.waiting) > 0 || idle <= warmSupervisors {
		return 0
	}
	if looks+1 < maxIdleLooks {
		return looks + 1
	}
	h.wakePipe.dismissIdle(idle - warmSupervisors)
	return 0
}

// maxProgress is the number of bytes of a progress file that a heartbeat carries.
const maxProgress = 64

const (
	reportSuffix  = ".report"
	maxReportFile = 4 << 10  // bytes of one report file that a heartbeat carries
	maxReports    = 64 << 10 // bytes of all report files
)

// readProgress publishes what jobs wrote to DCS_PROGRESS and DCS_REPORT, and removes the files of
// jobs that have ended. It removes a report only after its end was published: the job may have
// ended while there was no dispatcher.
func (h *helper) readProgress() {
	names, err := h.spool.list(dirProgress)
	if err != nil {
		return
	}
	var taken map[jobs.AttemptID]holder
	if len(names) > 0 {
		// A started attempt is in taken/ even before its start is reported.
		if taken, err = h.spool.takenAttempts(); err != nil {
			return
		}
	}
	said, ends := map[string]string{}, map[string]int64{}
	reports := h.reports.Swap(nil)
	if reports == nil {
		reports = &map[string]string{}
	}
	for _, n := range names {
		attempt, isReport := strings.CutSuffix(n, reportSuffix)
		id, err := jobs.ParseAttemptID(attempt)
		h.mu.Lock()
		r := h.running[id]
		h.mu.Unlock()
		_, held := taken[id]
		over := r == nil && !held
		if isReport && err == nil && (r != nil || over) {
			end, published := h.readReport(attempt, *reports)
			ends[attempt], over = end, over && published
		}
		if over {
			delete(ends, attempt)
			remove(h.spool.path(dirProgress, n))
		}
		if r == nil || isReport {
			continue
		}
		if b, err := readPlain(h.spool.path(dirProgress, n), maxProgress); err == nil {
			said[n] = strings.TrimSpace(string(b))
		}
	}
	h.progress.Store(&said)
	h.reportEnds = ends
	if len(*reports) > 0 {
		h.reports.Store(reports)
	}
}

// readReport adds the new lines of a report file to reports, if there is space for them, and only
// from the last maxReportFile bytes. It returns the offset behind the lines that were read so far,
// and whether earlier calls have read all lines.
func (h *helper) readReport(attempt string, reports map[string]string) (end int64, published bool) {
	had, path := h.reportEnds[attempt], h.spool.path(dirProgress, attempt+reportSuffix)
	size := 0
	for _, text := range reports {
		size += len(text)
	}
	fd, err := openPlain(path)
	if err != nil {
		return had, true
	}
	defer closeFile(fd, path)
	var st unix.Stat_t
	if err := fstat(fd, path, &st); err != nil || st.Size == had {
		return had, true
	}
	if size+maxReportFile > maxReports {
		return had, false
	}
	start := had
	if st.Size < had { // was truncated
		start = 0
	}
	cut := st.Size-start > maxReportFile
	if cut {
		start = st.Size - maxReportFile
	}
	b := make([]byte, st.Size-start)
	n, err := pread(fd, path, b, start)
	if err != nil {
		return had, true
	}
	text := string(b[:n])
	text = text[:strings.LastIndexByte(text, '\n')+1]
	end = start + int64(len(text))
	if cut { // the first line is incomplete
		_, text, _ = strings.Cut(text, "\n")
	}
	if text == "" {
		return had, true
	}
	reports[attempt] += text
	return end, false
}

// stoppedInterval is the interval of looks for stopped supervisors.
const stoppedInterval = 3 * time.Second

// continueStopped continues supervisors that were stopped by a job or a person: a stopped one
// notices neither the end nor the timeout of its job, nor a request to end it. To hold a job up,
// stop the job itself.
func (h *helper) continueStopped() {
	told := map[int]bool{}
	for range time.Tick(stoppedInterval) {
		h.mu.Lock()
		supervisors := make(map[int]holder, len(h.supervisors))
		for _, r := range h.running {
			supervisors[r.holder.PID] = r.holder
		}
		for pid, s := range h.supervisors { // also idle ones, because one may read the next token
			if _, known := supervisors[pid]; known {
				continue
			}
			if p, ok := readProc(pid); ok {
				supervisors[pid] = holder{s.slot, pid, p.start}
			}
		}
		h.mu.Unlock()
		for _, s := range supervisors {
			if h.isShutOut() || !continueStopped(s) || told[s.PID] {
				continue
			}
			told[s.PID] = true
			h.reportTrouble("the supervisor of slot %d had been stopped (SIGSTOP) and was continued", s.Slot)
		}
	}
}

// continueStopped continues a supervisor if it is stopped, and reports whether it was.
func continueStopped(by holder) bool {
	p, ok := readProc(by.PID)
	if !ok || p.start != by.Start || p.state != 'T' {
		return false
	}
	signalAll([]proc{p}, unix.SIGCONT)
	return true
}

// forwardLogsLocked reports what supervisors of earlier helpers have left in their logs, and
// removes the logs.
func (h *helper) forwardLogsLocked() {
	names, err := h.spool.list(dirLog)
	if err != nil {
		h.reportTrouble("%v", err)
		return
	}
	ours := fmt.Sprintf("%d.", h.generation)
	for _, n := range names {
		if strings.HasPrefix(n, ours) {
			continue
		}
		path := h.spool.path(dirLog, n)
		text, err := firstText(path)
		if err != nil {
			h.reportTrouble("spool: %v", err)
			continue
		}
		if text != "" {
			h.reportTrouble("reported while no helper was connected: %s", text)
		}
		remove(path)
	}
}

// firstText returns the beginning of a log on one line, because a crash first says what
// happened.
func firstText(path string) (string, error) {
	buf := make([]byte, 2048)
	n, err := readInto(unix.AT_FDCWD, path, buf)
	text := strings.Join(strings.Fields(wire.ExplainCrash(string(buf[:n]))), " ")
	return text[:min(len(text), 900)], err
}
