//go:build linux

package remote

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

// firstBeat is how soon after the hello the first beat is sent: a host with a floor
// (max_load, min_mem_free, min_disk_free) starts nothing before it.
const firstBeat = 150 * time.Millisecond

// beats sends a sign of life with measurements every lim.beat, the first one at
// once. It touches no file system but /proc: a hung NFS must not look like a dead host.
func (h *helper) beats() {
	m := &meter{}
	m.measure(nil)
	time.Sleep(firstBeat)
	early := h.beat(m)
	early.Early = true
	h.out.send(early)
	for range time.Tick(h.lim.beat) {
		h.out.send(h.beat(m))
	}
}

func (h *helper) beat(m *meter) *hosts.Beat {
	h.mu.Lock()
	b := &hosts.Beat{Running: len(h.running), Buffered: len(h.waiting), LockedGPUs: h.lockedGPUs}
	roots := map[int]bool{}
	for pid := range h.sups {
		roots[pid] = true
	}
	for _, r := range h.running {
		roots[r.by.pid] = true
	}
	h.mu.Unlock()
	b.Seq, b.Uptime = h.pings.Load(), uptime()
	b.Load = loadAverages()
	b.Busy, b.Ours = m.measure(roots)
	b.MemFree = memory().available
	b.DiskFree, b.FSDelay = h.fs.now()
	if p := h.progress.Load(); p != nil && len(*p) > 0 {
		b.Progress = *p
	}
	return b
}

// fsState is what the file-system watch found last, and since when it is stuck.
type fsState struct {
	asked atomic.Int64 // boot clock, ns: when the present question was put; 0: none is open
	free  atomic.Int64 // bytes
	delay atomic.Int64 // ns the last answer took
}

// now returns free bytes (-1: not known in time) and the delay, which grows
// while an answer is outstanding.
func (f *fsState) now() (free int64, delay time.Duration) {
	free, delay = f.free.Load(), time.Duration(f.delay.Load())
	if asked := f.asked.Load(); asked != 0 {
		if open := uptime() - time.Duration(asked); open > time.Second {
			return -1, max(open, delay)
		}
	}
	return free, delay
}

// watchFiles asks the file system of the attempts for a sign of life, and
// work_dir for newer epochs. It may hang; the beats say so. It returns when a
// newer dispatcher owns the run.
func (h *helper) watchFiles() error {
	h.fs.free.Store(-1)
	for {
		began := uptime()
		h.fs.asked.Store(int64(began))
		free := int64(-1)
		var st unix.Statfs_t
		if statfs(h.dir, &st) == nil {
			free = int64(st.Bavail) * st.Bsize
		}
		list(h.dir)
		h.fs.delay.Store(int64(uptime() - began))
		h.fs.free.Store(free)
		h.fs.asked.Store(0)
		if by, err := fencedBy(h.workDir, h.open.Epoch); err == nil && by > 0 {
			h.fencedBy.Store(int64(by))
			return &hosts.FencedError{Host: h.cfg.Host, By: by}
		}
		time.Sleep(h.lim.beat)
	}
}
