//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// spool names the files of a host's spool. Its format is part of what old
// supervisors and new helpers share; a change of it needs a new controlMagic.
type spool struct{ dir string }

func (s spool) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

const (
	dirIn       = "in"       // specs that wait: GENERATION-ATTEMPT
	dirTaken    = "taken"    // specs that a supervisor has taken: ATTEMPT@SLOT.PID.START
	dirFree     = "free"     // files of specs that are done with, to be used again
	dirStop     = "stop"     // ATTEMPT: the supervisor shall end it and say "stopped"
	dirDone     = "done"     // status files of ended attempts that could not be written where they belong
	dirProgress = "progress" // ATTEMPT: what the job wrote to DCS_PROGRESS; ATTEMPT.report: to DCS_REPORT
	dirScript   = "script"   // commands too long for an argument
	dirLog      = "log"      // standard error of supervisors
	dirHelpers  = "helpers"  // helpers that serve it, or did: GENERATION.PID.START
	fileControl = "control"  // the page they all share
	fileReports = "reports"  // FIFO: supervisors to the helper
	fileBoot    = "boot"     // the boot id under which the spool was last used
)

// makeSpool makes (or finds) base/runs/run/host, each level ours alone.
func makeSpool(base, run, host string) (spool, error) {
	dir := base
	for _, part := range []string{"runs", run, host} {
		dir = filepath.Join(dir, part)
		if err := ownDir(dir); err != nil {
			return spool{}, err
		}
	}
	s := spool{dir}
	for _, part := range []string{dirIn, dirTaken, dirFree, dirStop, dirDone, dirProgress, dirScript, dirLog, dirHelpers} {
		if err := ownDir(s.path(part)); err != nil {
			return spool{}, err
		}
	}
	if err := mkfifo(s.path(fileReports), 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return spool{}, err
	}
	return s, nil
}

// ownDir makes dir with mode 0700, or checks that it is a directory of ours
// that nobody else may enter: it may stand in /tmp.
func ownDir(dir string) error {
	err := mkdir(dir, 0o700)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	mode, err := isOurs(dir)
	if err == nil && mode&0o077 != 0 {
		return chmod(dir, 0o700)
	}
	return err
}

// isOurs checks that dir is a directory of ours, and returns its mode.
func isOurs(dir string) (mode uint32, err error) {
	var st unix.Stat_t
	if err := statat(unix.AT_FDCWD, dir, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, fmt.Errorf("%s is not a directory; remove it", dir)
	}
	if int(st.Uid) != os.Getuid() {
		return 0, fmt.Errorf("%s belongs to user %d, not to us; remove it or set another work_dir", dir, st.Uid)
	}
	return st.Mode, nil
}

// notOthers returns an error if a directory, possibly behind a symbolic link, belongs
// to another user than us or root: that user could replace what we create there.
func notOthers(dir string) error {
	st, err := stat(dir)
	if err == nil && st.Uid != 0 && int(st.Uid) != os.Getuid() {
		err = fmt.Errorf("%s belongs to user %d, not to us; set another work_dir for this host", dir, st.Uid)
	}
	return err
}

// specName is the name of a waiting spec. The generation is in it so that a
// new helper, by renaming, takes it away from the tickets of the old one.
func specName(generation int64, id jobs.AttemptID) string {
	b := strconv.AppendInt(make([]byte, 0, 40), generation, 10)
	return string(id.Append(append(b, '-')))
}

func parseSpecName(name string) (jobs.AttemptID, bool) {
	gen, rest, ok := strings.Cut(name, "-")
	if _, err := strconv.ParseInt(gen, 10, 64); !ok || err != nil {
		return jobs.AttemptID{}, false
	}
	id, err := jobs.ParseAttemptID(rest)
	return id, err == nil
}

// holder says which supervisor holds an attempt: its slot and its process.
type holder struct {
	slot  int
	pid   int
	start uint64 // field 22 of /proc/PID/stat
}

func (h holder) String() string { return fmt.Sprintf("%d.%d.%d", h.slot, h.pid, h.start) }

func parseHolder(s string) (h holder, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return h, false
	}
	var err1, err2, err3 error
	h.slot, err1 = strconv.Atoi(parts[0])
	h.pid, err2 = strconv.Atoi(parts[1])
	h.start, err3 = strconv.ParseUint(parts[2], 10, 64)
	return h, err1 == nil && err2 == nil && err3 == nil && h.pid > 0
}

// alive says whether that very process still exists.
func (h holder) alive() bool {
	p, ok := readProc(h.pid)
	return ok && p.start == h.start && p.state != 'Z' && p.state != 'X'
}

// takenName is the name of a taken spec.
func takenName(id jobs.AttemptID, by holder) string { return id.String() + "@" + by.String() }

func parseTakenName(name string) (jobs.AttemptID, holder, bool) {
	a, b, ok := strings.Cut(name, "@")
	id, err := jobs.ParseAttemptID(a)
	h, ok2 := parseHolder(b)
	return id, h, ok && ok2 && err == nil
}

// list reads the names in one of the spool's directories.
func (s spool) list(dir string) ([]string, error) {
	names, err := list(s.path(dir))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return names, nil
}

// taken lists who holds what.
func (s spool) taken() (map[jobs.AttemptID]holder, error) {
	names, err := s.list(dirTaken)
	if err != nil {
		return nil, err
	}
	m := make(map[jobs.AttemptID]holder, len(names))
	for _, n := range names {
		if id, h, ok := parseTakenName(n); ok {
			m[id] = h
		}
	}
	return m, nil
}

// plainName refuses what cannot be one component of a path, or would not fit
// into a sentinel beside the outcome.
func plainName(what, s string) error {
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/"\<>&`, r) }
	if s == "" || s == "." || s == ".." || len(s) > 64 || !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return fmt.Errorf("%s %q cannot be used as a file name (1 to 64 bytes without blanks, slashes, quotes, <, > and &)", what, s)
	}
	return nil
}
