//go:build linux

package remote

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// temps names the files that a process writes beside the shards before it puts
// them where they belong: .new.HOST.SLOT.PID.START.COUNT. If it dies at that, the
// name tells the next helper of the host that they are nobody's.
type temps struct {
	dir  string // attempts/
	host string
	by   holder
}

const tempPrefix = ".new."

var tempCount atomic.Int64

// path is a name that has not been used before.
func (t temps) path() string {
	return filepath.Join(t.dir, tempPrefix+t.host+"."+t.by.String()+"."+strconv.FormatInt(tempCount.Add(1), 10))
}

// sweep removes what dead processes of this host have left.
func (t temps) sweep() error {
	names, err := list(t.dir)
	for _, n := range names {
		rest, ok := strings.CutPrefix(n, tempPrefix+t.host+".")
		i := strings.LastIndexByte(rest, '.')
		if !ok || i < 0 {
			continue
		}
		if by, ok := parseHolder(rest[:i]); ok && !by.alive() {
			if e := remove(filepath.Join(t.dir, n)); e != nil && err == nil && !errors.Is(e, fs.ErrNotExist) {
				err = e
			}
		}
	}
	return err
}

// createTemp makes such a file.
func createTemp(path string) (int, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	fd, err := openat(unix.AT_FDCWD, path, flags, 0o600)
	if err != nil {
		remove(path) // the name is ours alone: what is there we have just made
	}
	if errors.Is(err, fs.ErrExist) { // and the server's reply was lost
		fd, err = openat(unix.AT_FDCWD, path, flags, 0o600)
	}
	return fd, err
}

// writeTemp writes such a file, fsynced and closed. On error there is none.
func writeTemp(path string, b []byte) error {
	fd, err := createTemp(path)
	if err != nil {
		return err
	}
	if err = pwrite(fd, path, b, 0); err == nil {
		err = fsync(fd, path)
	}
	if cerr := closeFile(fd, path); err == nil {
		err = cerr
	}
	if err != nil {
		again(func() error { return remove(path) })
	}
	return err
}

// replace writes the file path whole or not at all: as temp, on the same file
// system, then renamed.
func replace(temp, path string, b []byte) error {
	if err := writeTemp(temp, b); err != nil {
		return err
	}
	err := rename(temp, path)
	if err != nil {
		again(func() error { return remove(temp) })
	}
	return err
}

// The pauses between tries of what must not fail for a moment's trouble.
var pauses = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond}

// again does f until it succeeds or there is nothing to do it to, a few times.
func again(f func() error) (err error) {
	for _, p := range pauses {
		if err = f(); err == nil || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(p)
	}
	return f()
}
