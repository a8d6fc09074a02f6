//go:build linux

package remote

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// firstHeartbeatDelay is the time from the hello to the first heartbeat. A host with a limit
// (max_load, min_mem_free, min_disk_free) starts nothing before it.
const firstHeartbeatDelay = 150 * time.Millisecond

// sendHeartbeats sends a heartbeat with measurements every Open.Heartbeat. The first one follows
// after firstHeartbeatDelay, and the second one within limits.heartbeat, because the dispatcher
// counts the link as working from then on. It reads no file system but /proc, and does not wait for
// locks that are held during file I/O: a hung NFS must not make the host look dead.
func (h *helper) sendHeartbeats() {
	m := &meter{}
	m.measure(nil)
	time.Sleep(firstHeartbeatDelay)
	c := &census{}
	early := h.heartbeat(m, c)
	early.Early = true
	h.outbox.send(early)
	interval := cmp.Or(h.open.Heartbeat, h.limits.heartbeat)
	ticker := time.NewTicker(min(interval, h.limits.heartbeat))
	for {
		select {
		case <-ticker.C:
			ticker.Reset(interval)
			h.outbox.send(h.heartbeat(m, c))
		case <-h.files.heartbeatNow:
			b := h.heartbeat(m, c)
			b.Early = true // it may follow the last one closely
			h.outbox.send(b)
		}
	}
}

// census holds the numbers of attempts and supervisors for a heartbeat.
type census struct {
	running, buffered int
	gpus              gpuUse
	roots             map[int]bool           // pids of supervisors
	attempts          map[int]jobs.AttemptID // by pid of the supervisor
}

// censusTimeout is how long a heartbeat waits for helper.mu, which is held during I/O in the
// spool. That I/O hangs if the spool is below a hung work_dir.
const censusTimeout = 100 * time.Millisecond

// update counts again. It leaves c unchanged if the lock is not free within censusTimeout.
func (c *census) update(h *helper) {
	for until := uptime() + censusTimeout; !h.mu.TryLock(); time.Sleep(time.Millisecond) {
		if uptime() > until {
			return
		}
	}
	defer h.mu.Unlock()
	*c = census{
		running:  len(h.running),
		buffered: len(h.waiting),
		gpus:     h.gpus,
		roots:    map[int]bool{},
		attempts: map[int]jobs.AttemptID{},
	}
	for pid := range h.supervisors {
		c.roots[pid] = true
	}
	for id, r := range h.running {
		c.roots[r.holder.PID] = true
		c.attempts[r.holder.PID] = id
	}
}

// minManyCores is the number of cores from which on a heartbeat names an attempt. Nearly all
// jobs use one core, which their slot accounts for.
const minManyCores = 1.1

func (h *helper) heartbeat(m *meter, c *census) *hosts.Heartbeat {
	c.update(h)
	b := &hosts.Heartbeat{
		Running:    c.running,
		Buffered:   c.buffered,
		LockedGPUs: c.gpus.whole,
		PartGPUs:   c.gpus.parts,
		Sharing:    h.sharing.current.Load(),
	}
	b.Seq, b.Uptime = h.pings.Load(), uptime()
	_, offset := time.Now().Zone()
	b.ZoneSeconds = &offset
	b.Load, _ = loadAverages()
	b.Busy, b.Ours = m.measure(c.roots)
	for pid, id := range c.attempts {
		if n := m.rates[pid]; n > minManyCores {
			jobs.Insert(&b.Cores, id.String(), n)
		}
	}
	memory := readMemory()
	h.memoryTotal.Store(memory.total)
	b.MemFree = h.allowed.memoryWithin(memory.available)
	b.Owner = *h.owner.Load()
	b.Suspended, _ = h.control.suspended()
	b.DiskFree, b.FSDelay = h.fs.current()
	b.Files, b.Receives = h.describeTransfers()
	if p := h.progress.Load(); p != nil && len(*p) > 0 {
		b.Progress = *p
	}
	if p := h.reports.Swap(nil); p != nil {
		b.Reports = *p
	}
	return b
}

// fsState is the latest result of watchFiles.
type fsState struct {
	checkBegan atomic.Int64 // boot clock, ns: start of the current check; 0: none is under way
	freeBytes  atomic.Int64
	delay      atomic.Int64 // ns that the last check took
}

// current returns the free bytes (-1: unknown) and the delay, which includes a check that is
// under way.
func (f *fsState) current() (free int64, delay time.Duration) {
	free, delay = f.freeBytes.Load(), time.Duration(f.delay.Load())
	if asked := f.checkBegan.Load(); asked != 0 {
		if open := uptime() - time.Duration(asked); open > time.Second {
			return -1, max(open, delay)
		}
	}
	return free, delay
}

