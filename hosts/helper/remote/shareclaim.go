//go:build linux

package remote

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts/share"
)

// Each run has one claim file on a host. Its text says what the run still wants; the
// helper writes it and holds a lock on the first byte. A supervisor that uses slots holds
// a lock on as many bytes behind an offset of its own, so the kernel keeps the count, and
// a job costs nothing while its supervisor goes on. docs/sharing.md describes the file.
const (
	claimPrefix  = "run-"
	claimMagic   = "DSH1"
	claimBytes   = 512     // the largest text
	claimSpan    = 1 << 20 // supervisor N locks bytes from N spans on
	claimsOfUser = 64      // files of a user that are looked at
	deadClaim    = time.Hour
)

// claimText is the text of a claim file.
type claimText struct {
	run, name    string
	want, weight int
}

func (c *claimText) append(b []byte) []byte {
	start := len(b)
	b = beginSeal(b, claimMagic)
	b = appendText(appendText(b, c.run), c.name[:min(len(c.name), 200)])
	for _, n := range []int{c.want, c.weight} {
		b = appendText(b, fmt.Sprint(n))
	}
	endSeal(b[start:])
	return b
}

func parseClaim(b []byte) (*claimText, error) {
	r, err := unseal(b, claimMagic)
	if err != nil {
		return nil, err
	}
	c := &claimText{run: r.text(), name: r.text()}
	for _, n := range []*int{&c.want, &c.weight} {
		if _, err := fmt.Sscan(r.text(), n); err != nil {
			r.bad = true
		}
	}
	if r.bad || len(r.b) > 0 || c.want < 0 || c.want > maxSlots || c.weight < 1 || c.weight > share.MaxWeight {
		return nil, fmt.Errorf("%w: wrong fields", errSeal)
	}
	return c, nil
}

// claimFiles returns the prefix of the names of a run's claim files.
func claimFiles(run, host string) string {
	return fmt.Sprintf("%s%.8x.", claimPrefix, sha256.Sum256([]byte(run+"/"+host)))
}

// seenClaim is a claim that was found: Claim.Run is the name of its file.
type seenClaim struct {
	share.Claim
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
	helper, held := n > 0, heldSlots(fd, name, slots+1)
	if !helper && held == 0 {
		// Nobody can take its lock meanwhile without noticing that the file is gone.
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
	c := &seenClaim{Claim: share.Claim{User: uid, Run: name, Weight: text.weight, Held: held}, claimText: *text, helper: helper}
	if helper {
		c.Want = text.want
	}
	return c, nil
}

// heldSlots counts the bytes that supervisors have locked, up to limit. The kernel names
// any one lock of a range, so what is before and behind it is asked about, too.
func heldSlots(fd int, name string, limit int) (n int) {
	type span struct{ from, to int64 }
	for todo := []span{{claimSpan, math.MaxInt64}}; len(todo) > 0 && n < limit; {
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

// usedSlots is a supervisor's part of the claim file.
type usedSlots struct {
	fd   int // 0: not open
	path string
	n    int // slots that it holds
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
	if err != nil || me < 0 || share.Fits(slots, plainClaims(claims), me, s.ctl.at(ctlLast).Load() != 0) {
		return true
	}
	s.letGo()
	return false
}

// publish locks n slots in the claim file of the run.
func (s *slot) publish(dirfd, n int) (err error) {
	u := &s.used
	for range lockTries {
		if u.fd == 0 {
			name, fd, err := openOwnFile(dirfd, s.cfg.ShareDir, claimFiles(s.cfg.Run, s.cfg.Host))
			if errors.Is(err, errMoved) {
				continue
			}
			if err != nil {
				return err
			}
			*u = usedSlots{fd: fd, path: s.cfg.ShareDir + "/" + name}
		}
		if err = lockRange(u.fd, u.path, s.span(), int64(n)); err != nil {
			return err
		}
		u.n = n
		if _, err = inPlace(u.fd, u.path); err == nil {
			return nil
		}
		closeFile(u.fd, u.path)
		*u = usedSlots{}
	}
	return err
}

func (s *slot) span() int64 { return int64(s.by.slot) * claimSpan }

// letGo gives all slots back.
func (s *slot) letGo() {
	if s.used.n > 0 {
		unlockRange(s.used.fd, s.used.path, s.span(), 0)
		s.used.n = 0
	}
}

// awaitSlots waits until it holds n slots. It returns false when it should take nothing
// any more, or at until.
func (s *slot) awaitSlots(n int, until time.Duration) bool {
	for !s.hold(n) {
		if s.superfluous() || uptime() > until {
			return false
		}
		// At random, so that two supervisors which hold each other off do not go on so.
		time.Sleep(holdPause/2 + time.Duration(rand.Int64N(int64(holdPause))))
	}
	return true
}

// holdPause is the mean time between two tries to hold slots.
const holdPause = 100 * time.Millisecond

func plainClaims(seen []seenClaim) []share.Claim {
	claims := make([]share.Claim, len(seen))
	for i := range seen {
		claims[i] = seen[i].Claim
	}
	return claims
}
