package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// ReadPrivate returns the content of a file in the run directory, which must be a
// regular file of the user that only the user can write to and that has at most limit
// bytes. It lists the directory first, because on NFS a listing is what makes a new name
// visible. If there is no such file, the error wraps fs.ErrNotExist.
func (r *Run) ReadPrivate(name string, limit int64) ([]byte, error) {
	for retried := false; ; retried = true {
		b, err := r.readPrivate(name, limit)
		if !errors.Is(err, syscall.ESTALE) || retried { // on NFS the file was replaced meanwhile
			return b, err
		}
	}
}

func (r *Run) readPrivate(name string, limit int64) ([]byte, error) {
	path := r.Path(name)
	names, err := r.Disk.Names(r.Dir)
	if err == nil && !slices.Contains(names, name) {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return r.readChecked(path, limit)
}

// ReadListed reads a file of the run directory. It lists the file's directory first, because
// on NFS a listing is what makes a new name visible. If the file is not listed, ReadListed
// returns nil.
func (r *Run) ReadListed(elem ...string) ([]byte, error) {
	path := r.Path(elem...)
	names, err := r.Disk.Names(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	if !slices.Contains(names, filepath.Base(path)) {
		return nil, nil
	}
	return ReadFile(r.Disk, path)
}

// ignoredError reports a file that others may have made or changed, or that is too long.
type ignoredError struct{ path, why string }

func (e *ignoredError) Error() string { return e.path + " is ignored: " + e.why }

// readChecked is ReadPrivate for a path whose directory was listed.
func (r *Run) readChecked(path string, limit int64) ([]byte, error) {
	info, err := r.Disk.Lstat(path)
	if err != nil {
		return nil, err
	}
	why := ignoreReason(info)
	switch {
	case why != "":
	case info.Mode().Perm()&0o022 != 0:
		why = fmt.Sprintf("others may write to it (mode %04o)", info.Mode().Perm())
	case info.Size() > limit:
		why = fmt.Sprintf("it has %d bytes, more than %d", info.Size(), limit)
	}
	if why != "" {
		return nil, &ignoredError{path, why}
	}
	text, size, err := ReadPart(r.Disk, path, 0, limit)
	switch {
	case errors.Is(err, syscall.ELOOP):
		err = &ignoredError{path, "it is a symbolic link"}
	case err == nil && size > limit:
		err = &ignoredError{path, fmt.Sprintf("it has %d bytes, more than %d", size, limit)}
	}
	return text, err
}

// ReplaceVolatile replaces the content of path atomically, so that a reader sees either the old
// content or the new. The file is not durable and has mode 0600. It is written as tmp, which must
// be in the same directory, and is renamed after check has returned nil; check may be nil.
func ReplaceVolatile(d Disk, path, tmp string, content []byte, check func() error) error {
	f, err := d.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	err = errors.Join(err, f.Close()) // on NFS, Close reports a full disk
	if err == nil && check != nil {
		err = check()
	}
	return install(d, tmp, path, err)
}

// FileReader reads files of this machine that jobs write. A read may hang as long as its file
// system does. Callers can give up waiting for it. The number of concurrent reads is bounded.
type FileReader struct {
	disk   Disk
	places chan struct{} // holds one token per read in progress
}

// maxReads is the maximum number of concurrent reads of a FileReader.
const maxReads = 16

// NewFileReader returns a reader of files on a disk.
func NewFileReader(d Disk) *FileReader { return &FileReader{d, make(chan struct{}, maxReads)} }

// Read reads at most limit bytes of a file and returns them and the size of the file. A negative
// offset counts from the end. Read returns when ctx ends, even if the file system hangs.
func (r *FileReader) Read(ctx context.Context, path string, offset int64,
	limit int) (data []byte, size int64, err error) {
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
		a.data, a.size, a.err = readPiece(r.disk, path, offset, limit)
		got <- a
	}()
	select {
	case a := <-got:
		return a.data, a.size, a.err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// readPiece is Read without a context. On NFS, a file that another machine has just created may
// become visible only when its directory is listed.
func readPiece(d Disk, path string, offset int64, limit int) ([]byte, int64, error) {
	info, err := d.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, _ = d.Names(filepath.Dir(path)) // an error shows in the next line
		info, err = d.Lstat(path)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, 0, fmt.Errorf("%s is a symbolic link that dcs-tui did not create: not read", path)
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	return ReadPart(d, path, offset, int64(limit))
}

// StopFiles returns the stop files that the user of the run created. For each other file with such
// a name it returns an error with the reason why it is ignored. It lists the directory, because
// over NFS a name that another client created may be invisible to stat for half a minute.
func (r *Run) StopFiles() (names []string, refused []error, err error) {
	list, err := r.Disk.Names(r.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the run directory: %w", err)
	}
	for _, name := range []string{StopFile, StopNowFile} {
		if !slices.Contains(list, name) {
			continue
		}
		info, err := r.Disk.Lstat(r.Path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			continue
		case err != nil:
			return nil, nil, err
		}
		if why := ignoreReason(info); why != "" {
			refused = append(refused, fmt.Errorf("the file %s of the run is ignored: %s", name, why))
			continue
		}
		names = append(names, name)
	}
	return names, refused, nil
}

// ignoreReason returns why a stop file is ignored, or "" if it is a regular file of the user
// of the run. info must come from Lstat.
func ignoreReason(info fs.FileInfo) string {
	switch st, ok := info.Sys().(*syscall.Stat_t); {
	case info.Mode()&fs.ModeSymlink != 0:
		return "it is a symbolic link"
	case !info.Mode().IsRegular():
		return "it is not a file"
	case ok && int(st.Uid) != os.Geteuid():
		return fmt.Sprintf("it belongs to user %d, not to you", st.Uid)
	}
	return ""
}
