//go:build linux

package remote

import (
	"cmp"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
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
	return &attempts.Packer{Disk: packDisk{rundir.WithoutPacks(rundir.Within(h.dir))}, Dir: h.dir, Run: h.config.Run,
		Host: h.config.Host, May: may, Least: packLeast, Temp: h.config.temps(h.holder()).path}
}

func (h *helper) reportPackTrouble(err error) {
	if err != nil && h.packFailed.CompareAndSwap(false, true) {
		h.reportTrouble("outputs stay in files of their own: %v", err)
	}
}

// packDisk lets tests make the operations of a packer fail, like the calls of calls.go.
type packDisk struct{ rundir.Disk }

// withFault makes an operation like call. The errors of the operation name the file already.
func withFault[T any](op, path string, do func() (T, error)) (result T, err error) {
	at := func(done bool) error {
		for fault != nil {
			err := fault(op, path, done)
			if err == nil {
				return nil
			}
			if err != unix.EINTR {
				return &fs.PathError{Op: op, Path: path, Err: err}
			}
		}
		return nil
	}
	if err = at(false); err != nil {
		return result, err
	}
	if result, err = do(); err == nil {
		err = at(true)
	}
	return result, err
}

func withFaultOnly(op, path string, do func() error) error {
	_, err := withFault(op, path, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (d packDisk) Names(dir string) ([]string, error) {
	return withFault("readdir", dir, func() ([]string, error) { return d.Disk.Names(dir) })
}

func (d packDisk) Lstat(path string) (fs.FileInfo, error) {
	return withFault("stat", path, func() (fs.FileInfo, error) { return d.Disk.Lstat(path) })
}

func (d packDisk) Rename(from, to string) error {
	return withFaultOnly("rename", from, func() error { return d.Disk.Rename(from, to) })
}

func (d packDisk) Remove(path string) error {
	return withFaultOnly("unlink", path, func() error { return d.Disk.Remove(path) })
}

func (d packDisk) SyncDir(dir string) error {
	return withFaultOnly("fsync", dir, func() error { return d.Disk.SyncDir(dir) })
}

func (d packDisk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	f, err := withFault("open", path, func() (rundir.File, error) { return d.Disk.OpenFile(path, flag, perm) })
	if err != nil && f != nil {
		_ = f.Close() // the fault is that the reply was lost
	}
	return packFile{f, path}, err
}

type packFile struct {
	rundir.File
	path string
}

func (f packFile) ReadAt(b []byte, off int64) (int, error) {
	return withFault("read", f.path, func() (int, error) { return f.File.ReadAt(b, off) })
}

func (f packFile) WriteAt(b []byte, off int64) (int, error) {
	return withFault("write", f.path, func() (int, error) { return f.File.WriteAt(b, off) })
}

func (f packFile) Sync() error {
	return withFaultOnly("fsync", f.path, f.File.Sync)
}

func (f packFile) Close() error {
	return withFaultOnly("close", f.path, f.File.Close)
}
