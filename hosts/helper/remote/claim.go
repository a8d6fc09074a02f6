//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// errClaimed says that somebody else made the claim first.
var errClaimed = errors.New("already claimed")

var claimCount atomic.Int64

// makeClaim creates the claim in the shard directory, or returns errClaimed. On a
// network file system the file is written under another name and linked: a
// server's reply can be lost, its repeat then says "exists", and only the token
// inside tells that it was us.
func makeClaim(dirfd int, network bool, c *attempts.Claim) error {
	name := c.Attempt.String() + "." + string(jobs.FileClaim)
	token := c.Append(make([]byte, 0, 200))
	if !network {
		fd, err := openat(dirfd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
		if err == unix.EEXIST {
			return errClaimed
		}
		if err != nil {
			return err
		}
		return finish(fd, token)
	}
	temp := fmt.Sprintf("%s.%d.%d.%d", name, os.Getpid(), uptime(), claimCount.Add(1))
	fd, err := openat(dirfd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer unix.Unlinkat(dirfd, temp, 0)
	if err := finish(fd, token); err != nil {
		return err
	}
	err = unix.Linkat(dirfd, temp, dirfd, name, 0)
	if err == unix.EEXIST {
		buf := make([]byte, 512)
		if n, err := readInto(dirfd, name, buf); err == nil && string(buf[:n]) == string(token) {
			return nil
		}
		return errClaimed
	}
	return err
}

// finish writes b and closes fd; on NFS the close is where an error comes.
func finish(fd int, b []byte) error {
	_, err := unix.Write(fd, b)
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	return err
}

// bury turns our own claim into a tombstone: the attempt was claimed, but it has
// not been started and never will be. The longer line covers the shorter, so the
// file is never seen empty.
func bury(dirfd int, c attempts.Claim) error {
	c.Tombstone = true
	fd, err := openat(dirfd, c.Attempt.String()+"."+string(jobs.FileClaim), unix.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return finish(fd, c.Append(nil))
}