// watchFiles checks that the file systems of the attempts, work_dir, and the spool respond, looks for
// newer epochs in work_dir, and measures the space for what jobs write: the spool has only small files, and
// a launch that finds no space there is refused. It may hang, which heartbeats report. It returns when a
// newer dispatcher owns the run.
func (h *helper) watchFiles() error {
	h.fs.freeBytes.Store(-1)
	for {
		began := uptime()
		h.fs.checkBegan.Store(int64(began))
		free := int64(-1)
		for _, dir := range []string{h.dir, h.workDir} {
			n, err := freeBytes(dir)
			if err != nil {
				free = -1
				break
			}
			if n < free || free < 0 {
				free = n
			}
		}
		listNames(h.dir)
		by, err := fencedBy(h.workDir, h.open.Epoch)
		listNames(h.spool.dir)
		h.fs.delay.Store(int64(uptime() - began))
		h.fs.freeBytes.Store(free)
		h.fs.checkBegan.Store(0)
		if err == nil && by > 0 {
			h.fencedBy.Store(int64(by))
			return &hosts.FencedError{Host: h.config.Host, By: by}
		}
		time.Sleep(h.limits.heartbeat)
	}
}

// freeBytes returns the bytes that can be written to the file system of dir: none if it is read-only or has
// no free inode.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	err := statfs(dir, &st)
	if st.Flags&unix.ST_RDONLY != 0 || st.Files > 0 && st.Ffree == 0 {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, err
}

// meter measures the CPU use between calls of measure.
type meter struct {
	measuredAt time.Duration
	busy       uint64          // ticks that all cores have been busy since boot
	scannedAt  time.Duration   // when trees were last measured
	treeTicks  map[int]uint64  // by supervisor: ticks of its tree, including dead members
	cores      float64         // ours, as last returned
	rates      map[int]float64 // by supervisor: cores that its tree used between the last two calls; empty: unknown
	foreign    map[int]bool    // pids outside of the trees, which need not be read each time
	others     []int           // pids of the other processes at the last scan
	// Numbers of the newest process or thread at the last scan, and at the one before; 0: unknown.
	newest, older int
	scans         int
}

const (
	foreignRescan = 200  // scans after which all processes are read again, in case all numbers were reused
	maxProbed     = 1024 // numbers of new processes and threads up to which each is probed
	maxForeign    = 4096 // foreign processes from which on all processes are listed each time
	quietCores    = 0.5  // with fewer busy cores it does not matter who uses them
)

// measure returns the number of cores that were busy since the last call, in all and in the
// trees of the given supervisors. On a quiet host the second number is an estimate, because
// scanning all processes would be most of the helper's work.
func (m *meter) measure(roots map[int]bool) (busy, ours float64) {
	now, ticks := uptime(), busyTicks()
	span := (now - m.measuredAt).Seconds() * userHZ
	first, last := m.measuredAt == 0, m.measuredAt
	if !first && span > 0 {
		busy = float64(ticks-min(m.busy, ticks)) / span
	}
	m.measuredAt, m.busy = now, ticks
	m.rates = map[int]float64{}
	if !first && busy < quietCores {
		return busy, min(busy, m.cores)
	}
	trees, areNew := m.trees(roots)
	switch {
	case first || span <= 0:
	case m.scannedAt != last || !areNew: // some trees were not measured when this span began
		ours = busy
	default:
		for root, t := range trees {
			// A new tree counts from its birth.
			m.rates[root] = float64(t-min(m.treeTicks[root], t)) / span
			ours += m.rates[root]
		}
	}
	m.scannedAt, m.treeTicks, m.cores = now, trees, ours
	return busy, ours
}

