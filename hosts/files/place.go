package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"dcs-tui/internal/regular"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Placement describes what an attempt may write on this machine.
type Placement struct {
	Base    string // directory to which the paths of returned files are relative
	Records string // directory of the records for Sweep
	Attempt string // as in its file names
	// Patterns select the files that the attempt returns, by the same function as on its host.
	Patterns jobs.ReturnPatterns
	// Protected are absolute paths of files and directories that no attempt replaces or writes into,
	// because this machine trusts them: the run directory, the inventory, jobs files, the program.
	Protected []string
	Space     *Space // where the files are written
}

// ErrNotReturned is the error for a file that no pattern of the job matches.
var ErrNotReturned = errors.New("the job does not return it")

// check returns an error if the list of a host has a file that the attempt may not write. The host
// may have made up the list.
func (p *Placement) check(m Manifest) error {
	protected := map[string]bool{} // in lower case, because the file system may ignore case
	for _, path := range p.Protected {
		real, err := realPath(path)
		if err != nil {
			return err
		}
		protected[strings.ToLower(real)] = true
	}
	returned, _ := p.Patterns.Select(text.Each(m, func(e Entry) string { return e.Path }))
	dirs := map[string]string{} // the real directories of those of the manifest
	for i := range m {
		e := &m[i]
		if e.Kind != 'f' || !returned[i] || isNeverMoved(e.Path) {
			return &PlaceError{e.Path, ErrNotReturned}
		}
		dir := filepath.Dir(e.Path)
		real, ok := dirs[dir]
		if !ok {
			var err error
			if real, err = realPath(filepath.Join(p.Base, dir)); err != nil {
				return &PlaceError{e.Path, err}
			}
			dirs[dir] = real
		}
		for at := filepath.Join(real, filepath.Base(e.Path)); ; at = filepath.Dir(at) {
			if protected[strings.ToLower(at)] {
				return &PlaceError{e.Path, fmt.Errorf("%s is used by dcs-tui itself", at)}
			}
			if at == filepath.Dir(at) {
				break
			}
		}
		// A symbolic link of this machine may lead to what is never moved.
		if rel, err := filepath.Rel(p.Base, real); err == nil && isNeverMoved(rel) {
			return &PlaceError{e.Path, ErrNotReturned}
		}
	}
	return nil
}

