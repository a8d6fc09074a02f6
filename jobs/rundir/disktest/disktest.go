// Package disktest is a rundir.Disk that fails on demand. The n-th operation fails with a chosen
// error or a short write, or a power failure leaves only what was synced. It is only for tests of
// writes to a run directory.
package disktest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"dcs-tui/jobs/rundir"
)

// Disk passes every operation to rundir.OS, counts them, and lets one fail.
type Disk struct {
	mu     sync.Mutex
	count  int
	failAt int
	err    error
	short  bool // a failing write stores the first half
	Failed string

	dirty   map[string][]span // written but not synced, by path
	unnamed map[string]bool   // created or renamed here; the directory is not synced
}

// FailAt makes the n-th operation from now on fail with err, once. A failing write stores nothing,
// or the first half if short is set. A failing Sync loses what was written since the last one, as a
// kernel may.
func (d *Disk) FailAt(n int, err error, short bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count, d.failAt, d.err, d.short, d.Failed = 0, n, err, short, ""
}

// Count returns the number of operations since the last FailAt.
func (d *Disk) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

func (d *Disk) fail(op, path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	if d.count != d.failAt {
		return nil
	}
	d.Failed = op + " " + path
	return &fs.PathError{Op: op, Path: path, Err: d.err}
}

func (d *Disk) Mkdir(path string, perm fs.FileMode) error {
	if err := d.fail("mkdir", path); err != nil {
		return err
	}
	err := rundir.OS.Mkdir(path, perm)
	if err == nil {
		d.named(path)
	}
	return err
}

func (d *Disk) Names(dir string) ([]string, error) {
	if err := d.fail("readdir", dir); err != nil {
		return nil, err
	}
	return rundir.OS.Names(dir)
}

func (d *Disk) Stat(path string) (fs.FileInfo, error) {
	if err := d.fail("stat", path); err != nil {
		return nil, err
	}
	return rundir.OS.Stat(path)
}

func (d *Disk) Lstat(path string) (fs.FileInfo, error) {
	if err := d.fail("lstat", path); err != nil {
		return nil, err
	}
	return rundir.OS.Lstat(path)
}

func (d *Disk) Rename(from, to string) error {
	if err := d.fail("rename", to); err != nil {
		return err
	}
	err := rundir.OS.Rename(from, to)
	if err == nil {
		d.mu.Lock()
		if spans, ok := d.dirty[from]; ok {
			d.dirty[to] = spans
			delete(d.dirty, from)
		}
		delete(d.unnamed, from)
		d.mu.Unlock()
		d.named(to)
	}
	return err
}

func (d *Disk) Remove(path string) error {
	if err := d.fail("remove", path); err != nil {
		return err
	}
	return rundir.OS.Remove(path)
}

func (d *Disk) SyncDir(dir string) error {
	if err := d.fail("syncdir", dir); err != nil {
		return err
	}
	err := rundir.OS.SyncDir(dir)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		for path := range d.unnamed {
			if filepath.Dir(path) == filepath.Clean(dir) {
				delete(d.unnamed, path)
			}
		}
	}
	return err
}

func (d *Disk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	if err := d.fail("open", path); err != nil {
		return nil, err
	}
	f, err := rundir.OS.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	if flag&os.O_EXCL != 0 {
		d.named(path)
	}
	return &file{File: f, d: d, path: path}, nil
}

// PowerLoss removes from the real disk what was never synced: bytes become zero, and names vanish.
// Nobody may use the files in the meantime.
func (d *Disk) PowerLoss() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, spans := range d.dirty {
		if err := zero(path, spans); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for path := range d.unnamed {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	d.dirty, d.unnamed = nil, nil
	return nil
}

func zero(path string, spans []span) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, s := range spans {
		if _, err := f.WriteAt(make([]byte, s.to-s.from), s.from); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// named records a new name in a directory.
func (d *Disk) named(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unnamed == nil {
		d.unnamed = map[string]bool{}
	}
	d.unnamed[filepath.Clean(path)] = true
}

type file struct {
	rundir.File
	d    *Disk
	path string
}

type span struct{ from, to int64 }

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	if err := f.d.fail("read", f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	err := f.d.fail("write", f.path)
	if err != nil {
		if !f.d.short {
			return 0, err
		}
		b = b[:len(b)/2]
	}
	n, werr := f.File.WriteAt(b, off)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.dirty == nil {
		f.d.dirty = map[string][]span{}
	}
	f.d.dirty[f.path] = append(f.d.dirty[f.path], span{off, off + int64(n)})
	return n, errors.Join(err, werr)
}

func (f *file) Sync() error {
	err := f.d.fail("sync", f.path)
	f.d.mu.Lock()
	spans := f.d.dirty[f.path]
	delete(f.d.dirty, f.path)
	f.d.mu.Unlock()
	if err != nil {
		return errors.Join(err, zero(f.path, spans))
	}
	return f.File.Sync()
}

func (f *file) Size() (int64, error) {
	if err := f.d.fail("fstat", f.path); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *file) Truncate(size int64) error {
	if err := f.d.fail("truncate", f.path); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Close always closes the file, as the kernel does. It only reports the failure.
func (f *file) Close() error {
	err := f.d.fail("close", f.path)
	return errors.Join(err, f.File.Close())
}
