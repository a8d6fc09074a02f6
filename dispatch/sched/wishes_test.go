package sched

import (
	"time"

	"dcs-tui/hosts"
)

// What the owners of the world's hosts wish: quiet hours, a most load.

// quietLeeway is how long after the beginning of quiet hours something may still
// start: a host that is cut off has its lease.
const quietLeeway = hosts.DefaultLostAfter + 15*time.Second

// rests draws a host's own wishes: a most load, quiet hours that fall into the run.
func (w *world) rests(f *fakeHost) {
	if w.more.IntN(3) == 0 {
		f.spec.MaxLoad = 3
	}
	f.zone = (w.more.IntN(27) - 13) * 3600
	for range w.more.IntN(3) {
		from := (timeOfDay(wallStart, f.zone) + time.Duration(w.more.IntN(20))*time.Minute) % day
		f.spec.Quiet = append(f.spec.Quiet, hosts.Quiet{From: from, To: (from + time.Duration(1+w.more.IntN(30))*time.Minute) % day})
	}
}

// early is the beat right after the hello.
func (h *fakeHost) early(gen int) {
	h.w.after(150*time.Millisecond, func() {
		if h.gen == gen && h.up && h.w.now >= h.mute {
			h.report(HostBeat{h.spec.Name, &hosts.Beat{Early: true, Load: h.draw(), Busy: 4, MemFree: 4 << 30, DiskFree: -1,
				Running: h.count(fakeRunning), Buffered: len(h.spool), Uptime: h.w.now}})
		}
	})
}

// draw gives a load that changes now and then.
func (h *fakeHost) draw() [3]float64 {
	if h.w.more.IntN(10) == 0 {
		h.load = 4 * h.w.more.Float64()
	}
	return [3]float64{h.load}
}