// trees sums the CPU time of each supervisor's tree. A parent's time includes that of its
// dead children, so the sums only grow. It does not read processes again that it has found outside
// of the trees, because a process never joins a tree later. areNew reports whether all trees that were not
// there at the last scan began after it. Those of an earlier helper did not.
func (m *meter) trees(roots map[int]bool) (sums map[int]uint64, areNew bool) {
	sums, areNew = make(map[int]uint64, len(roots)), true
	if len(roots) == 0 {
		return sums, areNew
	}
	m.scans++
	for root := range roots {
		if m.foreign[root] { // it was started after the last listing of supervisors, or its number is reused
			m.foreign = nil
		}
	}
	if m.foreign == nil || m.scans%foreignRescan == 1 {
		m.foreign, m.older = map[int]bool{}, 0 // list all
	}
	_, newest := loadAverages() // before the scan, which thus has all processes up to this one
	t := m.scan(newest)
	for root := range roots {
		if p, ok := t[root]; ok {
			sums[root] = p.ticks
			_, wasMeasured := m.treeTicks[root]
			areNew = areNew && (wasMeasured || p.start >= uint64(m.scannedAt.Seconds()*userHZ))
		}
	}
	for pid, p := range t {
		switch top := t.topAbove(p, roots); {
		case roots[top]:
			sums[top] += p.ticks
		case !roots[pid] && (top == 0 || m.foreign[top]): // otherwise its parent ended during the scan
			m.foreign[pid] = true
		}
	}
	m.others = m.others[:0]
	for pid := range t {
		if !m.foreign[pid] {
			m.others = append(m.others, pid)
		}
	}
	return sums, areNew
}

// scan takes a snapshot without foreign processes. newest is the number of the newest process or thread.
// Numbers are given in ascending order, so scan knows which ones are new or reused. It lists all
// processes only if there are many of them, because that takes a millisecond for a few hundred
// processes. A process that is just being created gets its number before it is visible, so numbers
// under which no process was found are probed twice.
func (m *meter) scan(newest int) table {
	first, last := m.older, m.newest
	m.older, m.newest = last, newest
	maps.DeleteFunc(m.foreign, func(pid int, _ bool) bool {
		return last < pid && pid <= newest || newest < last && (last < pid || pid <= newest)
	})
	if first == 0 || first > last || last > newest || newest-first > maxProbed || len(m.foreign) > maxForeign {
		return scan(m.foreign)
	}
	pids := m.others
	for pid := first + 1; pid <= newest; pid++ {
		if !m.foreign[pid] && unix.Tgkill(pid, pid, 0) != unix.ESRCH { // it is a process and not a thread
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return readProcs(slices.Compact(pids))
}

// topAbove returns the nearest ancestor of p that is one of the roots or is not in t.
func (t table) topAbove(p proc, roots map[int]bool) int {
	for hops := 0; hops < 64; hops++ {
		up, ok := t[p.ppid]
		if roots[p.ppid] || !ok {
			break
		}
		p = up
	}
	return p.ppid
}

// busyTicks sums the first line of /proc/stat without idle and iowait.
func busyTicks() (n uint64) {
	var buf [256]byte
	k, _ := procStart("/proc/stat", buf[:])
	line, _, _ := bytes.Cut(buf[:k], []byte{'\n'})
	for i, w := range bytes.Fields(line) {
		switch i {
		case 0, 4, 5, 9, 10: // name, idle, iowait; user and nice include guest times
		default:
			n += parseNumber(w)
		}
	}
	return n
}

// loadAverages reads /proc/loadavg, which also has the number of the newest process or thread (0:
// unknown).
func loadAverages() (l [3]float64, newest int) {
	var buf [128]byte
	n, _ := procStart("/proc/loadavg", buf[:])
	for i, w := range bytes.Fields(buf[:n]) {
		switch {
		case i < len(l):
			l[i], _ = strconv.ParseFloat(string(w), 64)
		case i == 4:
			newest = int(parseNumber(w))
		}
	}
	return l, newest
}

// memInfo holds amounts of memory, in bytes.
type memInfo struct {
	total     int64 // 0: unknown
	available int64 // -1: unknown
}

// readMemory returns the memory that the session may use.
func readMemory() memInfo {
	m := readMachineMemory()
	return m.within(memoryLimit(memoryGroups(), m.total))
}

// memoryGroups returns the control groups of this process that limit memory. They are searched once,
// because that takes longer than reading them.
var memoryGroups = sync.OnceValue(func() []string { return openControlGroups().dirs("memory") })

// readMachineMemory reads /proc/meminfo.
func readMachineMemory() memInfo {
	var buf [256]byte // both amounts are in the first three lines
	n, _ := procStart("/proc/meminfo", buf[:])
	return parseMemory(buf[:n])
}

// parseMemory parses the text of /proc/meminfo. In a container it may be empty.
func parseMemory(b []byte) memInfo {
	m := memInfo{available: -1}
	for line := range bytes.Lines(b) {
		w := bytes.Fields(line)
		if len(w) < 2 {
			continue
		}
		switch string(w[0]) {
		case "MemTotal:":
			m.total = int64(parseNumber(w[1])) << 10
		case "MemAvailable:":
			m.available = int64(parseNumber(w[1])) << 10
		}
	}
	return m
}
