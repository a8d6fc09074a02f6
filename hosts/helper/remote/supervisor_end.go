//go:build linux

package remote

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// finish writes the sentinel, releases the spec, and reports the outcome. If the sentinel cannot be
// written, the spool keeps a copy until it can.
func (s *slot) finish(a *attempt, dir int, o *jobs.Outcome) {
	err := s.seal(a, dir, a.claim.Sentinel(s.holder.Slot, *o))
	s.close(a)
	exit := &report{Kind: repExited, Attempt: a.id, Outcome: *o}
	if err == nil {
		s.flushPending() // of an earlier job, if this one could not be started
		s.pending.report.Store(&pendingReport{a, exit})
		return
	}
	s.flushPending()
	s.forgetShard() // the descriptor may be stale
	s.report(&report{Kind: repTrouble, Attempt: a.id,
		Why: fmt.Sprintf("the outcome of %s could not be written to %s: %v; kept on the host, tried again", a.id,
			s.config.Dir, err)})
	b := a.claim.EncodeFinished(s.holder.Slot, *o)
	var since time.Duration // boot clock: since when the outcome can be stored nowhere
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		kept := s.spool.path(dirDone, a.id.String())
		if replace(tempNames{s.spool.dir, s.config.Host, s.holder}.path(), kept, b) == nil {
			// If its place was only deleted, make it again before the attempt is released: without a
			// status file it could be claimed once more.
			if writeStatus(s.config, s.holder, a.id, b) == nil {
				remove(kept)
			}
			break
		}
		if writeStatus(s.config, s.holder, a.id, b) == nil || s.control.word(ctlEnd).Load() != 0 {
			break
		}
		switch now := uptime(); {
		case !s.isAllRemoved():
			since = 0
		case since == 0:
			since = now
		case now-since >= s.storeTimeout:
			s.dataRemoved = true // the run was deleted, so nobody is left to tell
			return
		}
		// Neither disk accepts it, but the helper may still report it.
		s.report(exit)
		time.Sleep(wait)
	}
	s.releaseAndReport(a, exit)
}

// isAllRemoved reports whether both the spool and the directory of the attempts were removed.
func (s *slot) isAllRemoved() bool {
	for _, dir := range []string{s.spool.path(dirTaken), filepath.Join(s.config.Dir, "attempts")} {
		if _, err := stat(dir); !isMissing(err) {
			return false
		}
	}
	return true
}

// seal writes the sentinel into the bytes that are reserved for it, and checks that the name still
// leads to that file: a job may have replaced it.
func (s *slot) seal(a *attempt, dir int, sentinel []byte) error {
	name := statusName(a.id)
	if err := pwrite(a.statusFD, name, sentinel, attempts.SentinelAt); err != nil {
		return err
	}
	if s.config.Network {
		if err := fsync(a.statusFD, name); err != nil {
			return err
		}
	}
	var ours, there unix.Stat_t
	if err := fstat(a.statusFD, name, &ours); err != nil {
		return err
	}
	err := closeFile(a.statusFD, name)
	a.statusFD = -1
	if err != nil {
		return err
	}
	if err := statat(dir, name, &there, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if there.Ino != ours.Ino || there.Dev != ours.Dev || there.Size != attempts.StatusBytes {
		return fmt.Errorf("%s was replaced by something else while the job ran", name)
	}
	return nil
}

// placeKeptFiles moves the status files that the spool keeps to their place.
func placeKeptFiles(s spool, cfg *slotConfig, by holder) {
	names, _ := s.list(dirDone)
	for _, n := range names {
		id, err := jobs.ParseAttemptID(n)
		if err != nil {
			continue // incomplete, or not ours
		}
		b, err := readFile(s.path(dirDone, n))
		if err != nil {
			continue
		}
		if attempts.Decode(b, cfg.Run, id).State == attempts.Finished && writeStatus(cfg, by, id, b) == nil {
			remove(s.path(dirDone, n))
		}
	}
}

// writeStatus replaces a status file. A job may have removed the directories above it, except for
// the run's own, whose removal deletes the run. If a directory is in its place, it is renamed.
func writeStatus(cfg *slotConfig, by holder, id jobs.AttemptID, b []byte) error {
	path := jobs.AttemptFile(cfg.Dir, id, jobs.FileStatus)
	temp := cfg.temps(by)
	err := replace(temp.path(), path, b)
	switch {
	case errors.Is(err, unix.ENOENT):
		mkdir(temp.dir, 0o700)
		mkdir(filepath.Dir(path), 0o700)
		err = replace(temp.path(), path, b)
	case errors.Is(err, unix.EISDIR):
		rename(path, fmt.Sprintf("%s.aside.%d", path, uptime()))
		err = replace(temp.path(), path, b)
	}
	return err
}

// leftChildren counts the descendants that the job left behind. It records its children, so that
// they do not count as the next job's.
func (s *slot) leftChildren() int {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // usually there are none, which costs one system call
			clear(s.leftBehind)
			return 0
		}
		if pid == 0 {
			break
		}
		delete(s.leftBehind, pid)
	}
	t := scanOwn()
	n := 0
	for pid, p := range t {
		if p.ppid != s.holder.PID || p.state == 'Z' || s.leftBehind[pid] == p.start {
			continue
		}
		s.leftBehind[pid] = p.start
		n += 1 + len(t.descendants(pid))
	}
	return n
}

// lastLine returns the last line of stderr.
func lastLine(fd int, path string) string {
	var st unix.Stat_t
	if fstat(fd, path, &st) != nil {
		return ""
	}
	buf := make([]byte, min(st.Size, attempts.LastBytes))
	n, _ := pread(fd, path, buf, st.Size-int64(len(buf)))
	return attempts.LastLine(buf[:n])
}

func timeOf(tv syscall.Timeval) time.Duration { return time.Duration(tv.Nano()) }

const fullBytes = 64 << 10 // a disk with less free space counts as full

var fullTimeout = time.Second // tests lengthen it

// isOnFullDisk reports whether one of the directories is on a full disk, so that people do not read
// just "exit 1". A disk that does not answer in time does not count.
func (s *slot) isOnFullDisk(dirs ...string) bool {
	var full atomic.Bool
	s.diskCheck.tryRun(fullTimeout, func() {
		full.Store(slices.ContainsFunc(dirs, func(d string) bool { return d != "" && isFull(d) }))
	})
	return full.Load()
}

// isFull reports whether only root can write to the disk of dir, because it has no free blocks or
// inodes. Read-only file systems do not count.
func isFull(dir string) bool {
	var st unix.Statfs_t
	if statfs(dir, &st) != nil || st.Blocks == 0 || st.Flags&unix.ST_RDONLY != 0 {
		return false
	}
	return int64(st.Bavail)*st.Bsize < fullBytes || st.Files > 0 && st.Ffree == 0
}
