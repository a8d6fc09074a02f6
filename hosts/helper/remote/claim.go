//go:build linux

package remote

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// errClaimed is returned when somebody else made the claim first.
var errClaimed = errors.New("already claimed")

func statusName(id jobs.AttemptID) string { return id.String() + "." + string(jobs.FileStatus) }

// makeClaim creates the status file of an attempt in the shard directory, with the claim
// and the bytes that are reserved for the outcome. It returns the open file, or errClaimed
// if somebody else has created it. After any other error the attempt must not be started,
// because it is not known whether our claim exists.
//
// On a network file system the content is written to the file temp, fsynced, and linked.
// The status file is then complete when it appears, and the server has reserved its space.
// On a local file system temp is "", because written blocks are reserved there.
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
		// An incomplete file is no claim, and nobody reads it while we hold the attempt.
		if buryClaim(dirfd, *c) != nil {
			retryUnlessMissing(func() error { return unlinkat(dirfd, name, 0) })
		}
		return -1, err
	}
	if err := writeTemp(temp, content); err != nil {
		return -1, err
	}
	defer retryUnlessMissing(func() error { return remove(temp) })
	if err := linkat(temp, dirfd, name); err != nil {
		return openOurs(dirfd, name, content, err)
	}
	// Open it by its name: an NFS client keeps the name of an open file that is removed.
	return openat(dirfd, name, unix.O_RDWR, 0)
}

// openOurs opens the status file whose creation failed with err, if its content is ours.
// When the reply of a file server is lost, the repeated call returns EEXIST, and only the
// token in the file shows that it is ours.
func openOurs(dirfd int, name string, content []byte, err error) (int, error) {
	fd, oerr := openat(dirfd, name, unix.O_RDWR, 0)
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

// buryClaim replaces our own claim by a tombstone: the attempt was not started and never
// will be. It overwrites the claim, so that nobody sees an empty file.
func buryClaim(dirfd int, c attempts.Claim) error {
	c.Tombstone = true
	name := statusName(c.Attempt)
	return retryUnlessMissing(func() error {
		fd, err := openat(dirfd, name, unix.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return writeAndClose(fd, name, c.Encode())
	})
}

// ensureTombstone makes sure that an attempt is never started for which the caller has made
// the claim c, or has tried to. It returns false if that is not certain, because another
// process has claimed the attempt or the file system failed.
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
		return true // nobody has started it, and the next prober will find that out
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
