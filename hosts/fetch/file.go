package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/results"
)

// leftFree is what is left of a disk for others: a dispatcher's journal is on it, too.
const leftFree = 64 << 20

// errFull says that only what is left for others is free. Files under way have their room.
var errFull = &diskError{syscall.ENOSPC}

// room takes room for a file of n bytes, beside those that are being written, or says
// that there is none: a host may say any size.
func (b *Bringer) room(n int64) error {
	free := b.Free
	if free == nil {
		free = b.free
	}
	b.asking.Lock()
	defer b.asking.Unlock()
	has, err := free()
	switch {
	case err != nil:
		return &diskError{err}
	case has <= 0:
		return errFull
	case n > 0 && has-b.owed.Load() < n:
		return fmt.Errorf("there is no room here for a file of %s", results.HumanBytes(n))
	}
	b.owed.Add(n)
	return nil
}

func (b *Bringer) free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(b.Run.Dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail)*st.Bsize - leftFree, nil
}

// output brings what an attempt has printed, unless it is here with the size that it has
// there, and says whether it was put here. A large one takes a place of large. The error is
// fs.ErrNotExist when the host has no such file.
func (b *Bringer) output(ctx context.Context, large chan struct{}, p Piece) (put bool, err error) {
	path := jobs.AttemptFile(b.Run.Dir, p.Attempt, p.File)
	have := int64(-1)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		have = info.Size()
	} else {
		p.Limit = hosts.MaxChunk
	}
	data, size, err := b.Read(ctx, p)
	if err != nil || have == size {
		return false, err
	}
	if size > largeBytes {
		select {
		case large <- struct{}{}:
			defer func() { <-large }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	if err := b.room(size); err != nil {
		return false, err
	}
	defer func() { b.owed.Add(p.Offset - size) }() // what was not written
	err = b.put(path, size, func(w io.WriterAt) error {
		for p.Limit = hosts.MaxChunk; ; {
			data = data[:min(int64(len(data)), size-p.Offset)] // it should not have grown
			if _, err := w.WriteAt(data, p.Offset); err != nil {
				return err
			}
			b.owed.Add(-int64(len(data)))
			if p.Offset += int64(len(data)); p.Offset >= size {
				return nil
			}
			if data, _, err = b.Read(ctx, p); err == nil && len(data) == 0 {
				err = fmt.Errorf("%s: %s.%s has become shorter while it was read", p.Host, p.Attempt, p.File)
			}
			if err != nil {
				return err
			}
		}
	})
	return err == nil, err
}

// status reads the status file of an attempt that has ended, of this attempt and host:
// another one tells nobody that the attempt is here. An attempt that was lost may have no
// sentinel: nil.
func (b *Bringer) status(ctx context.Context, p Piece) ([]byte, error) {
	p.File, p.Limit = jobs.FileStatus, attempts.StatusBytes+1
	data, _, err := b.Read(ctx, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := attempts.Decode(data, b.Run.UID(), p.Attempt)
	switch {
	case f.Damaged || f.State == attempts.Unreadable:
		return nil, fmt.Errorf("%s: %s.%s: %w", p.Host, p.Attempt, p.File, attempts.ErrStatus)
	case f.Host != p.Host:
		return nil, fmt.Errorf("%s: %s.%s: %w: it is of the host %q", p.Host, p.Attempt, p.File, attempts.ErrStatus, f.Host)
	case f.State != attempts.Finished:
		return nil, nil
	}
	return data, nil
}
