//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// claim is the content of a claim file: who may run the attempt, or that nobody
// ever will (a tombstone).
type claim struct {
	tombstone bool
	run       string
	attempt   jobs.AttemptID
	host      string
	by        holder
	boot      string
	at        jobs.Stamp
}

// append writes the claim as one line.
func (c *claim) append(b []byte) []byte {
	word := "claim"
	if c.tombstone {
		word = "tombstone"
	}
	b = append(b, "dcs-"...)
	b = append(append(append(b, word...), " 1 "...), c.run...)
	b = c.attempt.Append(append(b, ' '))
	b = append(append(b, ' '), c.host...)
	b = append(append(b, ' '), c.by.String()...)
	b = append(append(b, ' '), c.boot...)
	b = strconv.AppendInt(append(b, ' '), int64(c.at), 10)
	return append(b, '\n')
}

var errClaim = errors.New("not a whole claim")

func parseClaim(b []byte) (c claim, err error) {
	text, ok := strings.CutSuffix(string(b), "\n")
	w := strings.Split(text, " ")
	if !ok || len(w) != 8 || w[1] != "1" || w[0] != "dcs-claim" && w[0] != "dcs-tombstone" {
		return c, fmt.Errorf("%w: %.60q", errClaim, b)
	}
	c.tombstone = w[0] == "dcs-tombstone"
	c.run, c.host, c.boot = w[2], w[4], w[6]
	var err1, err2 error
	c.attempt, err1 = jobs.ParseAttemptID(w[3])
	c.by, ok = parseHolder(w[5])
	at, err2 := strconv.ParseInt(w[7], 10, 64)
	c.at = jobs.Stamp(at)
	if !ok || err1 != nil || err2 != nil {
		return c, fmt.Errorf("%w: %.60q", errClaim, b)
	}
	return c, nil
}

// errClaimed says that somebody else made the claim first.
var errClaimed = errors.New("already claimed")

var claimCount atomic.Int64

// makeClaim creates the claim in the shard directory, or returns errClaimed. On a
// network file system the file is written under another name and linked: a
// server's reply can be lost, its repeat then says "exists", and only the token
// inside tells that it was us.
func makeClaim(dirfd int, network bool, c *claim) error {
	name := c.attempt.String() + "." + string(jobs.FileClaim)
	token := c.append(make([]byte, 0, 200))
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
func bury(dirfd int, c claim) error {
	c.tombstone = true
	fd, err := openat(dirfd, c.attempt.String()+"."+string(jobs.FileClaim), unix.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return finish(fd, c.append(nil))
}
