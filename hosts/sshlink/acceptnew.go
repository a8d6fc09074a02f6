package sshlink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

// remember adds an unknown key to the user's first known_hosts file, unless
// somebody has written something else there meanwhile.
func (c *hostKeyCheck) remember(key ssh.PublicKey) error {
	if len(c.t.KnownHosts) == 0 {
		return c.fail(errors.New("there is no known_hosts file to remember its host key in"), "set UserKnownHostsFile")
	}
	file := c.t.KnownHosts[0]
	cannot := func(err error) error {
		return &hosts.Error{Host: c.host, Class: hosts.Misconfigured,
			Err: fmt.Errorf("its host key cannot be remembered: %w", err), Advice: "make " + file + " writable"}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return cannot(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return cannot(err)
	}
	defer f.Close()
	// One writer at a time, here and in other processes of ours. Closing unlocks.
	c.o.writing.Lock()
	defer c.o.writing.Unlock()
	lockFile(f)
	if c.files, err = readKnown(c.t.KnownHosts); err != nil {
		return cannot(err)
	}
	if err := c.compare(key); err == nil || !isUnknown(err) {
		return err
	}
	line := knownhosts.Line([]string{c.name()}, plainKey(key)) + "\n"
	if !endsLine(f) {
		line = "\n" + line
	}
	if _, err := f.WriteString(line); err != nil {
		return cannot(err)
	}
	if err := f.Close(); err != nil {
		return cannot(err)
	}
	c.o.warn(c.host, fmt.Sprintf("new host key %s written to %s", fingerprint(key), file))
	return nil
}

// lockFile waits a little for other programs. Without the lock, which not every
// file system has, the line is still appended in one piece.
func lockFile(f *os.File) {
	for range 100 {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK && err != unix.EINTR {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// endsLine says whether the file is empty or ends with a newline.
func endsLine(f *os.File) bool {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return true
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return true
	}
	return last[0] == '\n'
}
