// Package regular reads regular files that a user or another program may have put there. Opening a
// pipe would wait for its other end, and a device may have no end: both are refused.
package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrKind is the error for what is not a regular file.
var ErrKind = errors.New("not a regular file")

// ErrSize is the error for a file that is too large.
var ErrSize = errors.New("too large")

// Opener is os.OpenFile, or the method of an os.Root.
type Opener func(path string, flags int, mode fs.FileMode) (*os.File, error)

// Open opens a regular file for reading.
func Open(open Opener, path string, flags int) (*os.File, error) {
	f, err := open(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrKind}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Read returns the content of a regular file of at most limit bytes.
func Read(open Opener, path string, limit int64) ([]byte, error) {
	f, err := Open(open, path, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrSize}
	}
	return b, err
}
