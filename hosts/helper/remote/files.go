//go:build linux

package remote

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// What is done with whole files, by the calls of calls.go.

// readFile reads a whole file.
func readFile(path string) ([]byte, error) {
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer closeFile(fd, path)
	b := make([]byte, 0, 1024)
	for {
		n, err := read(fd, path, b[len(b):cap(b)])
		if err != nil || n == 0 {
			return b, err
		}
		b = slices.Grow(b[:len(b)+n], 512)
	}
}

// readInto reads a file from its beginning until buf is full or the file ends.
func readInto(dirfd int, path string, buf []byte) (int, error) {
	fd, err := openat(dirfd, path, unix.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer closeFile(fd, path)
	return preadAll(fd, path, buf)
}

// preadAll reads an open file from its beginning until buf is full or the file ends.
func preadAll(fd int, path string, buf []byte) (have int, err error) {
	for have < len(buf) {
		n, err := pread(fd, path, buf[have:], int64(have))
		if err != nil {
			return have, err
		}
		if n == 0 {
			break
		}
		have += n
	}
	return have, nil
}

// finish writes b at the beginning of fd and closes it; on NFS the close is where
// an error comes.
func finish(fd int, path string, b []byte) error {
	err := pwrite(fd, path, b, 0)
	if cerr := closeFile(fd, path); err == nil {
		err = cerr
	}
	return err
}

// writeFile writes a file of ours in place: a reader may see it half written.
func writeFile(path string, b []byte) error {
	fd, err := openat(unix.AT_FDCWD, path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return finish(fd, path, b)
}

func remove(path string) error { return unlinkat(unix.AT_FDCWD, path, 0) }

func rename(from, to string) error { return renameat(unix.AT_FDCWD, from, unix.AT_FDCWD, to) }

// stat looks at a file, through links.
func stat(path string) (st unix.Stat_t, err error) {
	return st, statat(unix.AT_FDCWD, path, &st, 0)
}

func openDir(path string) (int, error) {
	return openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// list reads the names in a directory, all or none.
func list(dir string) ([]string, error) {
	fd, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer closeFile(fd, dir)
	return listOpen(fd, dir)
}

// listOpen reads the remaining names of an open directory.
func listOpen(fd int, dir string) ([]string, error) {
	var names []string
	buf := make([]byte, 8<<10)
	for {
		n, err := readdir(fd, dir, buf)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// makeDirs makes a directory of ours and what is missing above it.
func makeDirs(dir string) error {
	err := mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := makeDirs(filepath.Dir(dir)); err != nil {
			return err
		}
		err = mkdir(dir, 0o700)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := stat(dir)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: unix.ENOTDIR}
	}
	return err
}

// removeTree removes a directory and all below it. What is gone already is fine;
// what cannot be removed does not keep the rest.
func removeTree(dir string) error {
	names, err := list(dir)
	for _, n := range names {
		path := filepath.Join(dir, n)
		e := remove(path)
		if errors.Is(e, unix.EISDIR) {
			e = removeTree(path)
		}
		if err == nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	if err == nil {
		err = unlinkat(unix.AT_FDCWD, dir, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
