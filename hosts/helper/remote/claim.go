//go:build linux

package remote

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// errClaimed says that somebody else made the claim first.
var errClaimed = errors.New("already claimed")

func claimName(id jobs.AttemptID) string { return id.String() + "." + string(jobs.FileClaim) }

// makeClaim creates the claim in the shard directory, or returns errClaimed. After
// any other error nothing may be started: there may be a claim of ours or none.
// On a network file system it is written as the file temp and linked, so that it is
// there whole or not at all; on others temp is "".
func makeClaim(dirfd int, temp string, c *attempts.Claim) error {
	name := claimName(c.Attempt)
	token := c.Append(make([]byte, 0, 200))
	if temp == "" {
		fd, err := openat(dirfd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
		if err != nil {
			return claimedBy(dirfd, name, token, err)
		}
		// What is not whole is nobody's claim, and as long as we hold the attempt nobody
		// looks at it.
		if err = finish(fd, name, token); err != nil && bury(dirfd, *c) != nil {
			again(func() error { return unlinkat(dirfd, name, 0) })
		}
		return err
	}
	fd, err := createTemp(temp)
	if err != nil {
		return err
	}
	defer again(func() error { return remove(temp) })
	if err := finish(fd, temp, token); err != nil {
		return err
	}
	if err := linkat(temp, dirfd, name); err != nil {
		return claimedBy(dirfd, name, token, err)
	}
	return nil
}

// claimedBy says what an error of making the claim comes to: a server's reply can be
// lost, its repeat then says "exists", and only the token inside tells that it was us.
func claimedBy(dirfd int, name string, token []byte, err error) error {
	buf := make([]byte, maxClaim)
	n, rerr := readInto(dirfd, name, buf)
	switch {
	case rerr == nil && string(buf[:n]) == string(token):
		return nil
	case rerr == nil && errors.Is(err, unix.EEXIST):
		return errClaimed
	}
	return err
}

// bury turns our own claim into a tombstone: the attempt was claimed, but it has
// not been started and never will be. The longer line covers the shorter, so the
// file is never seen empty.
func bury(dirfd int, c attempts.Claim) error {
	c.Tombstone = true
	name := claimName(c.Attempt)
	return again(func() error {
		fd, err := openat(dirfd, name, unix.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return finish(fd, name, c.Append(nil))
	})
}

// entomb sees to it that an attempt of which the caller has made claim c, or has
// tried to, is never started. It says whether that is certain: false when it was
// claimed by another, or when the file system does not let us know.
func entomb(dirfd int, temp string, c attempts.Claim) bool {
	tomb := c
	tomb.Tombstone = true
	err := makeClaim(dirfd, temp, &tomb)
	if err == nil {
		return true
	}
	buf := make([]byte, maxClaim)
	n, err := readInto(dirfd, claimName(c.Attempt), buf)
	if errors.Is(err, fs.ErrNotExist) {
		return true // nobody has begun, and whoever asks next will find it so
	}
	there, perr := attempts.ParseClaim(buf[:n])
	switch {
	case err != nil || perr != nil:
		return false
	case there.Tombstone:
		return true
	case there.By == c.By && there.At == c.At:
		return bury(dirfd, c) == nil
	}
	return false
}
