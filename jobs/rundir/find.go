package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is one run found below a base directory.
type Entry struct {
	Name string // of its directory
	Dir  string
	Made time.Time // when run.toml was written, by the file server's clock
	Lost error     // a *LostError if the run cannot be opened, otherwise nil
}

// List returns the runs below base, newest first, including those that have lost their
// run.toml. If base does not exist, there are none.
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
		dir := filepath.Join(base, name)
		if made, ok := isRun(d, dir); ok {
			found = append(found, Entry{Name: name, Dir: dir, Made: made})
		} else if err := lost(d, dir); err != nil && !strings.HasPrefix(name, ".") { // otherwise it is being removed
			found = append(found, Entry{Name: name, Dir: dir, Made: madeAt(d, dir, NonceFile, JournalDir, AttemptsDir), Lost: err})
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

// namesOf lists a directory. One that cannot be seen is looked for in a listing of
// the directory above it: another machine may have made it after this one looked
// last, and on NFS the name alone stays invisible for half a minute.
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

// isRun says whether dir is a whole run directory: it lists a run.toml.
func isRun(d Disk, dir string) (made time.Time, ok bool) {
	names, err := namesOf(d, dir)
	if err != nil || !slices.Contains(names, AskedFile) {
		return made, false
	}
	made = madeAt(d, dir, AskedFile)
	return made, !made.IsZero()
}

// madeAt returns the modification time of the first of these names that exists.
func madeAt(d Disk, dir string, names ...string) time.Time {
	for _, name := range names {
		if info, err := d.Stat(filepath.Join(dir, name)); err == nil {
			return info.ModTime()
		}
	}
	return time.Time{}
}

// Find returns the directory of a run: a name below base, or a run directory;
// "" is the newest run below base.
func Find(base, run string) (dir string, err error) {
	found, err := List(base)
	if err != nil {
		return "", err
	}
	if run == "" {
		if len(found) == 0 {
			return "", fmt.Errorf("there is no run in %s: start one with `dcs-tui run`, or name a run directory", base)
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
		if err := lost(OS, dir); err != nil {
			return "", err
		}
		if names, err := OS.Names(dir); err == nil && slices.Contains(names, NonceFile) {
			return "", halfMade(dir)
		}
	}
	for _, e := range found { // the newest that begins so
		if strings.HasPrefix(e.Name, run) {
			return "", fmt.Errorf("there is no run %q in %s; did you mean %s?", run, base, e.Name)
		}
	}
	return "", fmt.Errorf("there is no run %q: it is neither a name in %s nor a run directory (`dcs-tui runs` lists them)", run, base)
}

// Open opens the run directory dir, checking that it is the user's alone.
func Open(dir string) (*Run, error) { return open(OS, dir) }

// OpenOn is Open on another disk, for simulations and tests: another machine's
// view of the same run, say. dir must be absolute.
func OpenOn(d Disk, dir string) (*Run, error) { return open(d, dir) }

func open(d Disk, dir string) (*Run, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	names, err := namesOf(d, dir)
	if err := checkDir(d, dir); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	if err := lostAmong(d, dir, names); err != nil {
		return nil, err
	}
	for _, need := range []string{AskedFile, NonceFile, SpecsFile, JournalDir} {
		if !slices.Contains(names, need) {
			advice := ""
			if (&Run{Disk: d, Dir: dir}).HasAttempts() {
				advice = fmt.Sprintf("; keep it, it has what the run's jobs have printed, and restore %s from a backup", need)
			}
			return nil, fmt.Errorf("%s is not a whole run directory: it has no %s%s", dir, need, advice)
		}
	}
	text, err := ReadFile(d, filepath.Join(dir, AskedFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read what was asked of the run: %w", err)
	}
	asked, err := decodeAsked(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, AskedFile), err)
	}
	nonce, err := ReadFile(d, filepath.Join(dir, NonceFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the run's nonce: %w", err)
	}
	if len(bytes.TrimSpace(nonce)) < nonceLen {
		return nil, fmt.Errorf("%s: it is damaged: it has %d bytes of %d", filepath.Join(dir, NonceFile), len(bytes.TrimSpace(nonce)), nonceLen)
	}
	return &Run{Dir: dir, Nonce: strings.TrimSpace(string(nonce)), Asked: asked, Disk: d}, nil
}
