//go:build linux

package remote

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// errClaimed reports that somebody else made the claim first.
var errClaimed = errors.New("already claimed")

func statusName(id jobs.AttemptID) string { return id.String() + "." + string(jobs.FileStatus) }

// makeClaim creates the status file of an attempt in the shard directory, with the claim
// and the bytes that are reserved for the outcome, and returns it open. It returns
// errClaimed if somebody else has created it. After any other error nothing may be
// started: there may be a claim of ours or none.
//
// On a network file system the file is written as temp, fsynced and linked, so that it is
// there whole or not at all, and the server has said that there is room. On others temp
// is "": a local file system keeps room for what has been written.
func makeClaim(dirfd int, temp string, c *attempts.Claim) (int, error) {
	name, content := statusName(c.Attempt), c.Encode()
	if temp == "" {
		fd, err := openat(dirfd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
		if err != nil {
			return openOurs(dirfd, name, content, err)
		}
		if err = pwrite(fd, name, content, 0); err == nil {
			return fd, nil
		}
		closeFile(fd, name)
		// What is not whole is nobody's claim, and as long as we hold the attempt nobody
		// looks at it.
		if buryClaim(dirfd, *c) != nil {
			again(func() error { return unlinkat(dirfd, name, 0) })
		}
		return -1, err
	}
	if err := writeTemp(temp, content); err != nil {
		return -1, err
	}
	defer again(func() error { return remove(temp) })
	if err := linkat(temp, dirfd, name); err != nil {
		return openOurs(dirfd, name, content, err)
	}
	// Under its name, because an NFS client keeps the name of an open file that is removed.
	return openat(dirfd, name, unix.O_RDWR, 0)
}

// openOurs opens the status file that could not be created because of err, if its content
// is ours: a server's reply can be lost, its repeat then says "exists", and only the token
// inside reports that it was us.
func openOurs(dirfd int, name string, content []byte, err error) (int, error) {
	fd, oerr := openat(dirfd, name, unix.O_RDWR|unix.O_NONBLOCK, 0)
	if oerr != nil {
		return -1, err
	}
	there := make([]byte, len(content)+1)
	n, rerr := preadAll(fd, name, there)
	if rerr == nil && string(there[:n]) == string(content) {
		return fd, nil
	}
	closeFile(fd, name)
	if rerr == nil && errors.Is(err, unix.EEXIST) {
		err = errClaimed
	}
	return -1, err
}

// buryClaim turns our own claim into a tombstone: the attempt was claimed, but it has
// not been started and never will be. It is written over the claim, so the file is never
// seen empty.
func buryClaim(dirfd int, c attempts.Claim) error {
	c.Tombstone = true
	name := statusName(c.Attempt)
	return again(func() error {
		fd, err := openat(dirfd, name, unix.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return finish(fd, name, c.Encode())
	})
}

// ensureTombstone makes sure that an attempt of which the caller has made claim c, or has
// tried to, is never started. It reports whether that is certain: false when it was
// claimed by another, or when the file system does not let us know.
func ensureTombstone(dirfd int, temp string, c attempts.Claim) bool {
	tomb := c
	tomb.Tombstone = true
	name := statusName(c.Attempt)
	if fd, err := makeClaim(dirfd, temp, &tomb); err == nil {
		closeFile(fd, name)
		return true
	}
	buf := make([]byte, attempts.StatusBytes+1)
	n, err := readInto(dirfd, name, buf)
	if errors.Is(err, fs.ErrNotExist) {
		return true // nobody has begun, and whoever asks next will find it so
	}
	there := attempts.Decode(buf[:n], c.Run, c.Attempt)
	switch {
	case err != nil:
		return false
	case there.State == attempts.NeverStarts:
		return true
	case there.State == attempts.Claimed && there.Claim == c:
		return buryClaim(dirfd, c) == nil
	}
	return false
}
