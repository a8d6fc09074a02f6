//go:build linux

package remote

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// Runs and users of a host share it through files in a sticky directory on its local disk. A
// file counts only while a process holds an OFD write lock on it. F_OFD_GETLK needs only read
// access, so everybody can test for the lock, and the kernel releases it with its holder. So the
// lock proves that its holder lives, the owner of the file identifies the user, and nothing can
// become stale.
//
// Whoever can open a file for reading can take a read lock on it, which would keep its owner from
// taking a write lock. Therefore a file is locked before anybody else can open it: its owner
// creates it under a new name with mode 0600, locks it, and then makes it readable. The lock is
// never taken again. What the file says changes by writing, which only its owner can do.
// docs/sharing.md has the whole argument.

// defaultShareDir is the shared directory unless share_dir is set.
const defaultShareDir = "/var/tmp/dcs-share"

const (
	// filesOfUser bounds the files of another user that are read in one pass. An honest user has one
	// per run and one per supervisor.
	filesOfUser = 1024
	// holdTries is how often a file is created again after it was removed in the meantime.
	holdTries = 5
	// staleFile is the age from which a file without a lock cannot be one that is being created.
	staleFile = time.Hour
)

var errMoved = errors.New("the file was removed while it was being created")

// heldFile is a file of ours in the shared directory. Its lock lasts until every process that has
// inherited the descriptor is gone.
type heldFile struct {
	fd   int // 0: none
	path string
}

// byteRange is a range of bytes of a file; n is 0 for all bytes from there on.
type byteRange struct{ from, n int64 }

// holdFile creates a file whose name begins with prefix. It locks the ranges and writes the text
// before anybody else can open the file.
func holdFile(dirfd int, dir, prefix string, text []byte, ranges ...byteRange) (f heldFile, err error) {
	name := prefix + strconv.Itoa(ownUID) + "." + rand.Text()[:12]
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL
	fd, err := openat(dirfd, name, flags, 0o600)
	if err != nil {
		return f, err
	}
	f = heldFile{fd, dir + "/" + name}
	for _, r := range ranges {
		if err == nil {
			err = lockRange(fd, f.path, r.from, r.n)
		}
	}
	if err == nil && len(text) > 0 {
		err = pwrite(fd, f.path, text, 0)
	}
	if err == nil {
		err = fchmod(fd, f.path, 0o644) // from here on, others see the file and its lock
	}
	if err == nil {
		err = f.inPlace()
	}
	if err != nil {
		f.remove()
		return heldFile{}, err
	}
	return f, nil
}

