package rundir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FileReader reads files of this machine that jobs write. A read may hang for as long
// as its file system does: whoever waits for it can leave, and only so many are under
// way at once.
type FileReader struct {
	places chan struct{} // one taken by each read that is under way
}

// maxReads bounds the reads of a FileReader that are under way at once.
const maxReads = 16

// NewFileReader returns a reader with no read under way.
func NewFileReader() *FileReader { return &FileReader{places: make(chan struct{}, maxReads)} }

// Read reads at most limit bytes of a file and returns its size. A negative offset
// counts from the end. It is waited for no longer than ctx.
func (r *FileReader) Read(ctx context.Context, path string, offset int64, limit int) (data []byte, size int64, err error) {
	select {
	case r.places <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	type answer struct {
		data []byte
		size int64
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		defer func() { <-r.places }()
		var a answer
		a.data, a.size, a.err = readPiece(path, offset, limit)
		got <- a
	}()
	select {
	case a := <-got:
		return a.data, a.size, a.err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// readPiece is Read, waited for. On NFS a file that another machine has just made may
// show only when its directory is read.
func readPiece(path string, offset int64, limit int) ([]byte, int64, error) {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		if d, derr := os.Open(filepath.Dir(path)); derr == nil {
			d.Readdirnames(-1) // an error shows in the next line
			d.Close()
		}
		file, err = openRegular(path)
	}
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", path)
	}
	if offset < 0 {
		offset = max(0, info.Size()+offset)
	}
	n := min(int64(limit), info.Size()-offset)
	if n <= 0 {
		return nil, info.Size(), nil
	}
	b := make([]byte, n)
	k, err := file.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, info.Size(), err
	}
	return b[:k], info.Size(), nil
}

// openRegular opens for reading without waiting, should a job have put a pipe there;
// a terminal does not become ours. No link is followed: it may lead to any file.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link that dcs-tui did not create: not read", path)
	}
	return f, err
}
