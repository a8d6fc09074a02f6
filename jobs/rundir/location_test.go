package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// elsewhereDisk shows the tree below top as a client sees it while its server or its mount is gone,
// or as FUSE shows it after a while.
type elsewhereDisk struct {
	Disk
	top        string
	unmounted  bool          // top is an empty directory of another file system
	renumbered bool          // every inode number at and below top has changed
	err        syscall.Errno // error of every call at and below top
}

func (d *elsewhereDisk) below(path string) bool {
	rel, err := filepath.Rel(d.top, path)
	return err == nil && filepath.IsLocal(rel)
}

func (d *elsewhereDisk) Stat(path string) (fs.FileInfo, error) {
	switch {
	case d.err != 0 && d.below(path):
		return nil, d.err
	case d.unmounted && path == d.top:
		info, err := d.Disk.Stat(path)
		if err == nil {
			st := info.Sys().(*syscall.Stat_t)
			st.Dev, st.Ino = st.Dev+1, st.Ino+1
		}
		return info, err
	case d.unmounted && d.below(path):
		return nil, fs.ErrNotExist
	case d.renumbered && d.below(path):
		info, err := d.Disk.Stat(path)
		if err == nil {
			info.Sys().(*syscall.Stat_t).Ino++
		}
		return info, err
	}
	return d.Disk.Stat(path)
}

func (d *elsewhereDisk) Names(path string) ([]string, error) {
	switch {
	case d.err != 0 && d.below(path):
		return nil, d.err
	case d.unmounted && path == d.top:
		return nil, nil
	case d.unmounted && d.below(path):
		return nil, fs.ErrNotExist
	}
	return d.Disk.Names(path)
}

// TestDeletedIsNotUnreachable checks that a run directory counts as deleted only if that is
// certain.
func TestDeletedIsNotUnreachable(t *testing.T) {
	for _, c := range []struct {
		what    string
		change  func(r *Run, top string, d *elsewhereDisk) error
		deleted bool
	}{
		{"nothing", func(*Run, string, *elsewhereDisk) error { return nil }, false},
		{"removed", func(r *Run, _ string, _ *elsewhereDisk) error { return os.RemoveAll(r.Dir) }, true},
		{"removed with the directory above",
			func(r *Run, _ string, _ *elsewhereDisk) error { return os.RemoveAll(filepath.Dir(r.Dir)) }, true},
		{"moved", func(r *Run, top string, _ *elsewhereDisk) error { return os.Rename(r.Dir, filepath.Join(top, "x")) },
			true},
		{"moved and back", func(r *Run, top string, _ *elsewhereDisk) error {
			return errors.Join(os.Rename(r.Dir, filepath.Join(top, "x")), os.Rename(filepath.Join(top, "x"), r.Dir))
		}, false},
		{"emptied", func(r *Run, _ string, _ *elsewhereDisk) error {
			return errors.Join(os.RemoveAll(r.Path(JournalDir)), os.Remove(r.Path(SettingsFile)))
		}, true},
		{"replaced", func(r *Run, top string, _ *elsewhereDisk) error {
			return errors.Join(os.Rename(r.Dir, filepath.Join(top, "x")), os.MkdirAll(r.Path(JournalDir), 0o700))
		}, true},
		{"replaced by another run", func(r *Run, top string, d *elsewhereDisk) error {
			if err := os.Rename(r.Dir, filepath.Join(top, "x")); err != nil {
				return err
			}
			_, err := CreateOn(d, filepath.Dir(r.Dir), "r", Settings{Cwd: "/"}, nil)
			return err
		}, true},
		{"under another inode number, as FUSE gives when it has forgotten the first",
			func(_ *Run, _ string, d *elsewhereDisk) error {
				d.renumbered = true
				return nil
			}, false},
		{
			"lost its run.toml only",
			func(r *Run, _ string, _ *elsewhereDisk) error { return os.Remove(r.Path(SettingsFile)) },
			false,
		},
		{"unmounted", func(_ *Run, _ string, d *elsewhereDisk) error { d.unmounted = true; return nil }, false},
		{"unmounted, the run is the mount", func(r *Run, _ string, d *elsewhereDisk) error {
			d.top, d.unmounted = r.Dir, true
			return nil
		}, false},
		{"stale handle", func(_ *Run, _ string, d *elsewhereDisk) error { d.err = syscall.ESTALE; return nil }, false},
		{"stale handle of the run alone", func(r *Run, _ string, d *elsewhereDisk) error {
			d.top, d.err = r.Dir, syscall.ESTALE
			return nil
		}, false},
		{"the server knows no name for the moment",
			func(_ *Run, _ string, d *elsewhereDisk) error { d.err = syscall.EIO; return nil }, false},
		{"the name is unknown, and listed", func(r *Run, _ string, d *elsewhereDisk) error {
			d.top, d.err = r.Dir, syscall.ENOENT
			return nil
		}, false},
	} {
		top := filepath.Join(t.TempDir(), "mnt")
		must(t, os.Mkdir(top, 0o700))
		d := &elsewhereDisk{Disk: OS, top: top}
		r, err := CreateOn(d, filepath.Join(top, Base), "r", Settings{Cwd: "/"}, nil)
		must(t, err)
		l := r.Locate()
		must(t, c.change(r, top, d))
		if got := l.Deleted(); got != c.deleted {
			t.Errorf("%s: deleted %v", c.what, got)
		}
	}
}

