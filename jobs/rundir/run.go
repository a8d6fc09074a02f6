package rundir

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dcs-tui/internal/trust"
)

// The names inside a run directory.
const (
	Base         = "dcs-runs" // directory of runs, in the directory where the user started one
	NonceFile    = "nonce"
	SettingsFile = "run.toml"
	SpecsFile    = "jobs.jsonl"
	OwnerFile    = "owner"
	LiveFile     = "live.json" // package jobs/live
	JournalDir   = "journal"
	AttemptsDir  = "attempts"
	HostsDir     = "hosts"
	StopFile     = "STOP"     // created by the user: drain
	StopNowFile  = "STOP.now" // created by the user: cancel
	JobLogFile   = "joblog.tsv"
	CountsFile   = "counts.json" // package jobs/journal
	maxSameNames = 1000
	nonceLen     = 32 // hex digits
)

// Run is an open run directory. Its fields do not change once it is open.
type Run struct {
	Dir      string // absolute
	Nonce    string // content of the file nonce
	Settings *Settings
	Disk     Disk // Within(Dir), except in tests

	specs specLog
}

// UID returns the run's random name, which does not change when the directory is moved.
func (r *Run) UID() string { return r.Settings.UID }

// Name returns the run's name.
func (r *Run) Name() string { return r.Settings.Name }

// Ref returns what a user types as RUN from the current directory: the name of a run below
// ./dcs-runs, otherwise its directory.
func (r *Run) Ref() string {
	if base, err := filepath.Abs(Base); err == nil && r.Dir == filepath.Join(base, r.Name()) {
		return r.Name()
	}
	return r.Dir
}

// Path returns a path inside the run directory.
func (r *Run) Path(elem ...string) string {
	return filepath.Join(append([]string{r.Dir}, elem...)...)
}

// Create creates the run directory base/name. If name is "", it is made from a.JobsFile and the
// time, with a number if that exists. a.Name is ignored. UID and Created are set if they are
// empty. Of several callers with one name exactly one succeeds, and the others get fs.ErrExist.
func Create(base, name string, a Settings) (*Run, error) {
	return create(OS, base, "", name, a, nil)
}

// CreateAt creates the run in dir itself (--run-dir), which must not exist or be empty. A name
// of "" is as for Create.
func CreateAt(dir, name string, a Settings) (*Run, error) {
	return create(OS, "", dir, name, a, nil)
}

// CreateOn is Create on another disk, for simulations and tests. base must be absolute. random
// is the source of the nonce and other random texts; nil: crypto/rand. With a.UID, a.Created,
// and random, the run is deterministic.
func CreateOn(d Disk, base, name string, a Settings, random io.Reader) (*Run, error) {
	return create(d, base, "", name, a, random)
}

func create(d Disk, base, dir, name string, a Settings, random io.Reader) (*Run, error) {
	if random == nil {
		random = rand.Reader
	}
	if a.Created.IsZero() {
		a.Created = time.Now()
	}
	a.Created = a.Created.Truncate(time.Second)
	if a.UID == "" {
		uid, err := newUID(random)
		if err != nil {
			return nil, err
		}
		a.UID = uid
	}
	a.Name = cmp.Or(name, DefaultName(a.JobsFile, a.Created))
	if err := CheckName(a.Name); err != nil {
		return nil, err
	}
	if dir != "" {
		return createIn(d, dir, &a, random)
	}
	if err := makeBase(d, base); err != nil {
		return nil, err
	}
	for i, stem := 2, a.Name; ; i++ {
		r, err := createIn(d, filepath.Join(base, a.Name), &a, random)
		if name != "" || !errors.Is(err, fs.ErrExist) || i > maxSameNames {
			return r, err
		}
		a.Name = fmt.Sprintf("%s-%d", stem, i)
	}
}

func makeBase(d Disk, base string) error {
	err := d.Mkdir(base, 0o700)
	if errors.Is(err, fs.ErrExist) {
		// Whoever can write base can put another directory in the place of the run's.
		info, err := d.Stat(base)
		if err == nil {
			_, err = trust.Check(info, base, trust.Strict)
		}
		if err != nil {
			return fmt.Errorf("cannot make a run in %s: %w (or use --run-dir to name another directory for the run)",
				base, err)
		}
		return nil
	}
	if err == nil {
		err = syncParent(d, base)
	}
	if err != nil {
		return fmt.Errorf("cannot create %s for the run: %w (start in a directory you can write to, or use --run-dir)",
			base, err)
	}
	return nil
}

