//go:build linux

package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
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
