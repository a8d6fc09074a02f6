package control

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
)

// Base is where the directories of sockets lie; where that cannot be used, because
// it is full or somebody else was there first, XDG_RUNTIME_DIR.
const Base = "/tmp"

// bases are where to try.
func bases() []string {
	if own := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(own) {
		return []string{Base, own}
	}
	return []string{Base}
}

const (
	dirPrefix    = "dcs-"
	socketSuffix = ".sock"
	// maxPath is what fits into sockaddr_un, with its closing zero.
	maxPath = 107
	// A socket younger than this is not looked at: it may be bound and not listening yet.
	staleAge = time.Minute
)

// dirOf is the directory of a user's sockets.
func dirOf(base string, uid int) string { return filepath.Join(base, fmt.Sprint(dirPrefix, uid)) }

// makeDir makes our directory of sockets, or checks the one that is there: somebody
// else may have put it there first.
func makeDir(base string) (string, error) {
	dir := dirOf(base, os.Geteuid())
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, checkDir(dir, os.Geteuid())
}

// checkDir refuses a directory that another user could have put a socket into.
func checkDir(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no directory; it should be the directory of your control sockets: find out who made it, and remove it", dir)
	case !ok || int(owner.Uid) != uid:
		return fmt.Errorf("%s is not yours (its owner is user %d); nothing is put there", dir, owner.Uid)
	case info.Mode().Perm() != 0o700:
		return fmt.Errorf("%s is open to others (mode %#o): chmod 700 %s, after a look at what lies in it", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// listen makes a socket in the first place where it can.
func listen(bases ...string) (l *net.UnixListener, first error) {
	for _, base := range bases {
		l, err := listenIn(base)
		if err == nil {
			return l, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// listenIn makes a socket with a name of its own.
func listenIn(base string) (*net.UnixListener, error) {
	dir, err := makeDir(base)
	if err != nil {
		return nil, err
	}
	sweep(dir)
	path := filepath.Join(dir, strings.ToLower(rand.Text()[:12])+socketSuffix)
	if len(path) > maxPath {
		return nil, fmt.Errorf("%s is too long for a socket", path)
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

// sweep removes sockets that nobody listens at any more, of dispatchers that were
// killed. What cannot be removed stays.
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
		// With a full backlog it is in use: the answer is EAGAIN then.
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
}
