//go:build linux

package remote

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/hosts/mirror"
	"dcs-tui/jobs/rundir"
)

// serveBallot answers a ballot (hosts.Open.Ballot) in the hello.
func serveBallot(out *outbox, o *hosts.Open) {
	hello := newHello()
	dir, err := ownRunDir(o)
	if err == nil {
		hello.Ballot, err = mirror.Answer(rundir.Within(dir), dir, *o.Ballot)
	}
	setError(hello, err)
	out.send(hello)
}

// ownRunDir returns the run's directory below work_dir, and creates it if necessary.
func ownRunDir(o *hosts.Open) (string, error) {
	if err := checkOpen(o); err != nil {
		return "", err
	}
	work, err := workPath(o.WorkDir)
	if err != nil {
		return "", err
	}
	if err = makeDirs(work); err == nil {
		err = checkOwner(work)
	}
	dir := filepath.Join(work, o.Run)
	if err == nil {
		err = makeOwnDir(dir)
	}
	if err != nil {
		return "", fmt.Errorf("work_dir cannot be used: %w", err)
	}
	guard(dir)
	return dir, nil
}

// serveMirror receives a mirror of the run directory (hosts.Open.Mirror).
func serveMirror(in *wire.Reader, out *outbox, o *hosts.Open, limits limits) error {
	hello := newHello()
	r, err := beginMirror(o)
	if err != nil {
		setError(hello, err)
		out.send(hello)
		return nil
	}
	hello.Mirrors, hello.Dir = true, r.Dir
	out.send(hello)
	return serveChannel(in, out, limits.silence, func(m hosts.Message) (done bool, err error) {
		store, ok := m.(*hosts.Store)
		if ok {
			out.send(r.Store(store))
		}
		return !ok, nil
	})
}

func beginMirror(o *hosts.Open) (*mirror.Receiver, error) {
	if o.Mirror.Boot == bootID() {
		return nil, errors.New("the run is dispatched on this machine, so a standby here would die with it")
	}
	if err := checkName("the generation of the mirror", o.Mirror.Generation); err != nil {
		return nil, err
	}
	work, err := ownRunDir(o)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(work, mirror.PrefixDir+o.Mirror.Generation)
	if !o.Mirror.Exists {
		names, _ := listNames(work)
		for _, name := range names {
			if old := filepath.Join(work, name); strings.HasPrefix(name, mirror.PrefixDir) &&
				mirror.IsStale(rundir.Within(work), old) {
				removeTree(old) // what stays only takes room
			}
		}
	}
	r := &mirror.Receiver{Disk: rundir.Within(work), Dir: dir, OpenMirror: *o.Mirror, Lock: mirror.Lock,
		Start: func() error { return startStandby(dir, o) }, Watched: func() bool { return isWatched(dir) }}
	return r, r.Begin()
}

// standbyPrefix begins the name of the file of a standby in a run directory; machine and pid
// follow.
const standbyPrefix = "standby."

// isWatched reports whether a standby of this machine watches the mirror in dir.
func isWatched(dir string) bool {
	names, _ := listNames(dir)
	for _, name := range names {
		pid, _ := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:])
		if strings.HasPrefix(name, standbyPrefix) && isOurs(pid, dir) {
			return true
		}
	}
	return false
}
