//go:build linux

package remote

import (
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// holdSlots makes the supervisor hold n slots. It publishes them, counts those of others, and
// releases all if that exceeds the slots of the host. If the shared directory cannot be used, slots
// are not shared and hold succeeds. The helper reports that.
func (s *slot) holdSlots(n int) bool {
	number := s.control.share()
	held := s.claim.text.held
	text := claimText{run: s.config.Run, group: claimGroup(s.config.Run, s.config.Host), name: s.config.RunName,
		slots: number.Rule, held: n, tried: max(0, n-held)}
	switch {
	case number.Slots == 0 || n == held:
		return true
	case n < held:
		s.claim.update(text)
		return true
	}
	dir := s.config.ShareDir
	dirfd, err := openShare(dir, true)
	if err != nil {
		return true
	}
	defer closeFile(dirfd, dir)
	if s.claim.write(dirfd, dir, text) != nil {
		return true
	}
	if !s.mayHold(dirfd, text.group, number) {
		s.releaseSlots()
		return false
	}
	text.tried = 0
	s.claim.update(text)
	return true
}

// mayHold reports whether the host has the slots that the claims of the group hold.
func (s *slot) mayHold(dirfd int, group string, number hosts.Share) bool {
	dir := s.config.ShareDir
	if hasOnly(dirfd, dir, claimPrefix, claimFiles(group)) {
		return true // nobody else is here; our own limit is enforced elsewhere
	}
	claims, _, err := readClaims(dirfd, dir, group, s.config.Run, nil)
	me := indexOfOwn(claims, group)
	if err != nil || me < 0 {
		return true
	}
	list := plainClaims(claims)
	return hosts.SlotsFit(hosts.SharedSlots(number, list), list, me, int(s.control.word(ctlLast).Load()))
}

// releaseSlots releases all slots. The claim stays, and records that it holds none.
func (s *slot) releaseSlots() {
	text := s.claim.text
	text.held, text.tried, text.memory = 0, 0, 0
	s.claim.update(text)
}

// holdMemory publishes how many bytes the job of this supervisor may use (0: none). Errors are
// ignored, as in holdSlots.
func (s *slot) holdMemory(bytes int64) {
	if text := s.claim.text; text.held > 0 {
		text.memory = bytes
		s.claim.update(text)
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

// If root has given a half-life in the file shares, each user keeps a record of the usage of the
// host by all users, as its helpers have seen it. It is a file in the shared directory that nobody
// else can read. A helper reads, updates, and writes it under a lock, so that several of them charge
// nothing twice. What a helper has in memory counts if the file is older, damaged, or missing.

const (
	usagePrefix   = "usage-"
	usageInterval = 10 * time.Second // between two updates
	maxUsageFile  = 4 << 10          // bytes
)

var usageMagic = magic{"DSU", &jobs.FormatUsage}

// usageFields are the fields of the file. At is a time of the boot clock of Boot.
type usageFields struct {
	Boot  string
	At    time.Duration
	Users []hosts.UserUsage
}

// updateUsage charges users for the slots that they hold now, unless that was done a moment ago. now is
// the boot clock. With writes, the file is updated. Errors are ignored: the record in memory goes on.
func updateUsage(u *hosts.SlotUsage, dirfd int, dir string, now, halfLife time.Duration, slots int,
	claims []hosts.SlotClaim, writes bool) {
	if u.At != 0 && now-u.At < usageInterval {
		return
	}
	observe := func() { u.Observe(now, halfLife, slots, ownUID, claims) }
	fd, name, err := openUsage(dirfd, dir, writes)
	if err != nil {
		observe()
		return
	}
	defer closeFile(fd, name)
	if writes && lockRange(fd, name, 0, 0) != nil { // the lock ends with the descriptor
		observe()
		return
	}
	file, err := readUsage(fd, name)
	if _, ok := errors.AsType[*jobs.VersionError](err); ok {
		writes = false
	}
	if err == nil && file.Boot == bootID() && file.At > u.At && file.At <= now {
		u.At, u.Users = file.At, file.Users
	}
	if now-u.At < usageInterval {
		return // another helper has just done it
	}
	observe()
	if writes {
		b := appendSealed(nil, usageMagic, usageFields{bootID(), u.At, u.Users})
		_ = pwrite(fd, name, b, 0)
	}
}

func readUsage(fd int, name string) (f usageFields, err error) {
	buf := make([]byte, maxUsageFile)
	n, err := preadAll(fd, name, buf)
	if err == nil {
		err = unseal(buf[:n], usageMagic, &f)
	}
	return f, err
}

// openUsage opens the record of our user, and creates it if create is set. Others can make files with
// its prefix, and links to files of ours, so it must be a file of ours with one name, and look like
// a record or be empty.
func openUsage(dirfd int, dir string, create bool) (fd int, name string, err error) {
	if err := rewind(dirfd, dir); err != nil {
		return -1, "", err
	}
	names, err := remainingNames(dirfd, dir)
	if err != nil {
		return -1, "", err
	}
	prefix := usagePrefix + strconv.Itoa(ownUID) + "."
	slices.Sort(names) // all helpers take the first one
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		var st unix.Stat_t
		if statat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || int(st.Uid) != ownUID {
			continue
		}
		fd, err := openat(dirfd, name, unix.O_RDWR, 0)
		if err != nil {
			continue
		}
		if isUsageFile(fd, name) {
			return fd, name, nil
		}
		closeFile(fd, name)
	}
	if !create {
		return -1, "", os.ErrNotExist
	}
	name = prefix + rand.Text()[:12]
	fd, err = openat(dirfd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	return fd, name, err
}

// isUsageFile reports whether an open file can be overwritten as a record of ours.
func isUsageFile(fd int, name string) bool {
	var st unix.Stat_t
	if fstat(fd, name, &st) != nil || int(st.Uid) != ownUID || st.Nlink != 1 ||
		st.Mode&(unix.S_IFMT|0o777) != unix.S_IFREG|0o600 {
		return false
	}
	kind := make([]byte, len(usageMagic.kind))
	n, err := preadAll(fd, name, kind)
	return err == nil && (st.Size == 0 || string(kind[:n]) == usageMagic.kind)
}
