//go:build linux

package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// spool names the files of a host's spool. Old supervisors and new helpers share its
// format, so a change needs a new controlMagic.
type spool struct{ dir string }

func (s spool) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

const (
	dirRuns  = "runs"  // the spools of all runs: RUN/HOST
	dirIn    = "in"    // waiting specs: GENERATION-ATTEMPT
	dirTaken = "taken" // specs that a supervisor has taken: ATTEMPT@SLOT.PID.START
	dirFree  = "free"  // files of finished specs, for reuse
	dirStop  = "stop"  // ATTEMPT: requests that the supervisor ends it as "stopped"
	// Status files of ended attempts that could not be written to their place.
	dirDone = "done"
	// ATTEMPT: what the job wrote to DCS_PROGRESS; ATTEMPT.report: to DCS_REPORT.
	dirProgress = "progress"
	dirScript   = "script"  // commands too long for an argument
	dirLog      = "log"     // standard error of supervisors
	dirHelpers  = "helpers" // helpers that serve the spool, or did: GENERATION.PID.START
	fileControl = "control" // the control page
	fileReports = "reports" // FIFO from the supervisors to the helper
	fileBoot    = "boot"    // id of the boot in which the spool was last used
)

func spoolOf(base, run, host string) spool { return spool{filepath.Join(base, dirRuns, run, host)} }

// makeSpool creates base/runs/run/host unless it exists. Nobody else may enter any level.
func makeSpool(base, run, host string) (spool, error) {
	guard(base)
	s := spoolOf(base, run, host)
	for _, dir := range []string{filepath.Join(base, dirRuns), filepath.Dir(s.dir), s.dir} {
		if err := makeOwnDir(dir); err != nil {
			return spool{}, err
		}
	}
	for _, part := range []string{dirIn, dirTaken, dirFree, dirStop, dirDone, dirProgress, dirScript, dirLog,
		dirHelpers} {
		if err := makeOwnDir(s.path(part)); err != nil {
			return spool{}, err
		}
	}
	return s, makeFIFO(s.path(fileReports))
}

// makeFIFO creates a named pipe unless it exists, and removes what somebody has put in its place.
func makeFIFO(path string) error {
	err := mkfifo(path, 0o600)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	var st unix.Stat_t
	err = statat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || st.Mode&unix.S_IFMT == unix.S_IFIFO {
		return err
	}
	if err = remove(path); err == nil {
		err = mkfifo(path, 0o600)
	}
	return err
}

// remove removes the spool and, if it was the last one of the run, its parent. It renames the spool
// before it deletes its files, so that a helper that starts meanwhile finds it complete or not at all.
func (s spool) remove() error {
	parent, host := filepath.Split(s.dir)
	gone := parent + "." + host // hosts' names begin with a letter or a digit
	err := retryUnlessMissing(func() error {
		if err := removeTree(gone); err != nil { // left by a helper that died here
			return err
		}
		return rename(s.dir, gone)
	})
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = retryUnlessMissing(func() error { return removeTree(gone) })
	}
	unlinkat(unix.AT_FDCWD, parent, unix.AT_REMOVEDIR) // fails if other hosts' spools are left
	return err
}

