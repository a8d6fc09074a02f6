//go:build linux

package remote

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// idleTime is how many looks in a row must find supervisors idle before all but
// the warm ones are sent away: about 10 s.
const idleTime = 4

// housekeep looks after the spool every few seconds: what no report said, what
// has lapsed, what could not be written before, what jobs say of their progress.
func (h *helper) housekeep() error {
	idle := 0
	for range time.Tick(h.lim.beat) {
		if h.superseded() {
			return errSuperseded
		}
		if h.atEnd() {
			continue // the spool is being removed
		}
		if uptime() > h.ctl.lease() {
			h.takeBackAll(whyLapsed)
		}
		h.recount()
		idle = h.sendAway(idle)
		settle(h.spool, &h.cfg, h.holder())
		h.readProgress()
		h.watchGPUs()
	}
	return nil
}

// recount compares what we believe with what the spool shows.
func (h *helper) recount() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unfed {
		h.refeedLocked()
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
		h.takenLocked() // removes from waiting what runs
		for _, id := range lost {
			if h.waiting[id] { // neither waits nor runs: over, or lapsed, and the report was lost
				delete(h.waiting, id)
				h.resolveLocked(id, holder{}, pgroup{})
			}
		}
	}
	h.staffLocked()
	h.wakePipe.again(h.unheldLocked())
}

// sendAway dismisses supervisors that have been idle for a while. looks is how
// often in a row there were some; the new count is returned.
func (h *helper) sendAway(looks int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	idle := 0
	for _, s := range h.sups {
		if h.ctl.serving(s.slot).Load() == int64(s.pid) {
			idle++
		}
	}
	for _, r := range h.running {
		if h.sups[r.by.pid] != nil {
			idle--
		}
	}
	if len(h.waiting) > 0 || idle <= warm {
		return 0
	}
	if looks+1 < idleTime {
		return looks + 1
	}
	h.wakePipe.dismiss(idle - warm)
	return 0
}

// maxProgress is how much of a progress file goes into a beat, in bytes.
const maxProgress = 64

const (
	reportSuffix  = ".report"
	maxReportFile = 512      // bytes of the end of a report file go into a beat
	maxReports    = 64 << 10 // bytes of all
)

// readProgress publishes what running jobs wrote to DCS_PROGRESS and DCS_REPORT, and removes
// what jobs that are over have left.
func (h *helper) readProgress() {
	names, err := h.spool.list(dirProgress)
	if err != nil {
		return
	}
	said, sizes := map[string]string{}, map[string]int64{}
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
		if err != nil || r == nil {
			remove(h.spool.path(dirProgress, n))
			continue
		}
		if isReport {
			sizes[attempt] = h.readReport(attempt, *reports)
			continue
		}
		if b, err := readPlain(h.spool.path(dirProgress, n), maxProgress); err == nil {
			said[n] = strings.TrimSpace(string(b))
		}
	}
	h.progress.Store(&said)
	h.reportEnds = sizes
	if len(*reports) > 0 {
		h.reports.Store(reports)
	}
}

// readReport puts the end of a report file that has grown among the reports, while there is
// room, and returns the size of the file that is known then.
func (h *helper) readReport(attempt string, reports map[string]string) (size int64) {
	had, path := h.reportEnds[attempt], h.spool.path(dirProgress, attempt+reportSuffix)
	fd, err := openPlain(path)
	if err != nil {
		return had
	}
	defer closeFile(fd, path)
	var st unix.Stat_t
	if err := fstat(fd, path, &st); err != nil || st.Size == had || len(reports) >= maxReports/maxReportFile {
		return had
	}
	b := make([]byte, min(st.Size, maxReportFile))
	n, err := pread(fd, path, b, st.Size-int64(len(b)))
	if err != nil {
		return had
	}
	text := string(b[:n])
	if st.Size > maxReportFile { // the first line has lost its beginning
		_, text, _ = strings.Cut(text, "\n")
	}
	reports[attempt] = text
	return st.Size
}
