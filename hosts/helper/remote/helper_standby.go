//go:build linux

package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
)

// standbyTimeout bounds the start of a standby dispatcher. It is less than the time for
// which the dispatcher waits for the hello.
const standbyTimeout = 15 * time.Second

// serveStandby starts a standby dispatcher (hosts.Open.Standby). The hello reports whether
// that dispatcher watches the run.
func serveStandby(stdout io.Writer, o *hosts.Open) error {
	hello := newHello()
	if err := startStandby(o); err != nil {
		hello.Error, hello.Passing = err.Error(), isTransient(err)
	}
	out := newOutbox(wire.NewWriter(stdout))
	out.send(hello)
	out.flush()
	return nil
}

func startStandby(o *hosts.Open) error {
	if err := checkVersion(o); err != nil {
		return err
	}
	sees, err := seesNonce(o.RunDir, o.Nonce)
	if err != nil {
		return fmt.Errorf("check whether this host shares the run directory: %w", err)
	}
	if !sees {
		return fmt.Errorf("a standby dispatcher needs the run directory, and this host does not share %s", o.RunDir)
	}
	ctx, cancel := context.WithTimeout(context.Background(), standbyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "resume", "--standby", "--background", "--", o.RunDir)
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
