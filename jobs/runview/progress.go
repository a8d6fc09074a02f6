package runview

import (
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// say adds to a row what its job says of itself. A host is heard only on its own jobs.
func (b *Board) say(r *Row) {
	if h := b.status.progress[r.Host]; h != nil && r.Phase <= Away {
		if text, ok := h.text[jobs.AttemptID{Job: r.ID, N: r.Attempt}.String()]; ok {
			r.Progress, r.Said = sched.ReadProgress(text)
		}
	}
}

// maxSaid bounds the jobs of a host that are heard: more cannot run there.
const maxSaid = 4096

// keepSaid lets what the jobs of a host said stand until its next beat: while it is
// away, and when it has just come back.
func keepSaid(before, now *status) {
	for i := range now.hosts {
		name := now.hosts[i].Name
		if old := before.progress[name]; old != nil && now.progress[name] == nil && i < len(now.beats) && now.beats[i] == old.beat {
			if now.progress == nil {
				now.progress = map[string]*said{}
			}
			now.progress[name] = old
		}
	}
}

// progressed enters what running jobs say of themselves, where a new beat has come.
func (b *Board) progressed(before, now *status) {
	for host, h := range now.progress {
		if old := before.progress[host]; old != nil && old.beat == h.beat {
			continue
		}
		left := maxSaid
		for name, text := range h.text {
			if left--; left < 0 {
				break
			}
			id, err := jobs.ParseAttemptID(name)
			if err != nil || int(id.Job) > len(b.rows) {
				continue
			}
			r := &b.rows[id.Job-1]
			share, _ := sched.ReadProgress(text)
			if n := uint16(share * 10_000); share >= 0 && runs(r.phase) && int(r.attempts) == id.N && b.names[r.host] == host && n != r.progress {
				r.progress = n
				b.edition++
			}
		}
	}
}
