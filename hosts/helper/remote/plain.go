//go:build linux

package remote

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// A job owns its attempt's files as much as we do and may have replaced any of
// them: by a pipe on which a reader would wait for ever, a link to anything, a
// file without end. So they are opened as what they must be, and never read whole.

// openPlain opens a file for reading, if it is an ordinary one.
func openPlain(path string) (int, error) {
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = fstat(fd, path, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = &fs.PathError{Op: "read", Path: path, Err: errNotPlain}
	}
	if err != nil {
		closeFile(fd, path)
		return -1, err
	}
	return fd, nil
}

var errNotPlain = errors.New("not an ordinary file")

// readPlain reads at most n bytes of an ordinary file. What is no such file has
// no bytes: it says as little as an empty one.
func readPlain(path string, n int) ([]byte, error) {
	fd, err := openPlain(path)
	if errors.Is(err, errNotPlain) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closeFile(fd, path)
	b := make([]byte, n)
	n, err = preadAll(fd, path, b)
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}
