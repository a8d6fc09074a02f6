package sim

import (
	"slices"
	"time"

	"dcs-tui/jobs"
)

// In some worlds, hosts die and never come back. At least one stays usable, and each can run every
// job. So every job must end. Nothing waits for a host without a limit there (on_lost=wait), and the
// inventory does not change.

// drawDeaths gives some worlds hosts that die.
func (w *World) drawDeaths() {
	if w.mayBeDamaged || w.onlyCuts || w.cloud != nil || len(w.inventoryFile) < 2 || !w.choices.OneIn(2) {
		return
	}
	w.losesHosts = true
	w.cfg.OnLost = jobs.OnLostDefault
	for i, s := range w.inventoryFile {
		s.Tags, s.GPUs, s.Queues, s.Link, s.File = []string{"big"}, 1, nil, "ssh", ""
		s.Slots.Fixed = max(s.Slots.Fixed, 3)
		w.machineAt(s).gpus = 1
		if i == 0 && w.choices.OneIn(3) {
			s.Link, s.File = "local", "hosts.toml"
		}
		if i > 0 && w.choices.OneIn(2) {
			s.Jump = []string{"gate"}
		}
		if w.choices.OneIn(4) {
			s.OutageAfter = 2 * time.Minute
		}
		w.recordSpec(s)
	}
}

// usableHosts returns the hosts that have not died.
func (w *World) usableHosts() []*host {
	return slices.DeleteFunc(slices.Clone(w.hosts), func(h *host) bool { return h.isDead })
}

// killHosts lets a host die, or all but one.
func killHosts(w *World) bool {
	list := w.usableHosts()
	if !w.losesHosts || len(list) < 2 {
		return false
	}
	i := w.choices.Draw(len(list))
	if w.choices.Draw(3) > 0 {
		list[i].dieForGood()
		return true
	}
	for _, h := range slices.Delete(list, i, i+1) {
		w.after(w.between(0, 5*time.Second), h.dieForGood)
	}
	return true
}

// dieForGood ends everything on a host, which is never reachable again. The last host stays.
func (h *host) dieForGood() {
	if h.isDead || len(h.w.usableHosts()) < 2 {
		return
	}
	h.isDead = true
	h.reboot(maxTime * 2)
}
