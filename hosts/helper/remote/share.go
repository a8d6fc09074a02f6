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

// Runs and users of a host share it through files in a sticky directory on its local
// disk. A file says something only while its owner holds an OFD write lock on it: nobody
// can write-lock a file that he cannot open for writing, and F_OFD_GETLK needs only a
// file that is open for reading. So a held lock proves that the holder lives, the owner
// of the file proves whose it is, and nothing can go stale.

// defaultShareDir is the shared directory of hosts without share_dir.
const defaultShareDir = "/var/tmp/dcs-share"

// lockTries is how often we open the file again if it was removed in the meantime.
const lockTries = 5

var errMoved = errors.New("the file was removed while it was being opened")

// openOwnFile opens our file PREFIX<UID>, and creates it if there is none. If somebody
// else has put something under that name, our file has another name.
func openOwnFile(dirfd int, dir, prefix string) (name string, fd int, err error) {
	const flags = unix.O_RDWR | unix.O_NONBLOCK
	usual := prefix + strconv.Itoa(os.Getuid())
	open := func(name string) bool {
		// Without O_CREAT, because fs.protected_regular forbids it for files of others.
		if fd, err = openat(dirfd, name, flags, 0); err != nil {
			return false
		}
		if isOwnFile(fd, name) {
			unix.Fchmod(fd, 0o644) // others may have to read it
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
		unix.Fchmod(fd, 0o644) // whatever the umask is
	}
	return name, fd, err
}

// isOwnFile reports whether an open file is a regular file that only we can write and
// that has no other name. Such a file was created by openOwnFile.
func isOwnFile(fd int, name string) bool {
	var st unix.Stat_t
	return fstat(fd, name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG &&
		int(st.Uid) == os.Getuid() && st.Nlink == 1 && st.Mode&0o022 == 0
}

// inPlace returns the state of an open file, or errMoved if its path does not lead to it
// any more: cleaners of temporary directories, and owners, may remove files and
// directories at any time.
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

// isRangeLocked reports whether somebody holds a write lock on n bytes (0: to the end) from
// an offset of a regular file other than ours (nil: of any file). Anything else, and a file
// that we cannot open, holds no lock.
func isRangeLocked(dirfd int, name string, ours *unix.Stat_t, from, n int64) (bool, error) {
	fd, err := openat(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	for _, harmless := range []error{fs.ErrNotExist, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENXIO, unix.ENODEV, unix.EAGAIN} {
		if errors.Is(err, harmless) {
			return false, nil
		}
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

// maxShareNames bounds the files of a prefix that are looked at, because any user can
// create files there.
const maxShareNames = 4096

// shareNames lists the files whose names begin with prefix, in a fixed order.
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

// openShare opens the shared directory, and creates it if create is set. It refuses a
// directory in which others may remove our files.
func openShare(dir string, create bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	fd, err := openat(unix.AT_FDCWD, dir, flags, 0)
	if create && errors.Is(err, fs.ErrNotExist) {
		made := mkdir(dir, 0o1777)
		if err = made; err == nil || errors.Is(err, fs.ErrExist) {
			fd, err = openat(unix.AT_FDCWD, dir, flags, 0)
		}
		if made == nil && err == nil {
			unix.Fchmod(fd, 0o1777) // whatever the umask is
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

// Each run has one claim file on a host. Its text says what the run still wants; the
// helper writes it and holds a lock on the first byte. A supervisor that uses slots holds
// a lock on as many bytes behind an offset of its own, so the kernel keeps the count, and
// a job costs nothing while its supervisor continues. docs/sharing.md describes the file.
const (
	claimPrefix  = "run-"
	claimMagic   = "DSH1"
	claimBytes   = 512     // the largest text
	claimSpan    = 1 << 20 // supervisor N locks bytes from N spans on
	memoryStart  = 1 << 40 // and, from N spans behind this, one for each claimMemory bytes that its job may use
	claimMemory  = 64 << 20
	claimsOfUser = 64 // files of a user that are looked at
	deadClaim    = time.Hour
)

// claimText is the text of a claim file.
type claimText struct {
	run, name    string
	want, weight int
}

// claimFields are the fields as they stand in the file.
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

// claimFiles returns the prefix of the names of a run's claim files.
func claimFiles(run, host string) string {
	return fmt.Sprintf("%s%.8x.", claimPrefix, sha256.Sum256([]byte(run+"/"+host)))
}

// seenClaim is a claim that was found: Claim.Run is the name of its file.
type seenClaim struct {
	hosts.SlotClaim
	claimText
	helper bool // lives
}

// readClaims returns the claims in the shared directory that somebody holds, and says of
// files that are no claims why. The own run's is the file named own, and further files of
// the same run, which has this machine under several names, are left out.
func readClaims(dirfd int, dir, own, run string, slots int) (claims []seenClaim, odd map[string]string, err error) {
	names, err := shareNames(dirfd, dir, claimPrefix)
	if err != nil {
		return nil, nil, err
	}
	odd = map[string]string{}
	users := map[int]int{}
	for _, n := range names {
		c, err := readClaim(dirfd, n, slots, users)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			odd[n] = err.Error()
		case c != nil && (n == own || c.run != run || c.User != os.Getuid()):
			claims = append(claims, *c)
		}
	}
	return claims, odd, nil
}

// readClaim reads one claim; nil: nobody holds it. It counts the files of each user.
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
		// Nobody can take its lock in the meantime without noticing that the file is gone.
		if uid == os.Getuid() && time.Since(time.Unix(st.Mtim.Unix())) > deadClaim {
			unlinkat(dirfd, name, 0)
		}
		return nil, nil
	}
	text := &claimText{weight: 1}                   // as long as the helper has not written it
	for n := 0; n < lockTries && st.Size > 0; n++ { // it may be being written
		buf := make([]byte, claimBytes)
		n, rerr := pread(fd, name, buf, 0)
		if text, err = parseClaim(buf[:n]); rerr == nil && err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("its text is no claim (of %s): %w", userName(uid), err)
	}
	c := &seenClaim{SlotClaim: hosts.SlotClaim{User: uid, Run: name, Weight: text.weight, Held: held}, claimText: *text, helper: helper}
	if held > 0 {
		c.Memory = claimMemory * int64(countLocked(fd, name, memoryStart, math.MaxInt64, int(memory().total/claimMemory)))
	}
	if helper {
		c.Want = text.want
	}
	return c, nil
}

// countLocked counts the bytes of a range that supervisors have locked, up to limit. The
// kernel names any one lock of a range, so what is before and behind it is asked about, too.
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

// claimFile is the claim file of a run, opened by one of its processes.
type claimFile struct {
	fd   int // 0: not open
	path string
}

// open opens the file, or creates it. If it is open it stays so.
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
	n      int   // slots that it holds
	memory int64 // units of claimMemory
}

// hold makes the supervisor hold n slots: it publishes them, then counts, and lets go of
// all if the host has not so many. If the shared directory cannot be used, the slots of
// the host are not shared, and hold succeeds; the helper reports that.
func (s *slot) hold(n int) bool {
	u := &s.used
	slots := int(s.ctl.at(ctlShared).Load())
	switch {
	case slots == 0 || n == u.n:
		return true
	case n < u.n:
		unlockRange(u.fd, u.path, s.span()+int64(n), int64(u.n-n))
		u.n = n
		return true
	}
	dir := s.cfg.ShareDir
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
		return true // nobody else is here, and our own limit is kept without this
	}
	claims, _, err := readClaims(dirfd, dir, own, s.cfg.Run, slots)
	me := slices.IndexFunc(claims, func(c seenClaim) bool { return c.Run == own })
	if err != nil || me < 0 || hosts.SlotsFit(slots, plainClaims(claims), me, s.ctl.at(ctlLast).Load() != 0) {
		return true
	}
	s.releaseSlots()
	return false
}

// publish locks n slots in the claim file of the run.
func (s *slot) publish(dirfd, n int) (err error) {
	u := &s.used
	for range lockTries {
		if err := u.open(dirfd, s.cfg); err != nil {
			return err
		}
		if err = lockRange(u.fd, u.path, s.span(), int64(n)); err != nil {
			return err
		}
		u.n = n
		if _, err = inPlace(u.fd, u.path); err == nil {
			return nil
		}
		u.close()
		u.n, u.memory = 0, 0
	}
	return err
}

func (s *slot) span() int64 { return int64(s.by.Slot) * claimSpan }

// releaseSlots gives all slots back.
func (s *slot) releaseSlots() {
	if s.used.n > 0 {
		unlockRange(s.used.fd, s.used.path, s.span(), 0)
		s.used.n, s.used.memory = 0, 0
	}
}

// holdMemory publishes how many bytes the job of this supervisor may use; 0: none. It fails
// without a word, as hold does: the helper reports a shared directory that cannot be used.
func (s *slot) holdMemory(bytes int64) {
	u := &s.used
	units := min(bytes/claimMemory, claimSpan)
	if u.n == 0 || units == u.memory {
		return
	}
	unlockRange(u.fd, u.path, memoryStart+s.span(), claimSpan)
	if u.memory = units; units > 0 {
		lockRange(u.fd, u.path, memoryStart+s.span(), units)
	}
}

// awaitSlots waits until it holds n slots. It returns false when it should take nothing
// any more, or at until.
func (s *slot) awaitSlots(n int, until time.Duration) bool {
	for !s.hold(n) {
		if s.isSuperfluous() || uptime() > until {
			return false
		}
		// At random, so that two supervisors which hold each other off do not continue so.
		time.Sleep(holdPause/2 + time.Duration(mathrand.Int64N(int64(holdPause))))
	}
	return true
}

// holdPause is the mean time between two tries to hold slots.
const holdPause = 100 * time.Millisecond

func plainClaims(seen []seenClaim) (claims []hosts.SlotClaim) {
	for _, c := range seen {
		claims = append(claims, c.SlotClaim)
	}
	return claims
}