// TestARunWithoutSettingsIsKept checks that a directory without run.toml in which anything was
// started is never removed, whatever else of it is missing. A directory in which nothing was
// started is a run that was not completely created.
func TestARunWithoutSettingsIsKept(t *testing.T) {
	file := func(r *Run, elem ...string) {
		t.Helper()
		must(t, errors.Join(os.MkdirAll(filepath.Dir(r.Path(elem...)), 0o700),
			os.WriteFile(r.Path(elem...), []byte("x"), 0o600)))
	}
	for _, c := range []struct {
		what   string
		change func(r *Run)
		lost   bool
	}{
		{"nothing was started", func(*Run) {}, false},
		{"a journal", func(r *Run) { file(r, JournalDir, "1.jsonl") }, true},
		{"attempts", func(r *Run) { file(r, AttemptsDir, "000", "1.1.status") }, true},
		{"an owner", func(r *Run) { file(r, OwnerFile) }, true},
		{"attempts and no journal", func(r *Run) {
			file(r, AttemptsDir, "000", "1.1.out")
			os.Remove(r.Path(JournalDir))
		}, true},
		{"a journal and no nonce", func(r *Run) { file(r, JournalDir, "1.jsonl"); os.Remove(r.Path(NonceFile)) }, true},
		{"what cannot be listed", func(r *Run) { os.Remove(r.Path(AttemptsDir)); file(r, AttemptsDir) }, true},
	} {
		base := filepath.Join(t.TempDir(), Base)
		older, err := Create(base, "older", Settings{Cwd: "/"})
		must(t, err)
		r, err := Create(base, "sweep", Settings{Cwd: "/"})
		must(t, err)
		c.change(r)
		must(t, os.Remove(r.Path(SettingsFile)))
		ask := map[string]func() error{
			"Open":    func() error { _, err := Open(r.Dir); return err },
			"Find":    func() error { _, err := Find(base, "sweep"); return err },
			"newest":  func() error { _, err := Find(base, ""); return err },
			"by path": func() error { _, err := Find(base, r.Dir); return err },
			"Create":  func() error { _, err := Create(base, "sweep", Settings{Cwd: "/"}); return err },
		}
		if !c.lost {
			delete(ask, "newest") // the older one
		}
		for how, f := range ask {
			var lost *LostError
			err := f()
			if err == nil || errors.As(err, &lost) != c.lost || c.lost && strings.Contains(err.Error(), "remove") {
				t.Errorf("%s, %s: %v", c.what, how, err)
			}
			if how == "Create" && !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s, %s: %v is no fs.ErrExist", c.what, how, err)
			}
		}
		found, err := List(base)
		listed := 0
		for _, e := range found {
			if e.Name == "sweep" && e.Lost != nil && !e.Made.IsZero() {
				listed++
			}
		}
		if err != nil || (listed == 1) != c.lost || older == nil {
			t.Errorf("%s: listed %+v, %v", c.what, found, err)
		}
	}
}

