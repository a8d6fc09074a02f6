//go:build linux

package remote

import (
	"errors"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// errClaimed says that somebody else made the claim first.
var errClaimed = errors.New("already claimed")

// makeClaim creates the claim in the shard directory, or returns errClaimed. On a
// network file system the file is written under another name and linked: a
// server's reply can be lost, its repeat then says "exists", and only the token
// inside tells that it was us.
func makeClaim(dirfd int, network bool, c *attempts.Claim) error {
	name := c.Attempt.String() + "." + string(jobs.FileClaim)
	token := c.Append(make([]byte, 0, 200))
	if !network {
		fd, err := openat(dirfd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
		if errors.Is(err, unix.EEXIST) {
			return errClaimed
		}
		if err != nil {
			return err
		}
		return finish(fd, name, token)
	}
	temp := tempName(name)
	fd, err := openat(dirfd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer unlinkat(dirfd, temp, 0)
	if err := finish(fd, temp, token); err != nil {
		return err
	}
	err = linkat(dirfd, temp, name)
	if errors.Is(err, unix.EEXIST) {
		buf := make([]byte, 512)
		if n, err := readInto(dirfd, name, buf); err == nil && string(buf[:n]) == string(token) {
			return nil
		}
		return errClaimed
	}
	return err
}

// bury turns our own claim into a tombstone: the attempt was claimed, but it has
// not been started and never will be. The longer line covers the shorter, so the
// file is never seen empty.
func bury(dirfd int, c attempts.Claim) error {
	c.Tombstone = true
	name := c.Attempt.String() + "." + string(jobs.FileClaim)
	fd, err := openat(dirfd, name, unix.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return finish(fd, name, c.Append(nil))
}
