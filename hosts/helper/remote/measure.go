//go:build linux

package remote

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// meter measures CPU between calls.
type meter struct {
	at      time.Duration
	busy    uint64          // ticks all cores were busy since boot
	scanned time.Duration   // when trees were last measured
	ours    map[int]uint64  // by supervisor: ticks of its whole tree, dead members included
	cores   float64         // ours, as it was last returned
	rates   map[int]float64 // by supervisor: cores that its tree used between the last two calls; empty: not known
	kernel  map[int]bool    // pids of kernel threads: not worth reading each time
	scans   int
}

const (
	rescan = 20  // after so many scans kernel threads are looked at again
	quiet  = 0.5 // cores; with fewer busy it does not matter whose they are
)

// measure returns how many cores were busy since the last call, with all and
// with the trees of the given supervisors. On a quiet host, where looking at all
// processes would be most of what the helper does, the second number is an estimate.
func (m *meter) measure(roots map[int]bool) (busy, ours float64) {
	now, ticks := uptime(), busyTicks()
	span := (now - m.at).Seconds() * userHZ
	first, last := m.at == 0, m.at
	if !first && span > 0 {
		busy = float64(ticks-min(m.busy, ticks)) / span
	}
	m.at, m.busy = now, ticks
	m.rates = map[int]float64{}
	if !first && busy < quiet {
		return busy, min(busy, m.cores)
	}
	trees := m.trees(roots)
	switch {
	case first || span <= 0:
	case m.scanned != last: // not measured when this span began
		ours = busy
	default:
		for root, t := range trees {
			// What a tree had used before it was first seen is counted from its birth.
			m.rates[root] = float64(t-min(m.ours[root], t)) / span
			ours += m.rates[root]
		}
	}
	m.scanned, m.ours, m.cores = now, trees, ours
	return busy, ours
}

// trees sums the CPU time of each supervisor's tree. The dead are in their
// parent's sum, so the total only grows.
func (m *meter) trees(roots map[int]bool) map[int]uint64 {
	sums := make(map[int]uint64, len(roots))
	if len(roots) == 0 {
		return sums
	}
	if m.scans++; m.scans%rescan == 1 {
		m.kernel = nil
	}
	t := scan(m.kernel)
	if m.kernel == nil {
		m.kernel = map[int]bool{}
		for pid, p := range t {
			if pid == 2 || p.ppid == 2 {
				m.kernel[pid] = true
			}
		}
	}
	for root := range roots {
		if p, ok := t[root]; ok {
			sums[root] = p.ticks
		}
	}
	for pid, p := range t {
		up := p.ppid
		for hops := 0; hops < 64; hops++ {
			if roots[up] && pid != up {
				sums[up] += p.ticks
				break
			}
			q, ok := t[up]
			if !ok {
				break
			}
			up = q.ppid
		}
	}
	return sums
}

// busyTicks reads the first line of /proc/stat: all but idle and waiting for I/O.
func busyTicks() (n uint64) {
	var buf [256]byte
	k, _ := procStart("/proc/stat", buf[:])
	line, _, _ := bytes.Cut(buf[:k], []byte{'\n'})
	for i, w := range bytes.Fields(line) {
		switch i {
		case 0, 4, 5, 9, 10: // name, idle, iowait; guest times are in user and nice already
		default:
			n += number(w)
		}
	}
	return n
}

func loadAverages() (l [3]float64) {
	b, _ := os.ReadFile("/proc/loadavg")
	for i, w := range bytes.Fields(b) {
		if i == len(l) {
			break
		}
		l[i], _ = strconv.ParseFloat(string(w), 64)
	}
	return l
}

// memInfo holds amounts of memory, in bytes.
type memInfo struct {
	total     int64 // 0: unknown
	available int64 // -1: unknown
}

// memory reads /proc/meminfo.
func memory() memInfo {
	b, _ := os.ReadFile("/proc/meminfo")
	return parseMemory(b)
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
			m.total = int64(number(w[1])) << 10
		case "MemAvailable:":
			m.available = int64(number(w[1])) << 10
		}
	}
	return m
}
