package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// killDispatcher ends it at any instant; it is resumed here or on the other machine.
func (d *director) killDispatcher() string {
	if d.cur == nil || !d.cur.killed() {
		return ""
	}
	return d.cur.name
}

// terminate asks it to stop dispatching; what runs continues.
func (d *director) terminate() string {
	if d.cur == nil || !d.cur.signal(syscall.SIGTERM) {
		return ""
	}
	return d.cur.name
}

// unplugDesk takes the cable out of the dispatcher's machine: no host can be
// reached from it, though the shared directory can.
func (d *director) unplugDesk() string {
	if d.cur == nil || d.cur.desk.now.Load() == nil || d.busy(away(d.cur.desk)) {
		return ""
	}
	m := d.cur.desk
	d.must(m.link(false))
	after := d.seconds(2, 30)
	d.later(after, away(m), func() { d.must(m.link(true)) })
	return fmt.Sprintf("%s for %s", m.name, after.Round(time.Millisecond))
}

// pauseDispatcher stops it for a while, as a laptop that sleeps.
func (d *director) pauseDispatcher() string {
	if d.cur == nil || d.busy("dispatcher stopped") || !d.cur.signal(syscall.SIGSTOP) {
		return ""
	}
	life := d.cur
	after := d.seconds(1, 25)
	d.later(after, "dispatcher stopped", func() { life.signal(syscall.SIGCONT) })
	return fmt.Sprintf("%s for %s", life.name, after.Round(time.Millisecond))
}

// usurp stops the dispatcher, lets another take over, by force or when its
// beats are stale, and wakes the first. That one must find out that it is
// fenced off, say so and leave.
func (d *director) usurp() string {
	first := d.cur
	if first == nil || d.busy("dispatcher stopped") || d.others() || !strings.Contains(first.words(), " on 4 hosts") && !strings.Contains(first.words(), " to adopt") {
		return "" // there is none, or it has not become the owner yet
	}
	if !first.signal(syscall.SIGSTOP) {
		return ""
	}
	other := d.l.desks[0]
	if other == first.desk {
		other = d.l.desks[1]
	}
	if other.now.Load() == nil {
		first.signal(syscall.SIGCONT)
		return ""
	}
	force := d.rnd.IntN(2) == 0
	epoch := d.epoch()
	d.must(d.resume(other, force))
	after := d.seconds(5, 20)
	if !force {
		after = d.seconds(40, 50) // its beats must be stale first
	}
	d.later(after, "dispatcher stopped", func() {
		if d.epoch() > epoch { // else nobody has taken over yet, and it continues rightly
			d.fenced = append(d.fenced, first)
		}
		d.note("waking %s", first.name)
		first.signal(syscall.SIGCONT)
	})
	return fmt.Sprintf("%s, force %v, for %s", first.name, force, after.Round(time.Millisecond))
}

// epoch is how many dispatchers have owned the run.
func (d *director) epoch() int {
	files, err := filepath.Glob(d.l.hub.path(d.runDir() + "/journal/*.jsonl"))
	if err != nil {
		return 0
	}
	return len(files)
}

// others reports whether a dispatcher that was stopped has not left yet.
func (d *director) others() bool {
	return slices.ContainsFunc(d.lives, func(life *life) bool { return life != d.cur && !life.ended() })
}

// checkFenced: a dispatcher that was taken over says so and leaves with the code
// that means "another continues it".
func (d *director) checkFenced() {
	d.t.Helper()
	for _, life := range d.fenced {
		if life.code == -1 || life.code == 137 {
			continue // its machine lost its power before it could speak
		}
		if life.code != 4 || !strings.Contains(life.words(), "another dispatcher has taken this run over") {
			d.t.Errorf("%s was taken over while it was stopped; it ended with %d and said:\n%s", life.name, life.code, tail(life.words(), 12))
		}
	}
}

// deskDies cuts the power of the dispatcher's machine.
func (d *director) deskDies() string {
	if d.cur == nil {
		return ""
	}
	m := d.cur.desk
	if m.now.Load() == nil || d.busy(away(m)) {
		return ""
	}
	m.powerOff(true)
	after := d.seconds(0.2, 10)
	d.later(after, away(m), func() { d.must(m.boot()) })
	return fmt.Sprintf("%s for %s", m.name, after.Round(time.Millisecond))
}

// fill leaves no byte free on the shared directory for a while.
func (d *director) fill() string {
	if d.busy("disk full") {
		return ""
	}
	name := d.l.hub.path(sharedDir + "/.filler")
	from := time.Now()
	f, err := os.Create(name)
	if errors.Is(err, syscall.ENOSPC) {
		return ""
	}
	d.must(err)
	defer f.Close()
	block := make([]byte, 64<<10)
	for size := len(block); size > 0; {
		if _, err := f.Write(block[:size]); err != nil {
			size /= 2
		}
	}
	after := d.seconds(2, 12)
	d.later(after, "disk full", func() {
		d.must(os.Remove(name))
		d.spans = append(d.spans, span{from, time.Now()})
	})
	return "for " + after.Round(time.Millisecond).String()
}

// readOnly mounts the shared directory read-only on one host for a while.
func (d *director) readOnly() string {
	m := d.host()
	if m == nil || d.busy(m.name+" read-only") {
		return ""
	}
	from := time.Now()
	s := m.now.Load()
	how, undo := "remounted", []string{"mount", "-o", "remount,rw,bind", sharedDir}
	if s.run("mount", "-o", "remount,ro,bind", sharedDir) != nil {
		// Files are open for writing: only what is opened from now on meets it.
		how, undo = "mounted over", []string{"umount", "-l", sharedDir}
		d.must(s.run("sh", "-ec", "mkdir -p /run/ro; mount --bind $0 /run/ro; mount -o remount,ro,bind /run/ro; mount --bind /run/ro $0; umount /run/ro", sharedDir))
	}
	after := d.seconds(2, 15)
	d.later(after, m.name+" read-only", func() {
		if m.now.Load() == s { // a reboot mounts it anew
			d.must(s.run(undo...))
		}
		d.spans = append(d.spans, span{from, time.Now()})
	})
	return fmt.Sprintf("%s, %s, for %s", m.name, how, after.Round(time.Millisecond))
}