// makeOwnDir creates dir with mode 0700, or checks that it is our directory and closes it to
// others: dir may be below /tmp.
func makeOwnDir(dir string) error {
	err := mkdir(dir, 0o700)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	mode, err := checkOwnDir(dir)
	if err != nil || mode&0o077 == 0 {
		return err
	}
	fd, err := openat(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return cmp.Or(fchmod(fd, dir, 0o700), closeFile(fd, dir))
}

// checkOwnDir checks that dir is a directory of our user, and returns its mode.
func checkOwnDir(dir string) (mode uint32, err error) {
	var st unix.Stat_t
	if err := statat(unix.AT_FDCWD, dir, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, fmt.Errorf("%s is not a directory; remove it", dir)
	}
	if int(st.Uid) != ownUID {
		return 0, fmt.Errorf("%s belongs to user %d, not to us; remove it or set another work_dir", dir, st.Uid)
	}
	return st.Mode, nil
}

// checkOwner returns an error if dir, or a symbolic link in its place, belongs neither to us nor to
// root: its owner could replace what we create in it, or lead us elsewhere.
func checkOwner(dir string) error {
	for _, flags := range []int{unix.AT_SYMLINK_NOFOLLOW, 0} {
		var st unix.Stat_t
		if err := statat(unix.AT_FDCWD, dir, &st, flags); err != nil {
			return err
		}
		if st.Uid != 0 && int(st.Uid) != ownUID {
			return fmt.Errorf("%s belongs to user %d, not to us; set another work_dir for this host", dir, st.Uid)
		}
	}
	return nil
}

// specName is the name of a waiting spec. It contains the generation, so that a new helper
// can invalidate the tokens of an older one by renaming the spec.
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

// holder identifies the supervisor that holds an attempt: its slot and its process.
type holder struct {
	Slot  int
	PID   int
	Start uint64 // field 22 of /proc/PID/stat
}

func (h holder) String() string { return fmt.Sprintf("%d.%d.%d", h.Slot, h.PID, h.Start) }

func parseHolder(s string) (h holder, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return h, false
	}
	var err1, err2, err3 error
	h.Slot, err1 = strconv.Atoi(parts[0])
	h.PID, err2 = strconv.Atoi(parts[1])
	h.Start, err3 = strconv.ParseUint(parts[2], 10, 64)
	return h, err1 == nil && err2 == nil && err3 == nil && h.PID > 0
}

// isAlive reports whether that process still exists.
func (h holder) isAlive() bool {
	p, ok := readProc(h.PID)
	return ok && p.start == h.Start && p.state != 'Z' && p.state != 'X'
}

// takenName is the name of a taken spec.
func takenName(id jobs.AttemptID, by holder) string { return id.String() + "@" + by.String() }

func parseTakenName(name string) (jobs.AttemptID, holder, bool) {
	a, b, ok := strings.Cut(name, "@")
	id, err := jobs.ParseAttemptID(a)
	h, ok2 := parseHolder(b)
	return id, h, ok && ok2 && err == nil
}

// list returns the names in one of the spool's directories.
func (s spool) list(dir string) ([]string, error) {
	names, err := listNames(s.path(dir))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return names, nil
}

// spoolDirs holds descriptors of directories in a spool.
type spoolDirs struct{ in, taken, free int }

func (s spool) openDirs() (d spoolDirs, err error) {
	if d.in, err = openDir(s.path(dirIn)); err == nil {
		d.taken, err = openDir(s.path(dirTaken))
	}
	if err == nil {
		d.free, err = openDir(s.path(dirFree))
	}
	if err != nil {
		err = fmt.Errorf("opening the spool: %w", err)
	}
	return d, err
}

// takenAttempts returns the holder of each taken attempt.
func (s spool) takenAttempts() (map[jobs.AttemptID]holder, error) {
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

// checkName returns an error unless s can be one component of a path and fits into a
// sentinel beside the outcome.
func checkName(what, s string) error {
	forbidden := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/"\<>&`, r) }
	if s == "" || s == "." || s == ".." || len(s) > 64 || !utf8.ValidString(s) || strings.ContainsFunc(s, forbidden) {
		return fmt.Errorf(
			"%s %q cannot be used as a file name (1 to 64 bytes without blanks, slashes, quotes, <, > and &)", what, s,
		)
	}
	return nil
}

// cookie returns the mark of an attempt's processes or, for attempt "", the common prefix of
// the marks of this run on this host.
func cookie(run, host, attempt string) string { return run + "/" + host + "/" + attempt }

// The wake pipe: the helper writes a token per spec, and all its supervisors read.
