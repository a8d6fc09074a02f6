package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"dcs-tui/internal/text"
)

// Entry is one run found below a base directory.
type Entry struct {
	Name string // of its directory
	Dir  string
	Made time.Time // when run.toml was written, by the file server's clock
	Lost error     // a *LostError if the run cannot be opened, otherwise nil
}

// List returns the runs below base, newest first, including those that have lost their run.toml. If
// base does not exist, it returns none.
func List(base string) ([]Entry, error) { return list(OS, base) }

func list(d Disk, base string) ([]Entry, error) {
	names, err := namesOf(d, base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the runs: %w", err)
	}
	var found []Entry
	for _, name := range names {
		if e, ok := entryAt(d, filepath.Join(base, name)); ok {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b Entry) int {
		if c := b.Made.Compare(a.Made); c != 0 {
			return c
		}
		return strings.Compare(b.Name, a.Name)
	})
	return found, nil
}

// EntryAt returns the run in a directory, as List does. ok is false if there is none, or if it is not
// visible now.
func EntryAt(dir string) (e Entry, ok bool) { return entryAt(OS, dir) }

func entryAt(d Disk, dir string) (e Entry, ok bool) {
	e = Entry{Name: filepath.Base(dir), Dir: dir}
	if e.Made, ok = isRun(d, dir); ok {
		return e, true
	}
	e.Lost = lostError(d, dir)
	if e.Lost == nil || strings.HasPrefix(e.Name, ".") { // it is being removed
		return Entry{}, false
	}
	e.Made = madeAt(d, dir, NonceFile, JournalDir, AttemptsDir)
	return e, true
}

// namesOf lists a directory. If the directory is not visible, namesOf lists its parent and tries
// again. On NFS, a directory that another machine created after the last look stays invisible for
// half a minute unless its parent is listed.
func namesOf(d Disk, dir string) ([]string, error) {
	names, err := d.Names(dir)
	above := filepath.Dir(filepath.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) && above != filepath.Clean(dir) {
		if list, e := namesOf(d, above); e == nil && slices.Contains(list, filepath.Base(filepath.Clean(dir))) {
			return d.Names(dir)
		}
	}
	return names, err
}

// isRun reports whether dir is a complete run directory, which lists a run.toml.
func isRun(d Disk, dir string) (made time.Time, ok bool) {
	names, err := namesOf(d, dir)
	if err != nil || !slices.Contains(names, SettingsFile) {
		return made, false
	}
	made = madeAt(d, dir, SettingsFile)
	return made, !made.IsZero()
}

// madeAt returns the modification time of the first of these names that exists.
func madeAt(d Disk, dir string, names ...string) time.Time {
	for _, name := range names {
		if info, err := d.Lstat(filepath.Join(dir, name)); err == nil {
			return info.ModTime()
		}
	}
	return time.Time{}
}

// Find returns the directory of a run. run is a name below base, or a run directory; "" means the
// newest run below base.
func Find(base, run string) (dir string, err error) {
	found, err := List(base)
	if err != nil {
		return "", err
	}
	if run == "" {
		if len(found) == 0 {
			return "", fmt.Errorf("there is no run in %s: start one with `dcs-tui run`, or name a run directory "+
				"(`dcs-tui runs list --all` lists those of other directories)", base)
		}
		return found[0].Dir, found[0].Lost // the newest run is meant, even if it is lost
	}
	if !strings.ContainsRune(run, '/') {
		for _, e := range found {
			if e.Name == run {
				return e.Dir, e.Lost
			}
		}
	}
	if _, ok := isRun(OS, run); ok {
		return filepath.Clean(run), nil
	}
	for _, dir := range []string{filepath.Join(base, run), run} {
		if err := lostError(OS, dir); err != nil {
			return "", err
		}
		switch names, err := OS.Names(dir); {
		case err == nil && slices.Contains(names, NonceFile):
			return "", &HalfMadeError{dir}
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return "", fmt.Errorf("the run %q cannot be read: %w", run, err)
		}
	}
	names := text.Each(found, func(e Entry) string { return e.Name })
	near := text.Nearest(run, names)
	if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, run) }); i >= 0 {
		near = names[i] // the newest run with this prefix
	}
	if near != "" {
		return "", fmt.Errorf("there is no run %q in %s; did you mean %s?", run, base, near)
	}
	return "", fmt.Errorf(
		"there is no run %q: it is neither a name in %s nor a run directory (`dcs-tui runs list --all` lists them)",
		run, base,
	)
}

// Open opens the run directory dir and checks that only the user can access it.
func Open(dir string) (*Run, error) { return OpenOn(OS, dir) }

