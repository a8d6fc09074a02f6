//go:build linux

package remote

import (
	"slices"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/onfile"
	"dcs-tui/jobs/rundir"
)

// looker reads for the dispatcher what the shared directory shows of hosts that
// cannot be asked (X2). One look is made at a time, apart from all else: it hangs
// when the directory does.
type looker struct {
	disk  rundir.Disk // nil: the real one
	mu    sync.Mutex
	asked []*hosts.Look // one a host: a newer one takes the place of an older
	since time.Duration // boot clock: when the present look began; 0: none is being made
}

const (
	maxLooks  = 256             // hosts that are asked for at a time
	looksHang = 5 * time.Second // a look that takes longer makes others be refused
	whyHangs  = "the file system does not answer"
)

// look takes a question in.
func (h *helper) look(m *hosts.Look) {
	l := &h.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	same := slices.IndexFunc(l.asked, func(o *hosts.Look) bool { return o.Host == m.Host })
	switch {
	case l.since > 0 && uptime()-l.since > looksHang, same < 0 && len(l.asked) >= maxLooks:
		h.out.send(&hosts.Looked{Host: m.Host, Why: whyHangs})
		return
	case same >= 0:
		l.asked[same] = m
	default:
		l.asked = append(l.asked, m)
	}
	if l.since == 0 {
		l.since = uptime()
		go h.lookAll()
	}
}

// lookAll answers until nothing is asked.
func (h *helper) lookAll() {
	l := &h.looks
	for {
		l.mu.Lock()
		if len(l.asked) == 0 {
			l.since = 0
			l.mu.Unlock()
			return
		}
		m := l.asked[0]
		l.asked = l.asked[1:]
		l.since = uptime()
		l.mu.Unlock()
		h.out.send(h.looked(m))
	}
}

// looked answers one question.
func (h *helper) looked(m *hosts.Look) *hosts.Looked {
	disk := h.looks.disk
	if disk == nil {
		disk = onlyRead
	}
	return onfile.Look(disk, h.dir, h.cfg.Run, m.Host, m.Attempts)
}
