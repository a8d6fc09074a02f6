package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

func (r *Run) readPrivate(name string, limit int64) (_ []byte, err error) {
	path := r.Path(name)
	names, err := r.Disk.Names(r.Dir)
	if err == nil && !slices.Contains(names, name) {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	info, err := r.Disk.Lstat(path)
	if err != nil {
		return nil, err
	}
	why := notOurs(info)
	switch {
	case why != "":
	case info.Mode().Perm()&0o022 != 0:
		why = fmt.Sprintf("others may write to it (mode %04o)", info.Mode().Perm())
	case info.Size() > limit:
		why = fmt.Sprintf("it has %d bytes, more than %d", info.Size(), limit)
	}
	if why != "" {
		return nil, fmt.Errorf("%s is ignored: %s", path, why)
	}
	f, err := r.Disk.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := readUpTo(f, limit+1)
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is ignored: it has more than %d bytes", path, limit)
	}
	return text, err
}

// ReplaceVolatile puts content in the place of path: a reader sees the old content or
// the new. The file is not durable and has mode 0600. It is written as tmp, which must
// be in the same directory, and renamed after check has returned nil; check may be nil.
func ReplaceVolatile(d Disk, path, tmp string, content []byte, check func() error) error {
	f, err := d.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	err = errors.Join(err, f.Close()) // on NFS, Close reports a full disk
	if err == nil && check != nil {
		err = check()
	}
	if err == nil {
		err = d.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(d, tmp))
	}
	return nil
}