// realPath resolves the symbolic links of an absolute path, of which the end need not exist.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
		return real, err
	}
	dir, err := realPath(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// Place writes the files that an attempt returns. It writes and fsyncs all of them under temporary
// names beside their places, calls commit, and renames them unless commit returns an error. read
// returns at most size-offset bytes, and none at the end of a file. If the attempt may not write one
// of the files, or they do not fit, Place writes nothing. After an error it leaves nothing behind.
// It records the temporary files in Records for Sweep, in case the process is killed. It also
// records the renamed files there until RemovePlaceRecord: as long as the result of the attempt is
// not recorded, another attempt may be the one that counts.
func (p *Placement) Place(m Manifest, read func(path string, offset int64, size int64) ([]byte, error),
	commit func() error) (err error) {
	if err := p.check(m); err != nil {
		return err
	}
	root, err := os.OpenRoot(p.Base)
	if err != nil {
		return err
	}
	defer root.Close()
	reserved := m.Bytes()
	if reserved > 0 {
		if err := p.Space.Reserve(reserved); err != nil {
			return err
		}
		defer func() { p.Space.Release(reserved) }()
	}
	written := func(n int64) {
		reserved -= n
		p.Space.Release(n)
	}
	if err := os.Mkdir(p.Records, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	notes, err := openPlainDir(p.Records)
	if err != nil {
		return err
	}
	defer notes.Close()
	attempt := p.Attempt
	if err := writeRecord(notes, attempt, m.Encode()); err != nil {
		return err
	}
	defer notes.Remove(attempt)
	defer removeTemps(root, attempt, m)
	for i := range m {
		if err := fetch(root, attempt, i, &m[i], read, written); err != nil {
			return err
		}
	}
	list, err := listTempFiles(root, attempt, m)
	if err == nil {
		err = list.write(notes, attempt+placedSuffix)
	}
	if err == nil {
		err = commit()
	}
	if err != nil {
		RemovePlaceRecord(p.Records, attempt)
		return err
	}
	ours := map[uint64]bool{} // inodes of renamed files
	for i := range m {
		st, err := root.Lstat(m[i].Path)
		switch {
		case err == nil && st.IsDir():
			err = errors.New("there is a directory of that name")
		case err == nil && inodeOf(st) != 0 && ours[inodeOf(st)]:
			err = errors.New("another file of the job has the same name on this file system, which ignores case")
		default:
			ours[list[i].Inode] = true
			err = root.Rename(tempName(attempt, i, m[i].Path), m[i].Path)
		}
		if err != nil {
			list.remove(root)
			RemovePlaceRecord(p.Records, attempt)
			return &PlaceError{m[i].Path, err}
		}
	}
	return syncDirs(root, m)
}

// RemovePlaceRecord removes the record of an attempt's renamed files. The caller has recorded the
// result of the attempt.
func RemovePlaceRecord(dir, attempt string) {
	if notes, err := openPlainDir(dir); err == nil { // otherwise a later Sweep removes it
		notes.Remove(attempt + placedSuffix)
		notes.Close()
	}
}

// placedSuffix ends the names of records of renamed files.
const placedSuffix = ".placed"

// placedFiles lists files that were or will be renamed. They are identified by inode, because
// another attempt, another job, or a person may write a file of the same name.
type placedFiles []placedFile

type placedFile struct {
	Path  string `json:"path"`
	Inode uint64 `json:"inode"`
}

// listTempFiles lists the files of an attempt, which still have their temporary names.
func listTempFiles(root *os.Root, attempt string, m Manifest) (placedFiles, error) {
	list := make(placedFiles, len(m))
	for i := range m {
		st, err := root.Lstat(tempName(attempt, i, m[i].Path))
		if err != nil {
			return nil, &PlaceError{m[i].Path, err}
		}
		list[i] = placedFile{m[i].Path, inodeOf(st)}
	}
	return list, nil
}

func inodeOf(st fs.FileInfo) uint64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

func (list placedFiles) write(notes *os.Root, name string) error {
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return writeRecord(notes, name, b)
}

// openPlainDir opens a directory, but not one behind a symbolic link, which a job may have put there: what is in
// it decides which files are removed.
func openPlainDir(dir string) (*os.Root, error) {
	above, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	st, err := above.Lstat(filepath.Base(dir))
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("%s is not a directory: remove it", dir)
	}
	return above.OpenRoot(filepath.Base(dir))
}

func writeRecord(notes *os.Root, name string, b []byte) error {
	f, err := notes.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// readRecord reads a record. It returns nil for what is no regular file, or too large for a record.
func readRecord(notes *os.Root, name string) ([]byte, error) {
	b, err := regular.Read(notes.OpenFile, name, maxRecord)
	if errors.Is(err, regular.ErrKind) || errors.Is(err, regular.ErrSize) {
		return nil, nil
	}
	return b, err
}

// maxRecord is more bytes than a record has: a list of returned files has at most 16 MiB.
const maxRecord = 128 << 20

// remove removes those files that were renamed.
func (list placedFiles) remove(root *os.Root) {
	for _, p := range list {
		if st, err := root.Lstat(p.Path); err == nil && p.Inode != 0 && inodeOf(st) == p.Inode {
			root.Remove(p.Path)
		}
	}
}

// PlaceError is the error for a returned file that cannot be written.
type PlaceError struct {
	Path string
	Err  error
}

// Error names the file and the cause.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("%q cannot be written here: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *PlaceError) Unwrap() error { return e.Err }

func tempName(attempt string, i int, path string) string {
	return filepath.Join(filepath.Dir(path), tempPrefix+attempt+"-"+strconv.Itoa(i))
}

// fetch writes a file under its temporary name.
func fetch(root *os.Root, attempt string, i int, e *Entry,
	read func(path string, offset int64, size int64) ([]byte, error), written func(n int64)) error {
	if err := root.MkdirAll(filepath.Dir(e.Path), 0o777); err != nil {
		return &PlaceError{e.Path, err}
	}
	temp := tempName(attempt, i, e.Path)
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &PlaceError{e.Path, err}
	}
	mode := fs.FileMode(0o666)
	if e.Exec {
		mode = 0o777
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return &PlaceError{e.Path, err}
	}
	defer f.Close()
	for at := int64(0); at < e.Size; {
		b, err := read(e.Path, at, e.Size)
		if err != nil {
			return err
		}
		if len(b) == 0 || int64(len(b)) > e.Size-at {
			return fmt.Errorf("%q changed its size while it was being returned", e.Path)
		}
		if _, err := f.Write(b); err != nil {
			return &PlaceError{e.Path, err}
		}
		written(int64(len(b)))
		at += int64(len(b))
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return &PlaceError{e.Path, err}
	}
	return nil
}

// syncDirs makes the names of files and of new directories durable.
func syncDirs(root *os.Root, m Manifest) error {
	done := map[string]bool{}
	for i := range m {
		for dir := filepath.Dir(m[i].Path); !done[dir]; dir = filepath.Dir(dir) {
			done[dir] = true
			d, err := root.Open(dir)
			if err == nil {
				err = errors.Join(d.Sync(), d.Close())
			}
			if err != nil {
				return &PlaceError{m[i].Path, err}
			}
		}
	}
	return nil
}

func removeTemps(root *os.Root, attempt string, m Manifest) {
	for i := range m {
		root.Remove(tempName(attempt, i, m[i].Path))
	}
}

// Sweep removes temporary files that a killed dispatcher has left, and files of attempts that
// do not count. counts reports whether the result of an attempt is recorded. A removed file
// that is still on its host is returned again. Sweep leaves everything in the directory that is not
// a record.
func Sweep(base, records string, counts func(attempt string) bool) error {
	notes, err := openPlainDir(records)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer notes.Close()
	list, err := fs.ReadDir(notes.FS(), ".")
	if err != nil || len(list) == 0 {
		return err
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, d := range list {
		attempt, placed := strings.CutSuffix(d.Name(), placedSuffix)
		if _, err := jobs.ParseAttemptID(attempt); err != nil || !d.Type().IsRegular() {
			continue
		}
		b, err := readRecord(notes, d.Name())
		if err != nil {
			return err
		}
		if placed {
			var files placedFiles
			// If it is damaged, no file was renamed.
			if json.Unmarshal(b, &files) == nil && !counts(attempt) {
				files.remove(root)
			}
		} else if m, err := Decode(b); err == nil { // if it is damaged, no file was created
			removeTemps(root, attempt, m)
		}
		if err := notes.Remove(d.Name()); err != nil {
			return err
		}
	}
	return nil
}
