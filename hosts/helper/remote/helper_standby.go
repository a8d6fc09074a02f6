//go:build linux

package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/hosts/mirror"
	"dcs-tui/jobs/rundir"
)

// standbyTimeout bounds the start of a standby dispatcher. It is less than the time for
// which the dispatcher waits for the hello, or for the answer of a mirror.
const standbyTimeout = 12 * time.Second

// serveStandby starts a standby dispatcher (hosts.Open.Standby). The hello reports whether
// that dispatcher watches the run. On a host that does not share the run directory, it receives a
// mirror of it.
func serveStandby(in *wire.Reader, out *outbox, o *hosts.Open, limits limits) error {
	err := checkVersion(o)
	sees := false
	if err == nil && (o.Mirror == nil || !o.Mirror.Exists) {
		if sees, err = seesNonce(o.RunDir, o.Nonce); err != nil {
			err = fmt.Errorf("check whether this host shares the run directory: %w", err)
		}
	}
	switch {
	case err != nil:
	case sees:
		err = startStandby(o.RunDir, o)
	case o.Mirror != nil:
		return serveMirror(in, out, o, limits)
	default:
		err = fmt.Errorf("this host does not share the run directory %s, and a mirror of it would lack the files "+
			"that jobs get and return (--send, --return)", o.RunDir)
	}
	hello := newHello()
	setError(hello, err)
	out.send(hello)
	return nil
}

// startStandby starts a standby that watches the run in dir.
func startStandby(dir string, o *hosts.Open) error {
	ctx, cancel := context.WithTimeout(context.Background(), standbyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "resume", "--standby", "--background", "--", dir)
	cmd.Args[0] = "dcs-tui"
	cmd.Env = os.Environ()
	for _, v := range o.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.FieldsFunc(string(said), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimSpace(lines[i]), "dcs-tui: ")
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("it does not watch after %s", standbyTimeout)
	}
	return errors.New(cmp.Or(strings.Join(lines, "; "), err.Error()))
}

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
