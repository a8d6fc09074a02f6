package metrics

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"dcs-tui/jobs/rundir"
)

// dirListings holds the directory listings of one Read. Each directory is listed once. It is safe
// for concurrent use.
type dirListings struct {
	disk rundir.Disk
	mu   sync.Mutex
	dirs map[string]func() (map[string]struct{}, error)
}

// isListed reports whether the listing of its directory shows a file.
func (n *dirListings) isListed(path string) (bool, error) {
	set, err := n.list(filepath.Dir(path))
	if _, ok := set[filepath.Base(path)]; ok {
		return true, nil
	}
	return false, err
}

// list returns the names in a directory. One that does not exist has none.
func (n *dirListings) list(dir string) (map[string]struct{}, error) {
	n.mu.Lock()
	list := n.dirs[dir]
	if list == nil {
		list = sync.OnceValues(func() (map[string]struct{}, error) { return n.read(dir) })
		n.dirs[dir] = list
	}
	n.mu.Unlock()
	return list()
}

// forget drops the listings of the directories below dir. They would take as much memory as all
// results of the run.
func (n *dirListings) forget(dir string) {
	maps.DeleteFunc(n.dirs, func(listed string, _ func() (map[string]struct{}, error)) bool {
		return filepath.Dir(listed) == dir
	})
}

// read lists dir. If dir cannot be seen, it lists the parent directory, which makes the name
// visible if another machine created it.
func (n *dirListings) read(dir string) (map[string]struct{}, error) {
	found, err := n.disk.Names(dir)
	if above := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && above != dir {
		if shown, _ := n.isListed(dir); shown {
			found, err = n.disk.Names(dir)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	set := make(map[string]struct{}, len(found))
	for _, name := range found { // including those listed before an error
		set[name] = struct{}{}
	}
	return set, err
}

// maxOwn bounds the size of a file of this package, in bytes. It is enough for the metrics of ten
// million jobs. A job may have replaced the file by something larger.
const maxOwn = 1 << 30

// openedFile is a regular file with its size when it was opened and the time of its last write, by
// the clock of its file server. Data that is appended later is not read.
type openedFile struct {
	rundir.File
	size    int64
	written time.Time // zero: not known
}

func openFile(d rundir.Disk, path string, flag int) (openedFile, error) {
	f, err := d.OpenFile(path, flag, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return openedFile{}, fmt.Errorf("%s is a symbolic link that dcs-tui did not create: not read", path)
	}
	if err != nil {
		return openedFile{}, err
	}
	o := openedFile{File: f}
	if real, ok := f.(interface{ Stat() (fs.FileInfo, error) }); ok {
		var info fs.FileInfo
		if info, err = real.Stat(); err == nil {
			o.size, o.written = info.Size(), info.ModTime()
		}
	} else { // a disk in memory, which holds only regular files
		o.size, err = f.Size()
	}
	if err != nil {
		return openedFile{}, errors.Join(err, f.Close())
	}
	return o, nil
}

// openOwn opens a file of the run directory that this package has written.
func openOwn(d rundir.Disk, path string, flag int) (openedFile, error) {
	o, err := openFile(d, path, flag)
	if err == nil && o.size > maxOwn {
		err = errors.Join(fmt.Errorf("%s has %d bytes: it is not ours", path, o.size), o.Close())
	}
	return o, err
}

// readEnd reads the last n bytes into buf, which grows.
func (o *openedFile) readEnd(buf *[]byte, n int64) ([]byte, error) {
	n = min(n, o.size)
	if int64(cap(*buf)) < n {
		*buf = make([]byte, max(n, min(2*int64(cap(*buf)), MaxRead), 4<<10))
	}
	b := (*buf)[:n]
	got, err := o.ReadAt(b, o.size-n)
	if errors.Is(err, io.EOF) { // the file has become shorter
		err = nil
	}
	return b[:got], err
}
