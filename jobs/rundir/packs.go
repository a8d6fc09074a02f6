package rundir

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"dcs-tui/jobs"
)

// PackSuffix ends the name of a pack, a zip archive beside a directory of attempts: files of
// attempts/000 are in attempts/000.<random>.zip. It counts only if all its entries are whole, have different
// names and contents of their own, are not compressed, and are files of attempts of this directory, each of
// which has its status file there, too. Any other is reported, and hides nothing: a job may have made it.
// A pack never changes, so that several processes can make and read them.
const PackSuffix = ".zip"

// WithPacks returns a disk that shows the files in packs as if they were still in the directory of
// their attempts. They can only be read. A file in the directory hides one of the same name in a
// pack. OS is such a disk.
func WithPacks(d Disk) Disk { return &packDisk{Disk: d, known: map[string]*packIndex{}} }

// WithoutPacks returns the disk that WithPacks was given, or d.
func WithoutPacks(d Disk) Disk {
	if p, ok := d.(*packDisk); ok {
		return p.Disk
	}
	return d
}

// packDisk is the disk of WithPacks.
type packDisk struct {
	Disk

	mu    sync.Mutex
	known map[string]*packIndex // by directory of attempts, at most maxIndexes
	order []string              // of known, the oldest first
}

// maxIndexes bounds the directories whose indexes are kept. Readers go from job to job, so few are
// enough.
const maxIndexes = 16

// maxPackDirectory bounds what is read of a file before it proves to be a pack, in bytes: mostly the
// directory at its end.
const maxPackDirectory = 16 << 20

// maxPacked bounds the number of files in a pack. Earlier versions put all files of a directory into
// one.
const maxPacked = 1 << 18

// ErrDamagedPack is the error for a file that is named like a pack and is not one, or that is
// damaged. It follows the path.
var ErrDamagedPack = errors.New("is not a whole archive of dcs-tui")

// ErrUnreadablePack is the error for a pack, or the directory of packs, that cannot be read now, which
// proves nothing about it.
var ErrUnreadablePack = errors.New("a pack cannot be read")

// LacksPack reports whether an error means that files in a pack were missed: it is damaged, or cannot be read.
func LacksPack(err error) bool { return isAny(err, ErrDamagedPack, ErrUnreadablePack) }

// unreadable returns the error for an error of the disk with a pack. One that is gone was put elsewhere.
func unreadable(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreadablePack, err)
}

// packIndex locates the files in the packs of a directory of attempts.
type packIndex struct {
	packs map[string]bool // paths of those that were read
	files map[string]packedFile
}

// packedFile is a file in a pack.
type packedFile struct {
	pack     string // path
	rival    string // path of a pack with another file of this name; "": none
	name     string
	at, size int64
	sum      uint32 // IEEE
	modified time.Time
}

// PackedName splits the name of a pack of a directory of attempts. ok is false for all other names.
func PackedName(name string) (shard string, ok bool) {
	shard, rest, found := strings.Cut(name, ".")
	return shard, found && isShard(shard) && len(rest) > len(PackSuffix) && strings.HasSuffix(rest, PackSuffix)
}

func isShard(name string) bool { return len(name) >= 3 && strings.Trim(name, "0123456789") == "" }

// isShardDir reports whether a path ends like a directory of attempts: in attempts/000.
func isShardDir(dir string) bool {
	return isShard(filepath.Base(dir)) && filepath.Base(filepath.Dir(dir)) == AttemptsDir
}

// readPacks reads the indexes of the packs of a directory of attempts that are not known yet. Packs that
// cannot be read are left out, and reported in the error.
func (d *packDisk) readPacks(shardDir string) error {
	above, shard := filepath.Split(shardDir)
	names, err := d.Disk.Names(above)
	if err = unreadable(err); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, name := range names {
		path := filepath.Join(above, name)
		if of, ok := PackedName(name); !ok || of != shard || d.knows(shardDir, path) {
			continue
		}
		files, ierr := readPackIndex(d.Disk, path)
		switch {
		case isAny(ierr, ErrNotRegular, syscall.EISDIR, syscall.ENXIO): // a socket; none of them was ever a pack
		case ierr != nil:
			err = errors.Join(err, ierr)
		default:
			d.add(shardDir, path, files)
		}
	}
	return err
}