// OpenOn is Open on another disk, for simulations and tests, such as another machine's view of the
// same run. dir must be absolute.
func OpenOn(d Disk, dir string) (*Run, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d = within(d, dir)
	names, err := namesOf(d, dir)
	if err := checkDir(d, dir); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	if err := lostErrorAmong(d, dir, names); err != nil {
		return nil, err
	}
	if err := (&Run{Disk: d, Dir: dir}).CheckFormat(); err != nil {
		return nil, err
	}
	for _, need := range []string{SettingsFile, NonceFile, SpecsFile, JournalDir} {
		if !slices.Contains(names, need) {
			advice := ""
			if (&Run{Disk: d, Dir: dir}).HasAttempts() {
				advice = fmt.Sprintf("; keep it, it has what the run's jobs have printed, and restore %s from a backup",
					need)
			}
			return nil, fmt.Errorf("%s is not a whole run directory: it has no %s%s", dir, need, advice)
		}
	}
	text, err := ReadFile(d, filepath.Join(dir, SettingsFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read what was asked of the run: %w", err)
	}
	settings, err := decodeSettings(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, SettingsFile), err)
	}
	nonce, err := ReadFile(d, filepath.Join(dir, NonceFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the run's nonce: %w", err)
	}
	if len(bytes.TrimSpace(nonce)) < nonceLen {
		return nil, fmt.Errorf("%s: it is damaged: it has %d bytes of %d", filepath.Join(dir, NonceFile),
			len(bytes.TrimSpace(nonce)), nonceLen)
	}
	return &Run{Dir: dir, Nonce: strings.TrimSpace(string(nonce)), Settings: settings, Disk: d}, nil
}

// MaxName is the maximum length of a run name, in bytes.
const MaxName = 64

// CheckName returns an error if a text cannot be the name of a run. A name is one directory below
// dcs-runs and is shown on screens.
func CheckName(name string) error {
	why := ""
	switch {
	case name == "":
		why = "it is empty"
	case len(name) > MaxName:
		why = fmt.Sprintf("it is longer than %d bytes", MaxName)
	case strings.ContainsRune(name, '/'):
		why = "it has a slash (use --run-dir to choose the directory)"
	case strings.Trim(name, ".") == "":
		why = "it consists of dots only"
	case name[0] == '-':
		why = "it begins with a dash and would be read as an option"
	case !utf8.ValidString(name):
		why = "it is not valid UTF-8"
	case strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0:
		why = "it has a control character"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%q cannot be the name of a run: %s", name, why)
}

// DefaultName returns a name made from the jobs file and the time: "sweep-20260314-1502".
func DefaultName(jobsFile string, now time.Time) string {
	base := filepath.Base(jobsFile)
	if jobsFile == "" || jobsFile == "-" {
		base = "stdin"
	}
	if ext := filepath.Ext(base); ext != base {
		base = strings.TrimSuffix(base, ext)
	}
	var b strings.Builder
	for _, r := range base {
		switch {
		case b.Len() >= 40:
		case r < utf8.RuneSelf && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			strings.ContainsRune("._+", r)):
			b.WriteRune(r)
		case b.Len() > 0: // never first, because a name does not begin with a dash
			b.WriteByte('-')
		}
	}
	if strings.Trim(b.String(), ".-") == "" {
		b.Reset()
		b.WriteString("run")
	}
	return b.String() + now.Format("-20060102-1504")
}

// uidLetters omits 0, 1, l, and o, which people confuse. It has 32 letters, so that a random byte
// maps onto them evenly.
const uidLetters = "abcdefghijkmnpqrstuvwxyz23456789"

// newUID returns 12 random letters: file-name safe, 60 bits.
func newUID(random io.Reader) (string, error) {
	b, err := randomBytes(random, 12)
	for i := range b {
		b[i] = uidLetters[b[i]%32]
	}
	return string(b), err
}

func randomBytes(random io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(random, b); err != nil { // crypto/rand never fails
		return nil, fmt.Errorf("no random bytes: %w", err)
	}
	return b, nil
}

// LostError is the error of a run that was started in Dir and has lost its run.toml. The first line
// of its message describes the problem, the others what the user can do.
type LostError struct{ Dir string }

