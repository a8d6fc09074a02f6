//go:build linux

package remote

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

// Runs and users of a host share it through files in a sticky directory on its local disk. A
// file counts only while a process holds an OFD write lock on it. Nobody can lock a file that
// he cannot open for writing, and F_OFD_GETLK needs only read access. So the lock proves that
// its holder lives, the owner of the file identifies the user, and nothing can become stale.

// defaultShareDir is the shared directory unless share_dir is set.
const defaultShareDir = "/var/tmp/dcs-share"

// lockTries is how often a file is opened again after it was removed in the meantime.
const lockTries = 5

var errMoved = errors.New("the file was removed while it was being opened")

// openOwnFile opens our file PREFIX<UID>, and creates it if it is missing. If somebody else has
// put something in its place, our file gets another name.
func openOwnFile(dirfd int, dir, prefix string) (name string, fd int, err error) {
	const flags = unix.O_RDWR | unix.O_NONBLOCK
	usual := prefix + strconv.Itoa(os.Getuid())
	open := func(name string) bool {
		// Without O_CREAT, because fs.protected_regular forbids it for files of others.
		if fd, err = openat(dirfd, name, flags, 0); err != nil {
			return false
		}
		if isOwnFile(fd, name) {
			unix.Fchmod(fd, 0o644) // others must be able to read it
			return true
		}
		closeFile(fd, name)
		err = fs.ErrExist
		return false
	}
	if open(usual) {
		return usual, fd, nil
	}
	if name = usual; !errors.Is(err, fs.ErrNotExist) {
		names, err := shareNames(dirfd, dir, prefix)
		if err != nil {
			return "", -1, err
		}
		if i := slices.IndexFunc(names, open); i >= 0 {
			return names[i], fd, nil
		}
		name += "." + rand.Text()[:8]
	}
	fd, err = openat(dirfd, name, flags|unix.O_CREAT|unix.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		err = errMoved // another of our processes created it first
	}
	if err == nil {
		unix.Fchmod(fd, 0o644) // independent of the umask
	}
	return name, fd, err
}

