package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// elsewhereDisk shows the tree below top as a client sees it while its server, or its
// mount, is gone, or as FUSE shows it after a while.
type elsewhereDisk struct {
	Disk
	top        string
	unmounted  bool          // top is an empty directory of another file system
	renumbered bool          // every inode number at and below top is another one
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

// A run directory counts as deleted only when that is certain.
func TestDeletedIsNotUnreachable(t *testing.T) {
	for _, c := range []struct {
		what    string
		change  func(r *Run, top string, d *elsewhereDisk) error
		deleted bool
	}{
		{"nothing", func(*Run, string, *elsewhereDisk) error { return nil }, false},
		{"removed", func(r *Run, _ string, _ *elsewhereDisk) error { return os.RemoveAll(r.Dir) }, true},
		{"removed with the directory above", func(r *Run, _ string, _ *elsewhereDisk) error { return os.RemoveAll(filepath.Dir(r.Dir)) }, true},
		{"moved", func(r *Run, top string, _ *elsewhereDisk) error { return os.Rename(r.Dir, filepath.Join(top, "x")) }, true},
		{"moved and back", func(r *Run, top string, _ *elsewhereDisk) error {
			return errors.Join(os.Rename(r.Dir, filepath.Join(top, "x")), os.Rename(filepath.Join(top, "x"), r.Dir))
		}, false},
		{"emptied", func(r *Run, _ string, _ *elsewhereDisk) error {
			return errors.Join(os.RemoveAll(r.Path(JournalDir)), os.Remove(r.Path(AskedFile)))
		}, true},
		{"replaced", func(r *Run, top string, _ *elsewhereDisk) error {
			return errors.Join(os.Rename(r.Dir, filepath.Join(top, "x")), os.MkdirAll(r.Path(JournalDir), 0o700))
		}, true},
		{"replaced by another run", func(r *Run, top string, d *elsewhereDisk) error {
			if err := os.Rename(r.Dir, filepath.Join(top, "x")); err != nil {
				return err
			}
			_, err := CreateOn(d, filepath.Dir(r.Dir), "r", Asked{Cwd: "/"}, nil)
			return err
		}, true},
		{"under another inode number, as FUSE gives when it has forgotten the first", func(_ *Run, _ string, d *elsewhereDisk) error {
			d.renumbered = true
			return nil
		}, false},
		{"lost its run.toml only", func(r *Run, _ string, _ *elsewhereDisk) error { return os.Remove(r.Path(AskedFile)) }, false},
		{"unmounted", func(_ *Run, _ string, d *elsewhereDisk) error { d.unmounted = true; return nil }, false},
		{"unmounted, the run is the mount", func(r *Run, _ string, d *elsewhereDisk) error {
			d.top, d.unmounted = r.Dir, true
			return nil
		}, false},
		{"stale handle", func(_ *Run, _ string, d *elsewhereDisk) error { d.err = syscall.ESTALE; return nil }, false},
		{"stale handle of the run alone", func(r *Run, _ string, d *elsewhereDisk) error { d.top, d.err = r.Dir, syscall.ESTALE; return nil }, false},
		{"the server knows no name for the moment", func(_ *Run, _ string, d *elsewhereDisk) error { d.err = syscall.EIO; return nil }, false},
		{"the name is unknown, and listed", func(r *Run, _ string, d *elsewhereDisk) error { d.top, d.err = r.Dir, syscall.ENOENT; return nil }, false},
	} {
		top := filepath.Join(t.TempDir(), "mnt")
		if err := os.Mkdir(top, 0o700); err != nil {
			t.Fatal(err)
		}
		d := &elsewhereDisk{Disk: OS, top: top}
		r, err := CreateOn(d, filepath.Join(top, Base), "r", Asked{Cwd: "/"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := r.Locate()
		if err := c.change(r, top, d); err != nil {
			t.Fatal(err)
		}
		if got := l.Deleted(); got != c.deleted {
			t.Errorf("%s: deleted %v", c.what, got)
		}
	}
}