// Error names the directory, its files, and what the user can do, on several lines.
func (e *LostError) Error() string {
	return fmt.Sprintf(`the run in %[1]s has lost its file %[2]s; keep the directory: it holds the results of its jobs
no command can open the run without that file: restore it from a backup (it is never changed after the start), `+
		`then resume, cancel and results work again
outputs are in %[3]s, jobs in %[4]s, the journal in %[5]s
a live dispatcher goes on without it: create a file %[6]s in the directory to drain the run, or %[7]s to cancel it`,
		e.Dir, SettingsFile, filepath.Join(e.Dir, AttemptsDir, "*",
			"JOB.ATTEMPT.out and .err"), SpecsFile, JournalDir, StopFile, StopNowFile)
}

// lostError returns a *LostError if dir lists no run.toml but something shows that a run was
// started there. Otherwise it returns nil. A journal or attempts directory that cannot be listed
// counts as such evidence, because nobody should remove a directory that could not be read.
func lostError(d Disk, dir string) error {
	names, err := namesOf(d, dir)
	if err != nil {
		return nil
	}
	return lostErrorAmong(d, dir, names)
}

// lostErrorAmong is lostError for a directory that contains these names.
func lostErrorAmong(d Disk, dir string, names []string) error {
	if slices.Contains(names, SettingsFile) {
		return nil
	}
	d = within(d, dir)
	begun := slices.Contains(names, OwnerFile) && slices.Contains(names, JournalDir)
	for _, sub := range []string{JournalDir, AttemptsDir} {
		if !slices.Contains(names, sub) || !slices.Contains(names, NonceFile) && !slices.Contains(names, SpecsFile) {
			continue // a directory of that name may belong to anything
		}
		list, err := d.Names(filepath.Join(dir, sub))
		begun = begun || len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
	}
	if !begun {
		return nil
	}
	return &LostError{Dir: dir}
}

// HasAttempts reports whether the run directory has files of any attempt. If it cannot
// be listed, HasAttempts returns true.
func (r *Run) HasAttempts() bool {
	list, err := r.Disk.Names(r.Path(AttemptsDir))
	return len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// Location records where a run directory was. It distinguishes a directory that was deleted from
// one that is temporarily not visible.
type Location struct {
	run  *Run
	dirs []locatedDir // the run directory, then each of its parents
}

// locatedDir is the identity of a directory when it was recorded.
type locatedDir struct {
	path string
	id   dirID
	err  error // the id is unknown
}

// dirID identifies a directory on this machine.
type dirID struct{ dev, ino uint64 }

// Locate records the identity of the run directory and of each of its parents.
func (r *Run) Locate() *Location {
	l := &Location{run: r}
	for dir := r.Dir; ; dir = filepath.Dir(dir) {
		id, err := l.identify(dir)
		l.dirs = append(l.dirs, locatedDir{dir, id, err})
		if dir == filepath.Dir(dir) {
			return l
		}
	}
}

func (l *Location) identify(dir string) (dirID, error) {
	info, err := l.run.Disk.Stat(dir)
	if err != nil {
		return dirID{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return dirID{}, errors.ErrUnsupported
	}
	return dirID{uint64(st.Dev), st.Ino}, nil
}

// Deleted reports whether the run directory was deleted, moved away, replaced, or emptied. It
// returns false while that is uncertain, because the file system may not be mounted, or a server
// may not respond or may temporarily not know the directory. The proof is a directory that has the
// same identity and whose listing no longer contains what it held.
func (l *Location) Deleted() bool {
	run := l.dirs[0]
	switch id, err := l.identify(run.path); {
	case run.err != nil:
		return false
	case err == nil && id == run.id:
		return l.isMissing(run.path, JournalDir)
	case err == nil && id.dev != run.id.dev: // another file system is mounted there
		return false
	case err == nil:
		return l.isOtherRun()
	case !errors.Is(err, fs.ErrNotExist):
		return false
	}
	for i, above := range l.dirs[1:] {
		switch id, err := l.identify(above.path); {
		case err == nil:
			return above.err == nil && id == above.id && l.isMissing(above.path, filepath.Base(l.dirs[i].path))
		case !errors.Is(err, fs.ErrNotExist):
			return false
		}
	}
	return false
}

// isOtherRun reports whether the directory in place of the run directory certainly does not hold
// the run. The inode number alone is no proof, because it changes on FUSE.
func (l *Location) isOtherRun() bool {
	if l.isMissing(l.run.Dir, NonceFile) {
		return true
	}
	nonce, err := ReadFile(l.run.Disk, l.run.Path(NonceFile))
	return err == nil && strings.TrimSpace(string(nonce)) != l.run.Nonce
}

// isMissing reports whether a listing of dir succeeds without name.
func (l *Location) isMissing(dir, name string) bool {
	names, err := l.run.Disk.Names(dir)
	return err == nil && !slices.Contains(names, name)
}