// isOwnFile reports whether an open file is a regular file that only we can write and that has no
// other name.
func isOwnFile(fd int, name string) bool {
	var st unix.Stat_t
	return fstat(fd, name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG &&
		int(st.Uid) == os.Getuid() && st.Nlink == 1 && st.Mode&0o022 == 0
}

// inPlace returns the state of an open file, or errMoved if path no longer leads to it. Cleaners
// of temporary directories, and owners, may remove files and directories at any time.
func inPlace(fd int, path string) (*unix.Stat_t, error) {
	var ours, there unix.Stat_t
	err := fstat(fd, path, &ours)
	if err == nil {
		err = statat(unix.AT_FDCWD, path, &there, unix.AT_SYMLINK_NOFOLLOW)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && (ours.Ino != there.Ino || ours.Dev != there.Dev) {
		err = errMoved
	}
	return &ours, err
}

// isRangeLocked reports whether somebody holds a write lock on n bytes (0: to the end) from an
// offset of a regular file. The file ours (nil: none), other types of files, and files that
// cannot be opened do not count.
func isRangeLocked(dirfd int, name string, ours *unix.Stat_t, from, n int64) (bool, error) {
	fd, err := openat(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if isAny(err, fs.ErrNotExist, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENXIO, unix.ENODEV, unix.EAGAIN) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer closeFile(fd, name)
	var st unix.Stat_t
	if err := fstat(fd, name, &st); err != nil {
		return false, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || ours != nil && st.Ino == ours.Ino && st.Dev == ours.Dev {
		return false, nil
	}
	_, n, err = lockedRange(fd, name, from, n)
	return n > 0, err
}

// maxShareNames bounds the number of files with a prefix, because any user can create some.
const maxShareNames = 4096

// shareNames returns the sorted names that begin with prefix.
func shareNames(dirfd int, dir, prefix string) (names []string, err error) {
	if err := rewind(dirfd, dir); err != nil {
		return nil, err
	}
	buf := make([]byte, 8<<10)
	for n := 1; n > 0 && len(names) < maxShareNames; {
		if n, err = readdir(dirfd, dir, buf); err != nil {
			return nil, err
		}
		var some []string
		_, _, some = unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range some {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
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
			unix.Fchmod(fd, 0o1777) // independent of the umask
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

// touchFile sets the times of a file to now. Errors are ignored.
func touchFile(fd int) {
	tv := unix.NsecToTimeval(time.Now().UnixNano())
	unix.Futimes(fd, []unix.Timeval{tv, tv})
}

// Each run has one claim file on a host. Its text says what the run still wants. The helper writes
// it and holds a lock on the first byte. A supervisor that uses n slots holds a lock on n bytes
// from an offset of its own, so the kernel counts the slots in use, and a job costs nothing while
// its supervisor keeps the slot. docs/sharing.md describes the file.
const (
	claimPrefix = "run-"
	claimMagic  = "DSH1"
	claimBytes  = 512     // the largest text
	claimSpan   = 1 << 20 // the bytes of supervisor N begin at N spans
	// From here and N spans on: one byte per claimMemory that its job may use.
	memoryStart  = 1 << 40
	claimMemory  = 64 << 20
	claimsOfUser = 64 // files of one user that are read
	deadClaim    = time.Hour
)

// claimText is the text of a claim file.
type claimText struct {
	run, name    string
	want, weight int
}

// claimFields are the fields of the file.
type claimFields struct{ Run, Name, Want, Weight string }

func (c *claimText) append(b []byte) []byte {
	return appendSealed(b, claimMagic, claimFields{c.run, c.name[:min(len(c.name), 200)], strconv.Itoa(c.want), strconv.Itoa(c.weight)})
}

func parseClaim(b []byte) (*claimText, error) {
	var f claimFields
	if err := unseal(b, claimMagic, &f); err != nil {
		return nil, err
	}
	want, err1 := strconv.Atoi(f.Want)
	weight, err2 := strconv.Atoi(f.Weight)
	if err := errors.Join(err1, err2); err != nil || want < 0 || want > maxSlots || weight < 1 || weight > hosts.MaxShareWeight {
		return nil, fmt.Errorf("%w: wrong fields", errSeal)
	}
	return &claimText{f.Run, f.Name, want, weight}, nil
}

// claimFiles returns the prefix of the names of a run's claim files on a host.
func claimFiles(run, host string) string {
	return fmt.Sprintf("%s%.8x.", claimPrefix, sha256.Sum256([]byte(run+"/"+host)))
}

// seenClaim is a claim of a live process. Its Run is the name of the file.
type seenClaim struct {
	hosts.SlotClaim
	claimText
	helperAlive bool // its helper lives
}

// readClaims returns the claims in the shared directory that somebody holds, and the reasons why
// other files are no claims. Of the files of our own run, only the one named own counts: a run may
// have this machine under several names.
func readClaims(dirfd int, dir, own, run string, slots int) (claims []seenClaim, invalid map[string]string, err error) {
	names, err := shareNames(dirfd, dir, claimPrefix)
	if err != nil {
		return nil, nil, err
	}
	invalid = map[string]string{}
	users := map[int]int{}
	for _, n := range names {
		c, err := readClaim(dirfd, n, slots, users)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			invalid[n] = err.Error()
		case c != nil && (n == own || c.run != run || c.User != os.Getuid()):
			claims = append(claims, *c)
		}
	}
	return claims, invalid, nil
}

// readClaim reads one claim. It returns nil if nobody holds it. users counts the files per user.
func readClaim(dirfd int, name string, slots int, users map[int]int) (*seenClaim, error) {
	fd, err := openat(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer closeFile(fd, name)
	var st unix.Stat_t
	if err := fstat(fd, name, &st); err != nil {
		return nil, err
	}
	uid := int(st.Uid)
	users[uid]++
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("it is no regular file (of %s)", userName(uid))
	case st.Size > claimBytes:
		return nil, fmt.Errorf("it has %d bytes, more than a claim (of %s)", st.Size, userName(uid))
	case users[uid] > claimsOfUser:
		return nil, fmt.Errorf("%s has more than %d such files", userName(uid), claimsOfUser)
	}
	_, n, err := lockedRange(fd, name, 0, 1)
	if err != nil {
		return nil, err
	}
	helper, held := n > 0, countLocked(fd, name, claimSpan, memoryStart, slots+1)
	if !helper && held == 0 {
		// Whoever locks the file now notices that it was removed.
		if uid == os.Getuid() && time.Since(time.Unix(st.Mtim.Unix())) > deadClaim {
			unlinkat(dirfd, name, 0)
		}
		return nil, nil
	}
	text := &claimText{weight: 1}                   // until the helper has written it
	for n := 0; n < lockTries && st.Size > 0; n++ { // it may be written at this moment
		buf := make([]byte, claimBytes)
		n, rerr := pread(fd, name, buf, 0)
		if text, err = parseClaim(buf[:n]); rerr == nil && err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("its text is no claim (of %s): %w", userName(uid), err)
	}
	c := &seenClaim{SlotClaim: hosts.SlotClaim{User: uid, Run: name, Weight: text.weight, Held: held}, claimText: *text, helperAlive: helper}
	if held > 0 {
		c.Memory = claimMemory * int64(countLocked(fd, name, memoryStart, math.MaxInt64, int(readMemory().total/claimMemory)))
	}
	if helper {
		c.Want = text.want
	}
	return c, nil
}

// countLocked counts the locked bytes of a range, up to limit. The kernel returns any one lock of
// a range, so the parts before and after that are queried, too.
func countLocked(fd int, name string, from, to int64, limit int) (n int) {
	type span struct{ from, to int64 }
	for todo := []span{{from, to}}; len(todo) > 0 && n < limit; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		at, got, err := lockedRange(fd, name, s.from, s.to-s.from)
		if err != nil || got == 0 {
			continue
		}
		from, to := max(at, s.from), min(at+got, s.to)
		n += int(min(to-from, int64(limit)))
		if from > s.from {
			todo = append(todo, span{s.from, from})
		}
		if to < s.to {
			todo = append(todo, span{to, s.to})
		}
	}
	return min(n, limit)
}

// claimFile is the claim file of a run, as opened by one process.
type claimFile struct {
	fd   int // 0: closed
	path string
}

// open opens or creates the file unless it is open.
func (c *claimFile) open(dirfd int, cfg *slotConfig) (err error) {
	for try := 0; c.fd == 0 && try < lockTries; try++ {
		var name string
		var fd int
		if name, fd, err = openOwnFile(dirfd, cfg.ShareDir, claimFiles(cfg.Run, cfg.Host)); err == nil {
			c.fd, c.path = fd, cfg.ShareDir+"/"+name
		} else if !errors.Is(err, errMoved) {
			break
		}
	}
	return err
}

func (c *claimFile) close() {
	closeFile(c.fd, c.path)
	c.fd = 0
}

// usedSlots is a supervisor's part of the claim file.
type usedSlots struct {
	claimFile
	count  int   // slots that it holds
	memory int64 // units of claimMemory
}

// holdSlots makes the supervisor hold n slots. It publishes them, counts those of others, and
// releases all if that exceeds the slots of the host. If the shared directory cannot be used, slots
// are not shared and hold succeeds. The helper reports that.
func (s *slot) holdSlots(n int) bool {
	u := &s.used
	slots := int(s.control.word(ctlShared).Load())
	switch {
	case slots == 0 || n == u.count:
		return true
	case n < u.count:
		unlockRange(u.fd, u.path, s.span()+int64(n), int64(u.count-n))
		u.count = n
		return true
	}
	dir := s.config.ShareDir
	dirfd, err := openShare(dir, true)
	if err != nil {
		return true
	}
	defer closeFile(dirfd, dir)
	if err := s.publish(dirfd, n); err != nil {
		return true
	}
	own := u.path[strings.LastIndexByte(u.path, '/')+1:]
	if names, err := shareNames(dirfd, dir, claimPrefix); err == nil && slices.Equal(names, []string{own}) {
		return true // nobody else is here; our own limit is enforced elsewhere
	}
	claims, _, err := readClaims(dirfd, dir, own, s.config.Run, slots)
	me := slices.IndexFunc(claims, func(c seenClaim) bool { return c.Run == own })
	if err != nil || me < 0 || hosts.SlotsFit(slots, plainClaims(claims), me, s.control.word(ctlLast).Load() != 0) {
		return true
	}
	s.releaseSlots()
	return false
}

// publish locks n slots in the claim file of the run.
func (s *slot) publish(dirfd, n int) (err error) {
	u := &s.used
	for range lockTries {
		if err := u.open(dirfd, s.config); err != nil {
			return err
		}
		if err = lockRange(u.fd, u.path, s.span(), int64(n)); err != nil {
			return err
		}
		u.count = n
		if _, err = inPlace(u.fd, u.path); err == nil {
			return nil
		}
		u.close()
		u.count, u.memory = 0, 0
	}
	return err
}

func (s *slot) span() int64 { return int64(s.holder.Slot) * claimSpan }

// releaseSlots releases all slots.
func (s *slot) releaseSlots() {
	if s.used.count > 0 {
		unlockRange(s.used.fd, s.used.path, s.span(), 0)
		s.used.count, s.used.memory = 0, 0
	}
}

// holdMemory publishes how many bytes the job of this supervisor may use (0: none). Errors are
// ignored, as in hold.
func (s *slot) holdMemory(bytes int64) {
	u := &s.used
	units := min(bytes/claimMemory, claimSpan)
	if u.count == 0 || units == u.memory {
		return
	}
	unlockRange(u.fd, u.path, memoryStart+s.span(), claimSpan)
	if u.memory = units; units > 0 {
		lockRange(u.fd, u.path, memoryStart+s.span(), units)
	}
}

// awaitSlots waits until it holds n slots. It returns false at the time until, or when the
// supervisor should take nothing more.
func (s *slot) awaitSlots(n int, until time.Duration) bool {
	for !s.holdSlots(n) {
		if s.isSuperfluous() || uptime() > until {
			return false
		}
		// A random time, so that two supervisors do not keep each other waiting.
		time.Sleep(holdPause/2 + time.Duration(mathrand.Int64N(int64(holdPause))))
	}
	return true
}

// holdPause is the mean time between two tries of awaitSlots.
const holdPause = 100 * time.Millisecond

func plainClaims(seen []seenClaim) (claims []hosts.SlotClaim) {
	for _, c := range seen {
		claims = append(claims, c.SlotClaim)
	}
	return claims
}
