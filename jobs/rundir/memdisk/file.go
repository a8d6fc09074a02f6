package memdisk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// ShortWrite is an error that Mount.Fault returns for a write. The write stores the first N bytes
// and then fails with Err; nil means io.ErrShortWrite. N is clamped to the length of the write.
type ShortWrite struct {
	N   int
	Err error
}

func (s ShortWrite) Error() string { return fmt.Sprintf("%v after %d bytes", s.Unwrap(), s.N) }

// Unwrap returns the cause.
func (s ShortWrite) Unwrap() error {
	if s.Err == nil {
		return io.ErrShortWrite
	}
	return s.Err
}

// LostWrites is an error that Mount.Fault returns for a sync. The sync fails with Err and loses
// what the machine has written to the file since the last sync, like a kernel that could not write
// it back. A later Sync does not restore it. With Zeros, the file keeps its length and the lost
// bytes read as zeros.
type LostWrites struct {
	Zeros bool
	Err   error
}

func (f LostWrites) Error() string { return fmt.Sprintf("%v, and the written bytes are lost", f.Err) }

// Unwrap returns the cause.
func (f LostWrites) Unwrap() error { return f.Err }

// file is an open file. It still works after its name is removed.
type file struct {
	m      *Mount
	n      *node
	path   string
	flag   int
	boot   int
	closed bool
}

// do runs an operation on an open file of a machine that has not lost its power.
func (f *file) do(op string, run func() error) error {
	return f.m.do(op, f.path, func() error {
		if err := f.dead(); err != nil {
			return err
		}
		return run()
	})
}

func (f *file) dead() error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case f.boot != f.m.boots:
		return syscall.ESTALE
	}
	return nil
}

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	end := false
	err = f.do("read", func() error {
		switch {
		case f.flag == os.O_WRONLY:
			return syscall.EBADF
		case off < 0:
			return syscall.EINVAL
		}
		if off < int64(len(f.n.data)) {
			n = copy(b, f.n.data[off:])
		}
		end = n < len(b)
		return nil
	})
	if err == nil && end {
		err = io.EOF
	}
	return n, err
}

func (f *file) WriteAt(b []byte, off int64) (n int, err error) {
	put := func() error {
		switch {
		case off < 0:
			return syscall.EINVAL
		case len(b) == 0:
			return nil
		case f.flag == os.O_RDONLY:
			return syscall.EBADF
		}
		n = len(b)
		f.m.server.write(f.n, write{by: f.m, off: off, data: slices.Clone(b)})
		return nil
	}
	err = f.do("write", put)
	var short ShortWrite
	if !errors.As(err, &short) {
		return n, err
	}
	f.m.server.mu.Lock()
	defer f.m.server.mu.Unlock()
	b = b[:min(max(0, short.N), len(b))]
	if dead := f.dead(); dead != nil {
		return 0, &fs.PathError{Op: "write", Path: f.path, Err: dead}
	}
	if bad := put(); bad != nil {
		return 0, &fs.PathError{Op: "write", Path: f.path, Err: bad}
	}
	return n, err
}

func (f *file) Size() (size int64, err error) {
	err = f.do("fstat", func() error {
		size = int64(len(f.n.data))
		return nil
	})
	return size, err
}

func (f *file) Truncate(size int64) error {
	return f.do("truncate", func() error {
		if f.flag == os.O_RDONLY || size < 0 {
			return syscall.EINVAL
		}
		if size != int64(len(f.n.data)) {
			f.m.server.write(f.n, write{by: f.m, truncate: true, off: size})
		}
		return nil
	})
}

func (f *file) Sync() error {
	err := f.do("sync", func() error {
		for i := range f.n.writes {
			if f.n.writes[i].by == f.m {
				f.n.writes[i].durable = true
			}
		}
		f.n.settleWrites()
		return nil
	})
	var forget LostWrites
	if errors.As(err, &forget) {
		f.m.server.mu.Lock()
		defer f.m.server.mu.Unlock()
		f.n.loseWrites(f.m, func(Loss) Fate { return Fate{Zeros: forget.Zeros} })
	}
	return err
}

// Close closes the file even if it reports an error, as the kernel does.
func (f *file) Close() error {
	err := f.do("close", func() error { return nil })
	f.m.server.mu.Lock()
	defer f.m.server.mu.Unlock()
	f.closed = true
	return err
}