// knows reports whether a pack was read. A pack never changes.
func (d *packDisk) knows(shardDir, path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	index := d.known[shardDir]
	return index != nil && index.packs[path]
}

// add adds the files of a pack to the index of its directory. Two packs may have the same file, if a
// packer was killed before it had removed what it had packed.
func (d *packDisk) add(shardDir, path string, files map[string]packedFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	index := d.known[shardDir]
	if index == nil {
		index = &packIndex{map[string]bool{}, files}
		d.known[shardDir], d.order = index, append(d.order, shardDir)
	}
	index.packs[path] = true
	for name, f := range files {
		switch is, there := index.files[name]; {
		case !there:
			index.files[name] = f
		case is.pack != path && (is.size != f.size || is.sum != f.sum):
			is.rival = path
			index.files[name] = is
		}
	}
	for len(d.order) > maxIndexes {
		delete(d.known, d.order[0])
		d.order = d.order[1:]
	}
}

// knownFile finds a file in the packs whose indexes are kept. This needs no look at the disk.
func (d *packDisk) knownFile(shardDir, name string) (f packedFile, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if index := d.known[shardDir]; index != nil {
		f, ok = index.files[name]
	}
	return f, ok
}

// find returns a file in a pack. first is the error without packs, which is returned if no pack has
// the file. A job may have made a file with the name of a pack: if packs differ, find returns neither.
func (d *packDisk) find(path string, first error) (f packedFile, err error) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	if !errors.Is(first, fs.ErrNotExist) || !isShardDir(dir) {
		return f, first
	}
	f, ok := d.knownFile(dir, name)
	if !ok {
		err = d.readPacks(dir)
		f, ok = d.knownFile(dir, name)
	}
	switch {
	case f.rival != "":
		return f, fmt.Errorf("%s or %s %w: each has another %s; move away the one that a job has made", f.pack, f.rival,
			ErrDamagedPack, name)
	case ok:
		return f, nil
	case err == nil:
		err = first
	}
	return f, err
}

func (d *packDisk) OpenFile(path string, flag int, perm fs.FileMode) (File, error) {
	plain, err := d.Disk.OpenFile(path, flag, perm)
	if err == nil || flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		return plain, err
	}
	f, err := d.find(path, err)
	if err != nil {
		return nil, err
	}
	pack, err := d.Disk.OpenFile(f.pack, os.O_RDONLY, 0)
	if err != nil {
		return nil, unreadable(err)
	}
	return &openPacked{pack, io.NewSectionReader(pack, f.at, f.size), f}, nil
}

