package files

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dcs-tui/hosts/helper"
	"dcs-tui/internal/regular"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Store keeps contents on a host and makes the directories of jobs. The helper fills it, and
// supervisors make directories from it. Each host has its own.
//
//	blobs/SUM, SUMx      contents, read-only; x: executable
//	tree                 manifest of the files that every job gets
//	own/17.2             manifest of the files that only this attempt gets
//	jobs/17.2/           directory of an attempt
//	returned/17.2        manifest of the files that it returns
//	kept/17/             directory of the last attempt of a job whose files could not be returned
//
// Jobs can change all of it. Nothing is written, changed, or removed outside of Dir because of a symbolic link
// in it, and nothing waits for a pipe in it.
type Store struct{ Dir string }

func (s Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.Dir}, parts...)...)
}

// in calls change in Dir.
func (s Store) in(change func(root *os.Root) error) error {
	root, err := openPlainDir(s.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return change(root)
}

// read reads a small file. It opens only regular files.
func (s Store) read(name string) ([]byte, error) {
	return rundir.ReadFile(rundir.WithoutPacks(rundir.Within(s.Dir)), s.path(name))
}

// Open creates the store if it is missing. If boot differs from that of the last Open, all
// contents are removed, because those written before a crash may be incomplete.
func (s Store) Open(boot string) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	return s.in(func(root *os.Root) error {
		was, err := s.read("boot")
		if err == nil && string(was) == boot {
			left, err := fs.Glob(root.FS(), tempDir+"/"+tempBlob+"*") // left by an earlier helper
			for _, name := range left {
				err = errors.Join(err, root.Remove(name))
			}
			return err
		}
		isOther := errors.Is(err, rundir.ErrNotRegular) || errors.Is(err, syscall.ELOOP) // a job has put it there
		if err != nil && !isOther && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, dir := range []string{tempDir, "blobs", "own", "tree"} {
			if err := root.RemoveAll(dir); err != nil {
				return err
			}
		}
		for _, dir := range []string{tempDir, "blobs", "own", "jobs", "returned"} {
			if err := root.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		return replace(root, "boot", []byte(boot))
	})
}

// tempBlob begins the names of contents that are being received, in tempDir.
const (
	tempDir  = "tmp"
	tempBlob = "blob-"
)

// Remove removes the store and all directories of jobs but those of Keep.
func (s Store) Remove() error {
	err := s.in(func(root *os.Root) error {
		list, err := fs.ReadDir(root.FS(), ".")
		for _, d := range list {
			if d.Name() != keptDir {
				err = errors.Join(err, removeAll(root, d.Name()))
			}
		}
		root.Remove(keptDir) // fails unless it is empty
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if os.Remove(s.Dir) != nil && err == nil {
		_, err = os.Lstat(s.path(keptDir))
	}
	return err
}

// keptDir is the name of the directory of Keep.
const keptDir = "kept"

// Directory returns the directory of an attempt.
func (s Store) Directory(attempt string) string { return s.path("jobs", attempt) }

// Keep moves the directory of an attempt whose files could not be returned to a place where it
// outlives the run, and returns that place. It replaces what an earlier attempt of the job left
// there.
func (s Store) Keep(id jobs.AttemptID) (dir string, err error) {
	name := kept(id.Job)
	return s.path(name), s.in(func(root *os.Root) error {
		err := root.MkdirAll(keptDir, 0o700)
		if err == nil {
			err = removeAll(root, name)
		}
		if err == nil {
			err = root.Rename(filepath.Join("jobs", id.String()), name)
		}
		return err
	})
}

// DropKept removes what Keep left of a job, which has succeeded since.
func (s Store) DropKept(id jobs.ID) error {
	return s.in(func(root *os.Root) error { return removeAll(root, kept(id)) })
}

func kept(id jobs.ID) string { return filepath.Join(keptDir, strconv.FormatInt(int64(id), 10)) }

// createTemp creates a file with a new name that begins with prefix.
func createTemp(root *os.Root, prefix string) (f *os.File, name string, err error) {
	name = filepath.Join(tempDir, prefix+rand.Text())
	f, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return f, name, err
}

// replace writes a small file atomically. It is not fsynced: see Open.
func (s Store) replace(name string, b []byte) error {
	return s.in(func(root *os.Root) error { return replace(root, name, b) })
}

func replace(root *os.Root, name string, b []byte) error {
	f, temp, err := createTemp(root, "")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		root.Remove(temp)
	}
	return err
}

func blobName(e *Entry) string {
	if e.Exec {
		return e.Sum.String() + "x"
	}
	return e.Sum.String()
}

// Missing returns the files whose contents the store lacks, each content once. With originals,
// a file whose original is on this machine with the same size and time is not missing, and
// its Target is set.
func (s Store) Missing(m Manifest, originals bool) (list []*Entry) {
	seen := map[string]bool{}
	for i := range m {
		e := &m[i]
		if e.Kind != 'f' {
			continue
		}
		if originals && filepath.IsAbs(e.Origin) {
			if st, err := os.Lstat(e.Origin); err == nil && st.Mode().IsRegular() && st.Size() == e.Size &&
				st.ModTime().UnixNano() == e.Mtime {
				e.Target = e.Origin
				continue
			}
		}
		if name := blobName(e); !seen[name] {
			seen[name] = true
			if st, err := os.Lstat(s.path("blobs", name)); err != nil || st.Size() != e.Size {
				list = append(list, e)
			}
		}
	}
	return list
}

// Receive stores a content, which it reads from r. The error is ErrChanged if the content does not
// have the sum of e.
func (s Store) Receive(e *Entry, r io.Reader) error {
	return s.in(func(root *os.Root) error {
		f, temp, err := createTemp(root, tempBlob)
		if err != nil {
			return err
		}
		defer root.Remove(temp)
		defer f.Close()
		h := sha256.New()
		if _, err := io.CopyN(io.MultiWriter(f, h), r, e.Size); err != nil {
			return err
		}
		if Sum(h.Sum(nil)) != e.Sum {
			return ErrChanged
		}
		mode := fs.FileMode(0o444)
		if e.Exec {
			mode = 0o555
		}
		at := time.Unix(0, e.Mtime)
		if err := errors.Join(f.Chmod(mode), f.Close(), root.Chtimes(temp, at, at)); err != nil {
			return err
		}
		return root.Rename(temp, filepath.Join("blobs", blobName(e)))
	})
}

// SetTree sets the files that every job gets from now on. Their contents must be in the store.
func (s Store) SetTree(m Manifest) error { return s.writeManifest("tree", m) }

// SetOwn sets the files that one attempt gets in addition.
func (s Store) SetOwn(attempt string, m Manifest) error {
	return s.writeManifest(filepath.Join("own", attempt), m)
}

// writeManifest records the times of the copies, by which a change by a job is recognized.
func (s Store) writeManifest(name string, m Manifest) error {
	m = slices.Clone(m)
	for i := range m {
		if e := &m[i]; e.Kind == 'f' && e.Target == "" {
			st, err := os.Lstat(s.path("blobs", blobName(e)))
			if err != nil {
				return err
			}
			e.Mtime = st.ModTime().UnixNano()
		}
	}
	return s.replace(name, m.Encode())
}

// SendError is the error for files that the dispatcher's machine cannot send.
type SendError struct{ Text string }

// Error returns the text of the dispatcher's machine.
func (e *SendError) Error() string { return e.Text }

// RefuseOwn records that an attempt cannot get its own files. Make returns why.
func (s Store) RefuseOwn(attempt string, why *SendError) error {
	return s.replace(filepath.Join("own", attempt), helper.Append(nil, manifestFile{Refused: why.Text}))
}

// HasOwn reports whether SetOwn or RefuseOwn was called for an attempt.
func (s Store) HasOwn(attempt string) bool {
	_, err := os.Lstat(s.path("own", attempt))
	return err == nil
}

// sentManifest returns the manifest of the files of an attempt.
func (s Store) sentManifest(attempt string, tree, own bool) (all Manifest, err error) {
	var names []string
	if tree {
		names = append(names, "tree")
	}
	if own {
		names = append(names, filepath.Join("own", attempt))
	}
	for _, name := range names {
		b, err := s.read(name)
		if err != nil {
			return nil, err
		}
		m, err := Decode(b)
		if err != nil {
			return nil, err
		}
		all = append(all, m...)
	}
	return all, nil
}

// maxWritable is the maximum size of the writable copies in the directory of a job, in bytes.
const maxWritable = 64 << 20

// Make makes the directory of an attempt and returns its path. Its own files replace those
// that every job gets. The directories that returns names for files are made, too. A sent file that
// returns matches is an output of an earlier attempt, which the job may write again: it is a writable
// copy, up to maxWritable in all. The others are read-only links.
func (s Store) Make(attempt string, tree, own bool, returns []string) (string, error) {
	dir := filepath.Join("jobs", attempt)
	m, err := s.sentManifest(attempt, tree, own)
	if err != nil {
		return s.path(dir), err
	}
	patterns, err := jobs.ParseReturn(returns)
	if err != nil {
		return s.path(dir), err
	}
	return s.path(dir), s.in(func(root *os.Root) error {
		if err := removeAll(root, dir); err != nil {
			return err
		}
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		left := int64(maxWritable)
		for i := range m {
			e := &m[i]
			isWritable := e.Kind == 'f' && e.Target == "" && e.Size <= left && patterns.Match(e.Path)
			if isWritable {
				left -= e.Size
			}
			if err := placeEntry(root, filepath.Join(dir, e.Path), e, isWritable); err != nil {
				return err
			}
		}
		return makeReturnDirs(root, dir, patterns)
	})
}

// makeReturnDirs makes the directories below dir in which a job is expected to create the files
// that it returns. A file that was sent may have the name of one. The job then fails by itself.
func makeReturnDirs(root *os.Root, dir string, returns jobs.ReturnPatterns) error {
	if len(returns) == 0 {
		return nil
	}
	root, err := root.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range returns.Dirs() {
		err := root.MkdirAll(name, 0o777)
		if rundir.IsFull(err) {
			return err
		}
	}
	return nil
}

// placeEntry creates one entry in the directory of a job that has not started yet.
func placeEntry(root *os.Root, to string, e *Entry, isWritable bool) error {
	if e.Kind == 'd' {
		return root.MkdirAll(to, 0o700)
	}
	target := e.Target
	if e.Kind == 'f' && target == "" {
		return placeFile(root, e, to, isWritable)
	}
	return replaceWith(root, to, func() error { return root.Symlink(target, to) })
}

// replaceWith calls create. If the file exists, it removes the file and calls create again.
func replaceWith(root *os.Root, file string, create func() error) error {
	err := create()
	if errors.Is(err, fs.ErrExist) {
		if err = root.Remove(file); err == nil {
			err = create()
		}
	}
	return err
}

// placeFile creates a link to the store's copy of a file, or a writable copy of it.
func placeFile(root *os.Root, e *Entry, to string, isWritable bool) error {
	blob := filepath.Join("blobs", blobName(e))
	st, err := root.Lstat(blob)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() || st.Size() != e.Size || st.ModTime().UnixNano() != e.Mtime {
		root.Remove(blob) // so that it is sent again
		return fmt.Errorf("a job changed the host's copy of %s", e.Path)
	}
	if isWritable {
		err := replaceWith(root, to, func() error { return copyFile(root, blob, to, st.Mode()|0o200) })
		if err == nil { // Collect recognizes an unchanged file by its time
			err = root.Chtimes(to, time.Time{}, st.ModTime())
		}
		return err
	}
	err = replaceWith(root, to, func() error { return root.Link(blob, to) })
	if errors.Is(err, syscall.EMLINK) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) {
		return copyFile(root, blob, to, st.Mode())
	}
	return err
}

func copyFile(root *os.Root, from, to string, mode fs.FileMode) error {
	in, err := regular.Open(root.OpenFile, from, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Collect records what an attempt returns: the files in its directory that match a pattern,
// except files that were sent and are unchanged. missing is the first pattern without a match. A
// file that leads out of the directory through a symbolic link is an error.
func (s Store) Collect(attempt string, tree, own bool, patterns []string) (n int, missing string, err error) {
	sent, err := s.sentManifest(attempt, tree, own)
	if err != nil {
		return 0, "", err
	}
	given := make(map[string]*Entry, len(sent))
	for i := range sent {
		given[sent[i].Path] = &sent[i]
	}
	returns, err := jobs.ParseReturn(patterns)
	if err != nil {
		return 0, "", err
	}
	root, err := os.OpenRoot(s.path("jobs", attempt))
	if err != nil {
		return 0, "", err
	}
	defer root.Close()
	var made []string
	var infos []fs.FileInfo // nil: the file is a symbolic link that cannot be followed
	err = fs.WalkDir(rootFS{root}, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || isNeverMoved(path) || !returns.Match(path) ||
			s.isUnchanged(given[path], root, path, d) {
			return err
		}
		st, err := root.Stat(path)
		switch {
		case err != nil && d.Type()&fs.ModeSymlink == 0:
			return err
		case err == nil && !st.Mode().IsRegular():
			return nil
		}
		made, infos = append(made, path), append(infos, st)
		return nil
	})
	if err != nil {
		return 0, "", err
	}
	selected, missing := returns.Select(made)
	var list Manifest
	for i, path := range made {
		st := infos[i]
		switch {
		case !selected[i]:
		case st == nil:
			return 0, "", fmt.Errorf("%q, which it returns, is a symbolic link that leads out of its directory, "+
				"or to nothing: %w", path, ErrLeadsOut)
		default:
			list = append(list, Entry{Path: path, Kind: 'f', Exec: st.Mode()&0o111 != 0, Size: st.Size(),
				Mtime: st.ModTime().UnixNano()})
		}
	}
	if missing != "" {
		return 0, missing, nil
	}
	if err := s.replace(filepath.Join("returned", attempt), list.Encode()); err != nil {
		return 0, "", err
	}
	return len(list), "", nil
}

// isUnchanged reports whether a file of a job's directory is still as it was sent.
func (s Store) isUnchanged(e *Entry, root *os.Root, path string, d fs.DirEntry) bool {
	if e == nil {
		return false
	}
	if d.Type()&fs.ModeSymlink != 0 {
		target, err := root.Readlink(path)
		return err == nil && target == e.Target
	}
	ours, err1 := os.Lstat(s.path("blobs", blobName(e)))
	is, err2 := d.Info()
	return err1 == nil && err2 == nil &&
		(os.SameFile(ours, is) || is.Size() == e.Size && is.ModTime().UnixNano() == e.Mtime)
}

// Returned returns the encoded manifest of the files that an attempt returns.
func (s Store) Returned(attempt string) ([]byte, error) {
	return s.read(filepath.Join("returned", attempt))
}

// OpenReturned opens a file in the directory of an attempt. A link does not lead out of it.
func (s Store) OpenReturned(attempt, path string) (*os.File, error) {
	root, err := os.OpenRoot(s.path("jobs", attempt))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return regular.Open(root.OpenFile, path, 0)
}

// Drop removes the directory of an attempt and its manifests.
func (s Store) Drop(attempt string) error {
	return s.in(func(root *os.Root) error {
		return errors.Join(removeAll(root, filepath.Join("jobs", attempt)),
			root.RemoveAll(filepath.Join("own", attempt)), root.RemoveAll(filepath.Join("returned", attempt)))
	})
}

// RemoveAll removes a tree, also one in which a job has removed permissions, or which is deeper than the number of
// files that this process may open.
func RemoveAll(dir string) error {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	return removeAll(root, filepath.Base(dir))
}

// maxDeep is the depth of a tree that removeAll does not make flatter: os.Root.RemoveAll has a file open for
// each level.
const maxDeep = 100

func removeAll(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil {
		return nil
	}
	for tops := []string{name}; len(tops) > 0; tops = tops[1:] {
		fs.WalkDir(rootFS{root}, tops[0], func(path string, d fs.DirEntry, err error) error {
			if d == nil || !d.IsDir() {
				return nil
			}
			root.Chmod(path, 0o700)
			if strings.Count(path[len(tops[0]):], "/") < maxDeep {
				return nil
			}
			top := filepath.Join(name, rand.Text())
			if root.Rename(path, top) != nil {
				return nil
			}
			tops = append(tops, top)
			return fs.SkipDir
		})
	}
	return root.RemoveAll(name)
}

// rootFS is root.FS() with all names that jobs can give to files, not only those in UTF-8.
type rootFS struct{ root *os.Root }

func (f rootFS) Open(name string) (fs.File, error) { return f.root.Open(name) }

// ErrLeadsOut is the error for a symbolic link that leads out of a job's directory.
var ErrLeadsOut = errors.New("it is not followed")

// tempPrefix begins the names of temporary files of Place.
const tempPrefix = ".dcs-tui-"
