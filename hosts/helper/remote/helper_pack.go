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
			return // endPacks follows
		}
		p := h.openPacker()
		p.May = func(id jobs.AttemptID) bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return may(id) && !h.holdsLocked(id) // a copy of its launch may wait in the spool
		}
		_, err := p.Pack(shard)
		h.reportPackTrouble(err)
		_ = p.Reserve()
	})
}

// reservePack creates the file for the first pack, before the files of jobs can take the last inode. A
// successor removes the file of a helper that has died (tempNames.removeDead).
func (h *helper) reservePack() {
	if h.dir == h.workDir && h.packReserved.CompareAndSwap(false, true) {
		h.packQueue.add("", 0, func() { _ = h.openPacker().Reserve() }) // a pack shows the error
	}
}

// endPacks removes what is reserved for the next pack. With pack, it first packs the files of all
// attempts that have ended here. It waits for what is being packed now. No process of the run is left
// that could start an attempt.
func (h *helper) endPacks(pack bool) {
	if h.dir != h.workDir {
		return
	}
	timeout := filesTimeout
	if pack {
		timeout += hosts.MaxPackTime
	}
	done := make(chan struct{})
	end := func() {
		defer close(done)
		if pack {
			h.packAll()
		}
		_ = h.openPacker().Close()
	}
	if h.packQueue.add("", 0, end) {
		withTimeout(timeout, func() { <-done })
	}
}

func (h *helper) packAll() {
	p := h.openPacker()
	p.May = func(jobs.AttemptID) bool { return true }
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

// openPacker returns the packer. Only answers of packQueue use it.
func (h *helper) openPacker() *attempts.Packer {
	if h.packer == nil {
		h.packer = &attempts.Packer{Disk: h.disk, Dir: h.dir, Run: h.config.Run, Host: h.config.Host,
			Least: packLeast, Temp: h.config.temps(h.holder()).path}
	}
	return h.packer
}

func (h *helper) reportPackTrouble(err error) {
	if err != nil && h.packFailed.CompareAndSwap(false, true) {
		h.reportTrouble("outputs stay in files of their own: %v", err)
	}
}
