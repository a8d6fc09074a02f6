//go:build linux

package remote

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs/rundir"
)

// readDisk is a rundir.Disk for reading alone, by the calls of calls.go.
type readDisk struct{ rundir.Disk }

var onlyRead = readDisk{rundir.OS}

func (readDisk) Names(dir string) ([]string, error) { return list(dir) }

func (readDisk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	fd, err := openat(unix.AT_FDCWD, path, flag, uint32(perm))
	if err != nil {
		return nil, err
	}
	return &readFrom{fd, path}, nil
}

type readFrom struct {
	fd   int
	path string
}

func (f *readFrom) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		k, err := pread(f.fd, f.path, b[n:], off+int64(n))
		if err != nil {
			return n, err
		}
		if k == 0 {
			return n, io.EOF
		}
		n += k
	}
	return n, nil
}

func (f *readFrom) Size() (int64, error) {
	var st unix.Stat_t
	err := fstat(f.fd, f.path, &st)
	return st.Size, err
}

func (f *readFrom) Close() error { return closeFile(f.fd, f.path) }

func (f *readFrom) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (f *readFrom) Truncate(int64) error               { return errors.ErrUnsupported }
func (f *readFrom) Sync() error                        { return errors.ErrUnsupported }
