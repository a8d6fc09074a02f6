package rundir

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// staleDisk shows nothing of what was made, by name, until the directory in which it
// stands has been listed: an NFS client that had looked for the name too early.
type staleDisk struct {
	Disk
	top   string // what stands below it is hidden at first
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

// DESIGN 5: a run that another machine has made is found and opened on one that had
// looked for it, and for the directory of runs, before they existed.
func TestRunMadeElsewhereIsFound(t *testing.T) {
	top := t.TempDir()
	base := filepath.Join(top, Base)
	made, err := Create(base, "sweep", Asked{})
	if err != nil {
		t.Fatal(err)
	}
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
	if r, err := open(stale(), made.Dir); err != nil || r.UID() != made.UID() {
		t.Errorf("open: %v", err)
	}
	if _, ok := isRun(stale(), filepath.Join(base, "other")); ok {
		t.Error("a run that is not there is found")
	}
}
