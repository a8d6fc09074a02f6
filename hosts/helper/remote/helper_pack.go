//go:build linux

package remote

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// packLeast is the number of attempts in a pack below which a host makes none.
const packLeast = 4

// pack packs the files of attempts that have ended. If too many messages wait, this one is dropped, and
// its attempts are packed at the end of the run.
func (h *helper) pack(m *hosts.Pack) {
	if len(m.Attempts) == 0 || h.isFenced(m.Epoch, nil) || h.dir != h.workDir {
		return
	}
	shard, may := jobs.ShardDir(m.Attempts[0].Job), attempts.Among(m.Attempts)
	h.packQueue.add(shard, 0, func() {
		if h.ending.Load() {
			return // packRest follows
		}
		_, err := h.packer(func(id jobs.AttemptID) bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return may(id) && !h.holdsLocked(id) // a copy of its launch may wait in the spool
		}).Pack(shard)
		h.reportPackTrouble(err)
	})
}

// packRest packs the files of all attempts that have ended here. It first waits for what is being packed
// now. No process of the run is left that could start an attempt.
func (h *helper) packRest() {
	done := make(chan struct{})
	if h.dir == h.workDir && h.packQueue.add("", 0, func() { h.packAll(); close(done) }) {
		withTimeout(hosts.MaxPackTime+filesTimeout, func() { <-done })
	}
}

func (h *helper) packAll() {
	p := h.packer(func(jobs.AttemptID) bool { return true })
	shards, err := p.Shards()
	end := time.Now().Add(hosts.MaxPackTime)
	for _, shard := range slices.Backward(shards) { // the newest files are in the last ones
		if time.Now().After(end) {
			break
		}
		_, perr := p.Pack(shard)
		err = cmp.Or(err, perr)
	}
	h.reportPackTrouble(err)
}

func (h *helper) packer(may func(jobs.AttemptID) bool) *attempts.Packer {
	return &attempts.Packer{Disk: h.disk, Dir: h.dir, Run: h.config.Run, Host: h.config.Host, May: may,
		Least: packLeast, Temp: h.config.temps(h.holder()).path}
}

func (h *helper) reportPackTrouble(err error) {
	if err != nil && h.packFailed.CompareAndSwap(false, true) {
		h.reportTrouble("outputs stay in files of their own: %v", err)
	}
}