// TestARunWithoutJournalIsKept checks that a run with attempts that has lost its journal is kept as
// well.
func TestARunWithoutJournalIsKept(t *testing.T) {
	r, err := Create(filepath.Join(t.TempDir(), Base), "sweep", Settings{Cwd: "/"})
	must(t, err)
	err = errors.Join(os.Remove(r.Path(JournalDir)), os.MkdirAll(r.Path(AttemptsDir, "000"), 0o700))
	must(t, err)
	if _, err := Open(r.Dir); err == nil || !strings.Contains(err.Error(), "has no journal; keep it") ||
		!strings.Contains(err.Error(), "restore journal from a backup") {
		t.Error(err)
	}
}

// TestNoRunIsNotLost checks that a directory that is not a run, but contains a journal, is not a
// run that has lost its run.toml.
func TestNoRunIsNotLost(t *testing.T) {
	dir := t.TempDir()
	must(t, errors.Join(os.Mkdir(filepath.Join(dir, JournalDir), 0o700),
		os.WriteFile(filepath.Join(dir, JournalDir, "diary"), nil, 0o600)))
	if err := lostError(OS, dir); err != nil {
		t.Error(err)
	}
}

// staleDisk hides new names until their parent directory has been listed. An NFS client that looked
// for a name before it existed behaves like this.
type staleDisk struct {
	Disk
	top   string // everything below it is hidden at first
	shown map[string]bool
}

func (d staleDisk) hidden(path string) bool {
	for p := filepath.Clean(path); p != d.top; p = filepath.Dir(p) {
		if p == filepath.Dir(p) {
			return false
		}
		if !d.shown[filepath.Dir(p)] {
			return true
		}
	}
	return false
}

func (d staleDisk) Names(dir string) ([]string, error) {
	if d.hidden(dir) {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	d.shown[filepath.Clean(dir)] = true
	return d.Disk.Names(dir)
}

func (d staleDisk) Stat(path string) (fs.FileInfo, error) {
	if d.hidden(path) {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
	}
	return d.Disk.Stat(path)
}

func (d staleDisk) OpenFile(path string, flag int, perm fs.FileMode) (File, error) {
	if d.hidden(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return d.Disk.OpenFile(path, flag, perm)
}

// TestRunMadeElsewhereIsFound checks that a run that another machine created is found and opened on
// a machine that had looked for it, and for the directory of runs, before they existed.
func TestRunMadeElsewhereIsFound(t *testing.T) {
	top := t.TempDir()
	base := filepath.Join(top, Base)
	made, err := Create(base, "sweep", Settings{})
	must(t, err)
	stale := func() staleDisk { return staleDisk{OS, top, map[string]bool{}} }
	if _, err := stale().Names(made.Dir); err == nil {
		t.Fatal("this disk is not stale")
	}
	if found, err := list(stale(), base); err != nil || len(found) != 1 {
		t.Errorf("list: %v %v", found, err)
	}
	if _, ok := isRun(stale(), made.Dir); !ok {
		t.Error("it is not taken for a run")
	}
	if r, err := OpenOn(stale(), made.Dir); err != nil || r.UID() != made.UID() {
		t.Errorf("open: %v", err)
	}
	if _, ok := isRun(stale(), filepath.Join(base, "other")); ok {
		t.Error("a run that is not there is found")
	}
}