// write makes the file say text, which is as long as any before. It creates the file, whose name
// begins with prefix, if it is not there.
func (f *heldFile) write(dirfd int, dir, prefix string, text []byte) (err error) {
	if f.fd != 0 {
		if err = f.inPlace(); err == nil {
			err = pwrite(f.fd, f.path, text, 0)
		}
		if err == nil {
			return nil
		}
		f.remove()
	}
	for range holdTries {
		*f, err = holdFile(dirfd, dir, prefix, text, byteRange{})
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return err
}

// inPlace returns errMoved if the path no longer leads to the file. Cleaners of temporary
// directories, and owners, may remove files and directories at any time.
func (f *heldFile) inPlace() error {
	var ours, there unix.Stat_t
	err := fstat(f.fd, f.path, &ours)
	if err == nil {
		err = statat(unix.AT_FDCWD, f.path, &there, unix.AT_SYMLINK_NOFOLLOW)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && (ours.Ino != there.Ino || ours.Dev != there.Dev) {
		err = errMoved
	}
	return err
}

// remove removes and releases the file, even if other processes have inherited the descriptor.
func (f *heldFile) remove() {
	if f.fd == 0 {
		return
	}
	if f.inPlace() == nil {
		remove(f.path)
	}
	unlockRange(f.fd, f.path, 0, 0)
	closeFile(f.fd, f.path)
	*f = heldFile{}
}

// sharedFile is an open file in the shared directory, which may have been made by anybody.
type sharedFile struct {
	name string
	fd   int
	st   unix.Stat_t
	keptFile
}

// keptFile is what is known of a file that stays open from one look at the shared directory to the next.
type keptFile struct {
	entry uint64 // inode as the directory lists it
	look  int    // number of the last look that has seen it
	raw   []byte // content from which text was parsed; nil: none
	text  claimText
}

// keptFiles are the files that stay open, by name. Opening and closing a file takes most of the time of
// a look. An open file cannot be confused with another one that gets its name: its inode is not reused.
type keptFiles struct {
	files     map[string]*sharedFile
	looks     int
	hasOthers bool // the last look has seen files of other kinds
}

// maxKeptFiles bounds the number of files that stay open. Others are opened for each look.
const maxKeptFiles = 256

// begin begins a look. k may be nil: then nothing stays open.
func (k *keptFiles) begin() {
	if k != nil {
		k.looks++
		k.hasOthers = false
	}
}

// find returns the open file of a directory entry, or nil.
func (k *keptFiles) find(name []byte, entry uint64) *sharedFile {
	if k == nil {
		return nil
	}
	f := k.files[string(name)]
	if f == nil || f.entry != entry || fstat(f.fd, f.name, &f.st) != nil {
		return nil
	}
	f.look = k.looks
	return f
}

// keep keeps f open, or closes it.
func (k *keptFiles) keep(f *sharedFile) {
	if k == nil || k.files[f.name] == nil && len(k.files) >= maxKeptFiles {
		closeFile(f.fd, f.name)
		return
	}
	if old := k.files[f.name]; old != nil {
		closeFile(old.fd, old.name)
	}
	f.look = k.looks
	jobs.Insert(&k.files, f.name, f)
}

// end closes the files that the look has not seen.
func (k *keptFiles) end() {
	if k == nil {
		return
	}
	for name, f := range k.files {
		if f.look != k.looks {
			closeFile(f.fd, name)
			delete(k.files, name)
		}
	}
}

// readTries is how often readSealed reads a file that is being written.
const readTries = 8

// readSealed reads the content of a file of at most limit bytes, which its owner may be writing at
// this moment, into *v. It returns the bytes that it has read, or nil if they are f.raw.
func readSealed[T any](f *sharedFile, limit int, m magic, v *T) (raw []byte, err error) {
	buf := make([]byte, limit)
	for range readTries {
		n := 0
		if n, err = preadAll(f.fd, f.name, buf); err != nil {
			return nil, err
		}
		raw = buf[:n]
		if f.raw != nil && bytes.Equal(raw, f.raw) {
			return nil, nil
		}
		*v = *new(T)
		if err = unseal(raw, m, v); err == nil {
			return raw, nil
		}
	}
	return nil, err
}

func (f *sharedFile) owner() int { return int(f.st.Uid) }

func (f *sharedFile) inode() [2]uint64 { return [2]uint64{uint64(f.st.Dev), f.st.Ino} }

// isLocked reports whether a process holds a write lock in the range.
func (f *sharedFile) isLocked(r byteRange) (bool, error) {
	_, n, err := lockedRange(f.fd, f.name, r.from, r.n)
	return n > 0, err
}

// tooManyError is the reason why files of a user are not read.
type tooManyError struct{ uid int }

func (e tooManyError) Error() string {
	return fmt.Sprintf("%s has more than %d of these files; the others are not read", userName(e.uid), filesOfUser)
}

// closeAll closes all files.
func (k *keptFiles) closeAll() {
	k.begin()
	k.end()
}

// eachShared opens the files whose names begin with prefix, one after the other, and calls look. It
// calls ignored with the reason for each file that nobody reads: types other than regular files,
// files that others than their owner can write, and those of another user beyond filesOfUser. It
// skips files that cannot be opened: they are not published. Each file counts once, whatever its
// number of names. Files stay open in kept unless it is nil.
func eachShared(dirfd int, dir, prefix string, kept *keptFiles, look func(*sharedFile),
	ignored func(name string, why error)) error {
	if err := rewind(dirfd, dir); err != nil {
		return err
	}
	kept.begin()
	defer kept.end()
	users, seen := map[uint32]int{}, map[[2]uint64]bool{}
	isTooMany := func(f *sharedFile) bool {
		if f.owner() == ownUID {
			return false
		}
		users[f.st.Uid]++
		return users[f.st.Uid] > filesOfUser
	}
	visit := func(name []byte, entry uint64) {
		if !bytes.HasPrefix(name, []byte(prefix)) {
			if kept != nil && name[0] != '.' {
				kept.hasOthers = true
			}
			return
		}
		f, isKept := kept.find(name, entry), true
		if f == nil {
			// Look before opening, so that files beyond the bound cost little.
			f, isKept = &sharedFile{name: string(name), keptFile: keptFile{entry: entry}}, false
			if statat(dirfd, f.name, &f.st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				return
			}
		}
		if seen[f.inode()] {
			return
		}
		if isTooMany(f) {
			ignored(f.name, tooManyError{f.owner()})
			return
		}
		if !isKept {
			owner := f.owner()
			var err error
			f.fd, f.st, err = openPlainAt(dirfd, f.name)
			if isNotPlain(err) {
				ignored(f.name, fmt.Errorf("it is not a regular file (of %s)", userName(owner)))
			}
			if err != nil {
				return
			}
			defer kept.keep(f)
		}
		switch {
		case seen[f.inode()]:
		case f.st.Mode&0o022 != 0:
			seen[f.inode()] = true
			ignored(f.name, fmt.Errorf("others can write it (of %s)", userName(f.owner())))
		default:
			seen[f.inode()] = true
			look(f)
		}
	}
	buf := make([]byte, 8<<10)
	for {
		n, err := readdir(dirfd, dir, buf)
		if err != nil || n == 0 {
			return err
		}
		eachEntry(buf[:n], visit)
	}
}

// eachEntry calls visit with the name and the inode of each entry that getdents64(2) has returned.
func eachEntry(b []byte, visit func(name []byte, inode uint64)) {
	const nameAt = int(unsafe.Offsetof(unix.Dirent{}.Name))
	for len(b) > nameAt {
		inode, size := binary.NativeEndian.Uint64(b), int(binary.NativeEndian.Uint16(b[16:]))
		if size <= nameAt || size > len(b) {
			return
		}
		name, _, _ := bytes.Cut(b[nameAt:size], []byte{0})
		visit(name, inode)
		b = b[size:]
	}
}

// tend does what our files need: one whose holder lives is kept from cleaners, and one whose holder
// is gone is removed.
func (f *sharedFile) tend(dirfd int, held bool) {
	if f.owner() != ownUID {
		return
	}
	age := time.Since(time.Unix(f.st.Mtim.Unix()))
	published := f.st.Mode&0o044 != 0
	switch {
	case held && age > staleFile/2:
		tv := unix.NsecToTimeval(time.Now().UnixNano())
		unix.Futimes(f.fd, []unix.Timeval{tv, tv})
	case !held && (published || age > staleFile):
		unlinkat(dirfd, f.name, 0)
	}
}

// hasOnly reports whether the names in the shared directory that begin with prefix all begin with
// own, too.
func hasOnly(dirfd int, dir, prefix, own string) bool {
	if rewind(dirfd, dir) != nil {
		return false
	}
	names, err := remainingNames(dirfd, dir)
	if err != nil {
		return false
	}
	isOther := func(name string) bool { return strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, own) }
	return !slices.ContainsFunc(names, isOther)
}

// openShare opens the shared directory, and creates it if create is set. It refuses a directory
// in which others could remove our files.
func openShare(dir string, create bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	fd, err := openat(unix.AT_FDCWD, dir, flags, 0)
	if create && errors.Is(err, fs.ErrNotExist) {
		made := mkdir(dir, 0o1777)
		if err = made; err == nil || errors.Is(err, fs.ErrExist) {
			fd, err = openat(unix.AT_FDCWD, dir, flags, 0)
		}
		if made == nil && err == nil {
			fchmod(fd, dir, 0o1777) // independent of the umask
		}
	}
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = fstat(fd, dir, &st); err == nil && st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		err = fmt.Errorf("others may remove files from %s; set its sticky bit (chmod +t)", dir)
	}
	if err != nil {
		closeFile(fd, dir)
		return -1, err
	}
	return fd, nil
}