func (d *packDisk) Names(dir string) ([]string, error) {
	names, err := d.Disk.Names(dir)
	switch {
	case filepath.Base(dir) == AttemptsDir:
		return names, unreadable(err) // it holds the packs
	case !isShardDir(dir):
		return names, err
	}
	perr := d.readPacks(dir) // even if there is no directory, or if it cannot be read
	d.mu.Lock()
	defer d.mu.Unlock()
	index := d.known[dir]
	if index == nil {
		return names, cmp.Or(perr, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	all := make(map[string]bool, len(index.files)+len(names))
	for _, name := range names {
		all[name] = true
	}
	for name := range index.files {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all)), cmp.Or(perr, err)
}

func (d *packDisk) Stat(path string) (fs.FileInfo, error)  { return d.stat(path, d.Disk.Stat) }
func (d *packDisk) Lstat(path string) (fs.FileInfo, error) { return d.stat(path, d.Disk.Lstat) }

func (d *packDisk) stat(path string, plain func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := plain(path)
	if err == nil {
		return info, nil
	}
	f, err := d.find(path, err)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func isAny(err error, some ...error) bool {
	return slices.ContainsFunc(some, func(e error) bool { return errors.Is(err, e) })
}

// readPackIndex reads which files a pack has.
func readPackIndex(d Disk, path string) (map[string]packedFile, error) {
	f, err := d.OpenFile(path, os.O_RDONLY, 0)
	switch {
	case errors.Is(err, syscall.ELOOP): // what it leads to may be one
		return nil, fmt.Errorf("%s %w: %w", path, ErrDamagedPack, err)
	case err != nil:
		return nil, unreadable(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, unreadable(err)
	}
	in := &directoryReader{pack: f, size: size, left: maxPackDirectory}
	files, err := readPackFiles(in, path, size)
	switch {
	case in.failure != nil:
		return nil, unreadable(in.failure)
	case err != nil:
		return nil, fmt.Errorf("%s %w: %w", path, ErrDamagedPack, err)
	}
	return files, nil
}

func readPackFiles(in *directoryReader, path string, size int64) (map[string]packedFile, error) {
	if err := checkPackEnd(in, size); err != nil {
		return nil, err
	}
	r, err := zip.NewReader(in, size)
	if err != nil {
		return nil, err
	}
	shard, _ := PackedName(filepath.Base(path))
	files, left := make(map[string]packedFile, len(r.File)), size
	for _, e := range r.File {
		at, err := e.DataOffset()
		if err != nil {
			return nil, err
		}
		// The name is before the content, too. A damaged one must not make an attempt vanish.
		_, isTwice := files[e.Name]
		n, before := int64(e.UncompressedSize64), make([]byte, at-in.lastAt-localHeaderBytes)
		if _, err := in.ReadAt(before, in.lastAt+localHeaderBytes); err != nil {
			return nil, err
		}
		fields, isNamed := bytes.CutPrefix(before, []byte(e.Name))
		id := attemptOf(e.Name)
		switch {
		case !isNamed:
			return nil, zip.ErrFormat
		case len(fields) < len(e.Extra) || !areFields(fields):
			return nil, fmt.Errorf("what is before the content of %s does not fit the directory of the archive", e.Name)
		case id == (jobs.AttemptID{}) || jobs.ShardDir(id.Job) != shard:
			return nil, fmt.Errorf("it has %q, which is no file of an attempt of %s", e.Name, shard)
		case e.Method != zip.Store || e.CompressedSize64 != e.UncompressedSize64:
			return nil, fmt.Errorf("%s in it is compressed or encrypted: make it with `zip -0`", e.Name)
		case isTwice:
			return nil, fmt.Errorf("it has two files %s", e.Name)
		case n < 0 || n > size-at || n > left:
			return nil, zip.ErrFormat // beyond the end, or the contents overlap
		}
		left -= n
		files[e.Name] = packedFile{pack: path, name: e.Name, at: at, size: n, sum: e.CRC32, modified: e.Modified}
	}
	for _, e := range r.File {
		if status := attemptOf(e.Name).String() + "." + string(jobs.FileStatus); files[status].pack == "" {
			return nil, fmt.Errorf("it has %s without %s", e.Name, status)
		}
	}
	return files, nil
}

// localHeaderBytes is the size of what precedes the name and the content of an entry.
const localHeaderBytes = 30

// areFields reports whether b is made of fields as they follow the name of an entry: the length of a damaged
// one would move the content.
func areFields(b []byte) bool {
	for len(b) >= 4 {
		n := 4 + int(binary.LittleEndian.Uint16(b[2:]))
		if n > len(b) {
			return false
		}
		b = b[n:]
	}
	return len(b) == 0
}

// attemptOf returns the attempt of a file by its name, or zero for any other name.
func attemptOf(name string) jobs.AttemptID {
	i := max(0, strings.LastIndexByte(name, '.'))
	id, _ := jobs.ParseAttemptID(name[:i]) // zero after an error
	switch jobs.File(name[min(i+1, len(name)):]) {
	case jobs.FileOut, jobs.FileErr, jobs.FileStatus:
		return id
	}
	return jobs.AttemptID{}
}

// checkPackEnd refuses a file that does not end as a zip archive without a comment, or whose directory
// is too large: zip.NewReader allocates memory for as many files as the end claims.
func checkPackEnd(in io.ReaderAt, size int64) error {
	const endBytes, locatorBytes, recordBytes = 22, 20, 56
	b := make([]byte, min(size, locatorBytes+endBytes))
	if len(b) < endBytes {
		return zip.ErrFormat
	}
	if _, err := in.ReadAt(b, size-int64(len(b))); err != nil {
		return err
	}
	locator, end := b[:len(b)-endBytes], b[len(b)-endBytes:]
	if !bytes.HasPrefix(end, []byte("PK\x05\x06")) || binary.LittleEndian.Uint16(end[20:]) > 0 {
		return zip.ErrFormat
	}
	directory := uint64(binary.LittleEndian.Uint32(end[12:]))
	if len(locator) == locatorBytes && bytes.HasPrefix(locator, []byte("PK\x06\x07")) { // zip64
		record := make([]byte, recordBytes)
		if _, err := in.ReadAt(record, int64(binary.LittleEndian.Uint64(locator[8:]))); err != nil {
			return err
		}
		if binary.LittleEndian.Uint64(record[32:]) > maxPacked {
			return errLargeDirectory
		}
		directory = binary.LittleEndian.Uint64(record[40:])
	}
	if directory > maxPackDirectory {
		return errLargeDirectory
	}
	return nil
}

var errLargeDirectory = errors.New("its directory is too large")

// directoryReader reads at most left more bytes of a pack.
type directoryReader struct {
	pack    File
	size    int64
	left    int
	lastAt  int64 // where the last read began: after DataOffset, the header before the content of an entry
	failure error // of the disk
}

func (r *directoryReader) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 || at > r.size {
		return 0, zip.ErrFormat
	}
	r.left, r.lastAt = r.left-len(b), at
	if r.left < 0 {
		return 0, errLargeDirectory
	}
	n, err := r.pack.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failure = err
	}
	return n, err
}

// openPacked is an open file in a pack.
type openPacked struct {
	pack File
	*io.SectionReader
	info packedFile
}

// ReadAt checks the content if it is read at once, as that of a status file: what a damaged one shows
// must not decide about an attempt.
func (f *openPacked) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.SectionReader.ReadAt(b, at)
	if err != nil && err != io.EOF {
		return n, unreadable(err)
	}
	isWhole := at == 0 && int64(n) == f.info.size
	isStatus := strings.HasSuffix(f.info.name, "."+string(jobs.FileStatus))
	if isWhole && isStatus && crc32.ChecksumIEEE(b[:n]) != f.info.sum {
		err = fmt.Errorf("%s %w: %s is damaged", f.info.pack, ErrDamagedPack, f.info.name)
	}
	return n, err
}

func (f *openPacked) Size() (int64, error)               { return f.info.size, nil }
func (f *openPacked) Stat() (fs.FileInfo, error)         { return f.info, nil }
func (f *openPacked) Close() error                       { return f.pack.Close() }
func (f *openPacked) WriteAt([]byte, int64) (int, error) { return 0, syscall.EROFS }
func (f *openPacked) Truncate(int64) error               { return syscall.EROFS }
func (f *openPacked) Sync() error                        { return nil }

// The methods of fs.FileInfo.

func (f packedFile) Name() string       { return f.name }
func (f packedFile) Size() int64        { return f.size }
func (f packedFile) Mode() fs.FileMode  { return 0o400 }
func (f packedFile) ModTime() time.Time { return f.modified }
func (f packedFile) IsDir() bool        { return false }
func (f packedFile) Sys() any           { return nil }
