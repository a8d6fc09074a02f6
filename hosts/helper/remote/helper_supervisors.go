//go:build linux

package remote

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// supervisor is one that this helper started and that has not ended.
type supervisor struct {
	slot int
	pid  int
	born time.Duration
	log  string // its standard error
}

// warmSupervisors is how many supervisors wait for work while a helper is there, so that a
// job on an idle host starts without the making of a process.
const warmSupervisors = 1

// maxCrashes is how many supervisors in a row may die young before what waits is
// given back: something is wrong with this host.
const maxCrashes = 3

// startSupervisorsLocked starts supervisors until there is one for each job that waits or
// runs, within the limit. Those of earlier helpers count while they are busy.
func (h *helper) startSupervisorsLocked() {
	if h.closing || h.open.Check || h.isSuperseded() { // a check is given no job
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
		if h.sups[r.by.PID] == nil {
			old++
			used[r.by.Slot] = true
		}
	}
	want := min(h.limit-old, max(warmSupervisors, len(h.running)-old+len(h.waiting)))
	for slot := 1; serving < want && slot <= h.limit; slot++ {
		if used[slot] {
			continue
		}
		if err := h.startSupervisor(slot); err != nil {
			h.trouble("starting a supervisor: %v", err)
			if serving == 0 && old == 0 {
				h.giveBackLocked("no supervisor could be started on this host: " + err.Error())
			}
			return
		}
		serving++
	}
}

// spawn starts this program with descriptors and arguments, in a session of its own. It is
// the running file itself: its name may be gone by now.
func spawn(files []uintptr, args ...string) (pid int, err error) {
	return syscall.ForkExec("/proc/self/exe", append([]string{"dcs-tui"}, args...), &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
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
	pid, err := spawn([]uintptr{uintptr(null), uintptr(null), uintptr(errFD), uintptr(h.wakePipe.read)},
		wordSlot, h.spool.dir, strconv.Itoa(slot), strconv.FormatInt(h.generation, 10))
	if err != nil {
		return err
	}
	h.ctl.serving(slot).Store(int64(pid))
	h.sups[pid] = &supervisor{slot: slot, pid: pid, born: uptime(), log: log}
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
		h.trouble("the supervisor of slot %d died (%s); its last output: %s", s.slot, how, lastWords(s.log))
		h.reconcileTakenLocked() // what it held, though it may have died before it said so
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
		h.startSupervisorsLocked()
		h.wakePipe.send()
	}
}

// giveBackLocked refuses all that waits: this host cannot run it.
func (h *helper) giveBackLocked(why string) {
	h.sendRefused(h.takeAllBackLocked(), why)
}

// lastWords returns what a log tells, on one line.
func lastWords(path string) string {
	if text, err := firstText(path); err == nil && text != "" {
		return text
	}
	return "none"
}

// maxIdleLooks is how many looks in a row must find supervisors idle before all but
// the warm ones are sent away: about 10 s.
const maxIdleLooks = 4

// maintain looks after the spool every few seconds: what no report said, what
// has lapsed, what could not be written before, what jobs say of their progress.
func (h *helper) maintain() error {
	idle := 0
	for range time.Tick(h.lim.beat) {
		if h.isSuperseded() {
			return errSuperseded
		}
		if h.hasEnded() {
			continue // the spool is being removed
		}
		if uptime() > h.ctl.lease() {
			h.takeBackAll(whyLapsed)
		}
		h.reconcile()
		idle = h.dismissIdle(idle)
		settle(h.spool, &h.cfg, h.holder())
		h.readProgress()
		h.watchGPUs()
	}
	return nil
}

// reconcile compares what we believe with what the spool shows.
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
		h.reconcileTakenLocked() // removes from waiting what runs
		for _, id := range lost {
			if h.waiting[id] { // neither waits nor runs: over, or lapsed, and the report was lost
				delete(h.waiting, id)
				h.resolveLocked(id, holder{}, pgroup{})
			}
		}
	}
	h.startSupervisorsLocked()
	h.wakePipe.again(h.readyLocked())
}

// dismissIdle dismisses supervisors that have been idle for a while. looks is how
// often in a row there were some; the new count is returned.
func (h *helper) dismissIdle(looks int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	idle := 0
	for _, s := range h.sups {
		if h.ctl.serving(s.slot).Load() == int64(s.pid) {
			idle++
		}
	}
	for _, r := range h.running {
		if h.sups[r.by.PID] != nil {
			idle--
		}
	}
	if len(h.waiting) > 0 || idle <= warmSupervisors {
		return 0
	}
	if looks+1 < maxIdleLooks {
		return looks + 1
	}
	h.wakePipe.dismiss(idle - warmSupervisors)
	return 0
}

// maxProgress is how much of a progress file goes into a heartbeat, in bytes.
const maxProgress = 64

const (
	reportSuffix  = ".report"
	maxReportFile = 4 << 10  // bytes of one report file that go into a heartbeat
	maxReports    = 64 << 10 // bytes of all
)

// readProgress publishes what jobs wrote to DCS_PROGRESS and DCS_REPORT, and removes what jobs
// that are over have left. A report is published to its end before it is removed: the job may
// have ended while nobody dispatched.
func (h *helper) readProgress() {
	names, err := h.spool.list(dirProgress)
	if err != nil {
		return
	}
	var taken map[jobs.AttemptID]holder
	if len(names) > 0 {
		// An attempt that has started is in taken/, even if its start has not been reported.
		if taken, err = h.spool.taken(); err != nil {
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

// readReport adds the lines that a report file has got since the last look to the reports, as
// far as they are within its last maxReportFile bytes and the reports have space. It returns
// the offset behind the lines that were read so far, and whether earlier looks have read all.
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
	if cut { // the first line has lost its beginning
		_, text, _ = strings.Cut(text, "\n")
	}
	if text == "" {
		return had, true
	}
	reports[attempt] += text
	return end, false
}

// stoppedInterval is how often stopped supervisors are looked for.
const stoppedInterval = 3 * time.Second

// wake lets supervisors continue that were stopped, by a job or by a person: a stopped
// one sees neither its job's end nor its timeout, nor that it shall be ended. To
// hold a job up, the job is what is to be stopped.
func (h *helper) wake() {
	told := map[int]bool{}
	for range time.Tick(stoppedInterval) {
		h.mu.Lock()
		supervisors := make(map[int]holder, len(h.sups))
		for _, r := range h.running {
			supervisors[r.by.PID] = r.by
		}
		for pid, s := range h.sups { // idle ones too: the next token may be theirs
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
			h.trouble("the supervisor of slot %d had been stopped (SIGSTOP) and was continued", s.Slot)
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

// forwardLogsLocked passes on what supervisors of earlier helpers have left in their
// logs, once.
func (h *helper) forwardLogsLocked() {
	names, err := h.spool.list(dirLog)
	if err != nil {
		h.trouble("%v", err)
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
			h.trouble("spool: %v", err)
			continue
		}
		if text != "" {
			h.trouble("reported while no helper was connected: %s", text)
		}
		remove(path)
	}
}

// firstText returns the beginning of a log on one line: a crash says what happened
// first.
func firstText(path string) (string, error) {
	buf := make([]byte, 2048)
	n, err := readInto(unix.AT_FDCWD, path, buf)
	text := strings.Join(strings.Fields(string(buf[:n])), " ")
	return text[:min(len(text), 900)], err
}