// createIn creates the run in dir. The file nonce, created with O_EXCL, decides who owns the
// directory, because on NFS a repeated mkdir may wrongly fail with EEXIST.
func createIn(d Disk, dir string, a *Settings, random io.Reader) (*Run, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	text, err := a.encode()
	if err != nil {
		return nil, err
	}
	nonce, err := randomBytes(random, nonceLen/2)
	if err != nil {
		return nil, err
	}
	d = within(d, dir)
	r := &Run{Dir: dir, Nonce: hex.EncodeToString(nonce), Settings: a, Disk: d}
	if err := d.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cannot create the run directory: %w", err)
	}
	if err := checkDir(d, dir); err != nil {
		return nil, err
	}
	names, err := d.Names(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	if err := lostErrorAmong(d, dir, names); err != nil {
		return nil, inUseError{err}
	}
	if len(names) > 0 {
		return nil, takenError(dir, names)
	}
	if err := WriteNew(d, r.Path(NonceFile), []byte(r.Nonce+"\n")); err != nil {
		if errors.Is(err, fs.ErrExist) {
			if b, err := ReadFile(d, r.Path(NonceFile)); err != nil || strings.TrimSpace(string(b)) != r.Nonce {
				return nil, takenError(dir, []string{NonceFile})
			}
		} else {
			return nil, removeCreated(d, r, err)
		}
	}
	if err := r.createContents(text); err != nil {
		return nil, removeCreated(d, r, err)
	}
	return r, nil
}

// createContents creates what a run directory contains besides its nonce.
func (r *Run) createContents(settings []byte) error {
	for _, sub := range []string{JournalDir, AttemptsDir, HostsDir} {
		if err := r.Disk.Mkdir(r.Path(sub), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := WriteNew(r.Disk, r.Path(SpecsFile), nil); err != nil {
		return err
	}
	if err := WriteNew(r.Disk, r.Path(FormatFile), formatText(r.Settings.Version)); err != nil {
		return err
	}
	// Last, because a directory with a run.toml is a run.
	if err := replace(r.Disk, r.Path(SettingsFile), settings, r.Nonce[:12]); err != nil {
		return err
	}
	return syncParent(r.Disk, r.Dir)
}

// syncParent makes the name of dir durable. It ignores that a parent that is not readable (a
// shared scratch directory) cannot be synced.
func syncParent(d Disk, dir string) error {
	if err := d.SyncDir(filepath.Dir(dir)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// inUseError is the error for a directory that is in use. It is fs.ErrExist, whose text would add
// nothing to its own.
type inUseError struct{ error }

func (e inUseError) Is(target error) bool { return target == fs.ErrExist }
func (e inUseError) Unwrap() error        { return e.error }

// takenError returns the error for a directory that is in use.
func takenError(dir string, names []string) error {
	switch {
	case slices.Contains(names, SettingsFile):
		name := filepath.Base(dir)
		ref := (&Run{Dir: dir, Settings: &Settings{Name: name}}).Ref()
		return inUseError{fmt.Errorf("the run %s exists (%s): choose another --name, "+
			"or continue it with `dcs-tui resume %s`", name, dir, ref)}
	case slices.Contains(names, NonceFile):
		return inUseError{&HalfMadeError{dir}}
	}
	return inUseError{fmt.Errorf("%s exists, is not empty and is not a run directory: choose another", dir)}
}

// HalfMadeError is the error for a directory in which the creation of a run has begun.
type HalfMadeError struct{ Dir string }

func (e *HalfMadeError) Error() string {
	return e.Dir + " is not a run yet: it is being created, or its creation was interrupted " +
		"(then nothing was started: remove it and run again)"
}

// removeCreated removes what was created before err, as far as possible. It returns an error that
// wraps err.
func removeCreated(d Disk, r *Run, err error) error {
	for _, name := range []string{
		SettingsFile, FormatFile, SpecsFile, HostsDir, AttemptsDir, JournalDir, NonceFile, "",
	} {
		if e := d.Remove(r.Path(name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			return fmt.Errorf("cannot create the run directory %s: %w (remove what is left of it)", r.Dir, err)
		}
	}
	return fmt.Errorf("cannot create the run directory %s: %w", r.Dir, err)
}

// checkDir returns an error for a run directory that others could read or write. The directory
// determines which commands are executed, and holds the outputs of jobs.
func checkDir(d Disk, dir string) error {
	info, err := d.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot inspect the run directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("the run directory %s belongs to user %d, not to you (%d): use a directory of your own", dir,
			st.Uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("the run directory %s is open to others (mode %04o): chmod 700 %s", dir, mode, dir)
	}
	return nil
}
