package socket

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// defaultBase holds the directories of sockets. XDG_RUNTIME_DIR is used when that
	// cannot be: it is full, or somebody else created our directory there.
	defaultBase  = "/tmp"
	dirPrefix    = "dcs-"
	socketSuffix = ".sock"
	maxPath      = 107 // what fits into sockaddr_un with its final zero
	// A younger socket may be bound and not listening yet, so sweep leaves it alone.
	staleAge = time.Minute
)

// dirOf returns the directory of a user's sockets.
func dirOf(base string, uid int) string { return filepath.Join(base, fmt.Sprint(dirPrefix, uid)) }

// checkDir refuses a directory that another user could have put a socket into.
func checkDir(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory; it should be the directory of your sockets: find out who created it, and remove it", dir)
	case !ok || int(owner.Uid) != uid:
		return fmt.Errorf("%s belongs to user %d and not to you, so it is not used for sockets", dir, owner.Uid)
	case info.Mode().Perm() != 0o700:
		return fmt.Errorf("%s is open to others (mode %#o): look at its content, then type: chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// listen creates a socket in base, or in the first default base where it can.
func listen(base string) (*net.UnixListener, error) {
	if base != "" {
		return listenIn(base)
	}
	l, err := listenIn(defaultBase)
	if dir := os.Getenv("XDG_RUNTIME_DIR"); err != nil && filepath.IsAbs(dir) {
		if l, err := listenIn(dir); err == nil {
			return l, nil
		}
	}
	return l, err
}

// listenIn creates a socket with a random name in our directory, and creates or checks that
// directory.
func listenIn(base string) (*net.UnixListener, error) {
	dir := dirOf(base, os.Geteuid())
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := checkDir(dir, os.Geteuid()); err != nil {
		return nil, err
	}
	sweep(dir)
	path := filepath.Join(dir, strings.ToLower(rand.Text()[:12])+socketSuffix)
	if len(path) > maxPath {
		return nil, fmt.Errorf("%s is too long for the path of a socket", path)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Until here the directory alone keeps others out.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// sweep removes the sockets of dispatchers that were killed, as far as it can.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Type() != fs.ModeSocket || !strings.HasSuffix(e.Name(), socketSuffix) ||
			time.Since(info.ModTime()) < staleAge {
			continue
		}
		path := filepath.Join(dir, e.Name())
		// A socket in use with a full backlog answers EAGAIN.
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
}

// checkPeer refuses a process at the other end that belongs neither to this user nor to
// root.
func checkPeer(conn *net.UnixConn, user int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return fmt.Errorf("the user at the other end of the socket is unknown: %w", failed)
	case int(peer.Uid) != user && peer.Uid != 0:
		return fmt.Errorf("user %d is at the other end of the socket, who is neither user %d nor root", peer.Uid, user)
	}
	return nil
}
