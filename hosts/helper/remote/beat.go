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
// once. It touches no file system but /proc, and waits for no lock that is held while
// another is used: a hung NFS must not look like a dead host.
func (h *helper) beats() {
	m := &meter{}
	m.measure(nil)
	time.Sleep(firstBeat)
	c := &census{}
	early := h.beat(m, c)
	early.Early = true
	h.out.send(early)
	for range time.Tick(h.lim.beat) {
		h.out.send(h.beat(m, c))
	}
}

// census is what a beat says of attempts and supervisors.
type census struct {
	running, buffered int
	lockedGPUs        []int
	roots             map[int]bool // pids of supervisors
}

// censusPatience is how long a beat waits for the helper's lock. It is held across
// the spool's I/O, which hangs where the spool is below a hung work_dir.
const censusPatience = 100 * time.Millisecond

// update counts anew, or leaves c as it was if that would take too long.
func (c *census) update(h *helper) {
	for until := uptime() + censusPatience; !h.mu.TryLock(); time.Sleep(time.Millisecond) {
		if uptime() > until {
			return
		}
	}
	defer h.mu.Unlock()
	*c = census{running: len(h.running), buffered: len(h.waiting), lockedGPUs: h.lockedGPUs, roots: map[int]bool{}}
	for pid := range h.sups {
		c.roots[pid] = true
	}
	for _, r := range h.running {
		c.roots[r.by.pid] = true
	}
}

func (h *helper) beat(m *meter, c *census) *hosts.Beat {
	c.update(h)
	b := &hosts.Beat{Running: c.running, Buffered: c.buffered, LockedGPUs: c.lockedGPUs}
	b.Seq, b.Uptime = h.pings.Load(), uptime()
	b.Load = loadAverages()
	b.Busy, b.Ours = m.measure(c.roots)
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

// watchFiles asks the file systems of the attempts, of work_dir and of the spool for
// a sign of life, and work_dir for newer epochs. It may hang; the beats say so. It returns when a
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
		by, err := fencedBy(h.workDir, h.open.Epoch)
		list(h.spool.dir)
		h.fs.delay.Store(int64(uptime() - began))
		h.fs.free.Store(free)
		h.fs.asked.Store(0)
		if err == nil && by > 0 {
			h.fencedBy.Store(int64(by))
			return &hosts.FencedError{Host: h.cfg.Host, By: by}
		}
		time.Sleep(h.lim.beat)
	}
}
