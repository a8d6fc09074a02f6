//go:build linux

package remote

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestSupervisorReleasesMemoryDuringALongJob checks that a supervisor returns the memory that short
// jobs have left when a job runs from one tick to the next but one, and that it collects no garbage
// for that if there is nothing to release.
func TestSupervisorReleasesMemoryDuringALongJob(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only explicit collections
	const garbage, most = 256 << 20, 64 << 20
	ctl, err := openControl(t.TempDir())
	must(t, err)
	w := &watch{slot: &slot{control: ctl, config: &slotConfig{}}}
	ctl.word(ctlHeartbeat).Store(int64(uptime())) // no file is written
	memory := func() (m runtime.MemStats) {
		runtime.ReadMemStats(&m)
		return m
	}
	run := func() { // a job that runs for three ticks
		w.current = &current{}
		for range 3 {
			w.tick()
		}
	}
	defer func() {
		w.mu.Lock()
		w.current = nil
		w.mu.Unlock()
	}()
	w.freedAt = memory().NumGC
	before := w.freedAt
	run()
	if n := memory().NumGC - before; n != 0 {
		t.Errorf("%d collections although there was none since the last release", n)
	}
	runtime.KeepAlive(make([]byte, garbage))
	runtime.GC()
	before = memory().NumGC
	run()
	m := memory()
	if unused := m.HeapIdle - m.HeapReleased; m.NumGC != before+1 || unused > most {
		t.Errorf("%d collections, and %d bytes are unused; want one collection and at most %d bytes",
			m.NumGC-before, unused, most)
	}
	runtime.GC()
	before = memory().NumGC
	w.current = &current{}
	w.tick()
	if n := memory().NumGC - before; n != 0 {
		t.Errorf("%d collections at the first tick of a job", n)
	}
}
