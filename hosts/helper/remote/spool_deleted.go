//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// Cleaners and people delete files in /var/tmp, also while jobs run. A helper that sees that the
// shared part of its spool is gone leaves, and the next one makes the spool again, as after any
// death of a helper. Supervisors of the earlier helper finish the jobs that they run. What they
// hold is found again by the processes of these jobs, and only then counts as held: a claim that
// was deleted must not lead to a second start.

// errSpoolDeleted is returned by a helper whose spool was deleted.
var errSpoolDeleted = errors.New("was deleted on the host; it is made again, and running jobs continue")

// errSpoolWritable is returned by a helper that could not share the control page.
var errSpoolWritable = errors.New("can be written again, so a new helper is started")

// checkSpool makes directories and files again that only the helper needs, and returns
// errSpoolDeleted if something is gone that supervisors share with it. If a file system does not
// answer, nothing counts as gone.
func (h *helper) checkSpool() error {
	for name, fd := range map[string]int{dirIn: h.in, dirTaken: h.taken, dirFree: h.free, fileReports: h.reportsFD} {
		var st unix.Stat_t
		if fstat(fd, name, &st) == nil && isReplaced(h.spool.path(name), uint64(st.Dev), st.Ino) {
			return fmt.Errorf("the spool %s %w", h.spool.dir, errSpoolDeleted)
		}
	}
	if control := h.spool.path(fileControl); h.control.private {
		if fd, err := openat(unix.AT_FDCWD, control, unix.O_RDWR, 0); err == nil {
			closeFile(fd, control)
			return fmt.Errorf("the spool %s %w", h.spool.dir, errSpoolWritable)
		}
	}
	if isReplaced(h.spool.path(fileControl), h.control.device, h.control.inode) {
		return fmt.Errorf("the spool %s %w", h.spool.dir, errSpoolDeleted)
	}
	for _, dir := range []string{dirStop, dirDone, dirProgress, dirScript, dirLog, dirHelpers} {
		if _, err := stat(h.spool.path(dir)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := makeOwnDir(h.spool.path(dir)); err != nil && !h.hasEnded() {
			h.reportTrouble("spool: %v", err)
		}
	}
	for name, write := range map[string]func() error{
		fileBoot: func() error {
			return writeFile(h.spool.path(fileBoot), []byte(h.config.Boot+"\n"))
		},
		dirHelpers + "/" + h.recordName(): h.register,
		fileMachine + h.open.Host:         func() error { _, err := h.machineID(); return err },
	} {
		isSkipped := h.open.Check && name == fileMachine+h.open.Host
		if _, err := stat(h.spool.path(name)); isSkipped || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := write(); err != nil && !h.hasEnded() {
			h.reportTrouble("%v", err)
		}
	}
	return nil
}

// isReplaced reports whether path certainly does not lead to a file any more.
func isReplaced(path string, device, inode uint64) bool {
	var st unix.Stat_t
	err := statat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return isMissing(err)
	}
	return uint64(st.Dev) != device || st.Ino != inode
}

// findProcesses returns the attempts that have living processes, each with the living supervisor of this
// spool that runs it. If there is none, the holder is zero.
func (h *helper) findProcesses() map[jobs.AttemptID]holder {
	t := scan(nil)
	found := map[jobs.AttemptID]holder{}
	for pid, id := range t.attempts(cookie(h.config.Run, h.config.Host, "")) {
		by := found[id]
		for at, ok := t[pid]; ok && at.pid > 1 && by.PID == 0; at, ok = t[at.ppid] {
			if h.spool.isSupervisor(at) {
				words := bytes.Split(procFile(at.pid, "cmdline"), []byte{0})
				slot, _ := strconv.Atoi(string(words[min(3, len(words)-1)]))
				by = holder{slot, at.pid, at.start}
			}
		}
		found[id] = by
	}
	return found
}

// hold records again that a supervisor runs an attempt, after its entry in taken/ was deleted, and
// its claim if that was deleted, too.
func (h *helper) hold(p hosts.ProbedJob, f attempts.Fate, by holder) hosts.ProbedJob {
	p.Slot, p.Started = by.Slot, f.Claim.At
	if f.State == attempts.Nothing {
		c := attempts.Claim{Run: h.config.Run, Attempt: p.Attempt, Host: h.config.Host, By: by.String(),
			Boot: h.config.Boot, At: wallClock()}
		if err := h.claim(&c); err != nil && !errors.Is(err, errClaimed) {
			p.Why = err.Error()
			return p
		}
	}
	name := takenName(p.Attempt, by)
	fd, err := openat(h.taken, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err == nil {
		err = closeFile(fd, name)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		p.Why = err.Error()
		return p
	}
	// The supervisor writes the sentinel before it removes the entry. If it has ended in the
	// meantime, nobody would remove ours.
	if f, _ := h.readFate(p.Attempt); f.State == attempts.Finished {
		unlinkat(h.taken, name, 0)
		p.Answer, p.Slot, p.Started, p.Outcome = hosts.HasExited, f.Slot, f.Outcome.Started, &f.Outcome
		return p
	}
	p.Answer = hosts.IsRunning
	return p
}
