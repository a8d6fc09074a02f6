// Package disktest is a rundir.Disk whose n-th operation fails with a chosen error or a short
// write. NewRun and Elsewhere prepare run directories. It is only for tests. Package memdisk
// simulates losses of power.
package disktest

import (
	"errors"
	"io/fs"
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
}

// FailAt makes the n-th operation from now on fail with err, once. A failing write stores nothing,
// or the first half if short is set.
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

// do executes an operation, unless it is the one that fails.
func (d *Disk) do(op, path string, f func() error) error {
	if err := d.fail(op, path); err != nil {
		return err
	}
	return f()
}

// ask executes an operation that has a result, unless it is the one that fails.
func ask[T any](d *Disk, op, path string, f func(path string) (T, error)) (result T, err error) {
	if err := d.fail(op, path); err != nil {
		return result, err
	}
	return f(path)
}

func (d *Disk) Names(dir string) ([]string, error)     { return ask(d, "readdir", dir, rundir.OS.Names) }
func (d *Disk) Stat(path string) (fs.FileInfo, error)  { return ask(d, "stat", path, rundir.OS.Stat) }
func (d *Disk) Lstat(path string) (fs.FileInfo, error) { return ask(d, "lstat", path, rundir.OS.Lstat) }

func (d *Disk) Mkdir(path string, perm fs.FileMode) error {
	return d.do("mkdir", path, func() error { return rundir.OS.Mkdir(path, perm) })
}

func (d *Disk) Rename(from, to string) error {
	return d.do("rename", to, func() error { return rundir.OS.Rename(from, to) })
}

func (d *Disk) Remove(path string) error {
	return d.do("remove", path, func() error { return rundir.OS.Remove(path) })
}

func (d *Disk) SyncDir(dir string) error {
	return d.do("syncdir", dir, func() error { return rundir.OS.SyncDir(dir) })
}

func (d *Disk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	return ask(d, "open", path, func(path string) (rundir.File, error) {
		f, err := rundir.OS.OpenFile(path, flag, perm)
		if err != nil {
			return nil, err
		}
		return &file{File: f, d: d, path: path}, nil
	})
}

type file struct {
	rundir.File
	d    *Disk
	path string
}

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
	return n, errors.Join(err, werr)
}

func (f *file) Size() (int64, error) {
	return ask(f.d, "fstat", f.path, func(string) (int64, error) { return f.File.Size() })
}

func (f *file) Sync() error { return f.d.do("sync", f.path, f.File.Sync) }

func (f *file) Truncate(size int64) error {
	return f.d.do("truncate", f.path, func() error { return f.File.Truncate(size) })
}

// Close always closes the file, as the kernel does. It only reports the failure.
func (f *file) Close() error {
	err := f.d.fail("close", f.path)
	return errors.Join(err, f.File.Close())
}
