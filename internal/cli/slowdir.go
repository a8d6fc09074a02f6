package cli

import (
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs/rundir"
)

// slowAfter is when a person is told what a command waits for: a file system whose
// server is gone lets it hang for as long as that takes.
const slowAfter = 3 * time.Second

// slowDir is the disk of a command that has opened the run in dir: it says once that the
// run directory does not answer.
type slowDir struct {
	rundir.Disk
	dir  string
	con  *console.Console
	once sync.Once
}

// slowDir is the real disk, for a command.
func (a *app) slowDir(dir string) *slowDir {
	return &slowDir{Disk: rundir.OS, dir: dir, con: a.con}
}

// begin begins a call about dir; what it returns ends it. A screen has words of its own:
// while one is up nothing is said, and afterwards only if it still lasts.
func (d *slowDir) begin(dir string) (end func()) {
	over := new(atomic.Bool)
	var tell func()
	tell = func() {
		switch {
		case over.Load():
		case d.con.Held():
			time.AfterFunc(slowAfter, tell)
		default:
			d.once.Do(func() {
				d.con.Line(fmt.Sprintf("the run directory %s has not answered for %.0f s; waiting", console.CleanLine(dir), slowAfter.Seconds()))
			})
		}
	}
	t := time.AfterFunc(slowAfter, tell)
	return func() {
		over.Store(true)
		t.Stop()
	}
}

func (d *slowDir) Mkdir(path string, perm fs.FileMode) error {
	defer d.begin(d.dir)()
	return d.Disk.Mkdir(path, perm)
}

func (d *slowDir) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	defer d.begin(d.dir)()
	f, err := d.Disk.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	return &slowFile{f, d}, nil
}

func (d *slowDir) Names(dir string) ([]string, error) {
	defer d.begin(d.dir)()
	return d.Disk.Names(dir)
}

func (d *slowDir) Stat(path string) (fs.FileInfo, error) {
	defer d.begin(d.dir)()
	return d.Disk.Stat(path)
}

func (d *slowDir) Lstat(path string) (fs.FileInfo, error) {
	defer d.begin(d.dir)()
	return d.Disk.Lstat(path)
}

func (d *slowDir) Rename(from, to string) error {
	defer d.begin(d.dir)()
	return d.Disk.Rename(from, to)
}

func (d *slowDir) Remove(path string) error {
	defer d.begin(d.dir)()
	return d.Disk.Remove(path)
}

func (d *slowDir) SyncDir(dir string) error {
	defer d.begin(d.dir)()
	return d.Disk.SyncDir(dir)
}

// slowFile is a file of a slowDir.
type slowFile struct {
	rundir.File
	on *slowDir
}

func (f *slowFile) ReadAt(b []byte, at int64) (int, error) {
	defer f.on.begin(f.on.dir)()
	return f.File.ReadAt(b, at)
}

func (f *slowFile) WriteAt(b []byte, at int64) (int, error) {
	defer f.on.begin(f.on.dir)()
	return f.File.WriteAt(b, at)
}

func (f *slowFile) Size() (int64, error) {
	defer f.on.begin(f.on.dir)()
	return f.File.Size()
}

func (f *slowFile) Truncate(size int64) error {
	defer f.on.begin(f.on.dir)()
	return f.File.Truncate(size)
}

func (f *slowFile) Sync() error {
	defer f.on.begin(f.on.dir)()
	return f.File.Sync()
}

func (f *slowFile) Close() error {
	defer f.on.begin(f.on.dir)()
	return f.File.Close()
}
