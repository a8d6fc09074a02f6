package hosts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"dcs-tui/jobs/rundir"
)

const (
	// CheckTimeout bounds the check of all hosts, to which the program may be copied over a slow
	// link. Each other step has a bound of its own.
	CheckTimeout = 15 * time.Minute

	heartbeatTimeout = 10 * time.Second // from the hello to the first heartbeat
	cleanUpTimeout   = 10 * time.Second // for a host to remove what the check has made
)

// CheckResult is the result of the check of one host.
type CheckResult struct {
	Host      *Host
	Hello     *Hello        // also with a CwdError, which only concerns jobs whose files are not sent
	Heartbeat *Heartbeat    // the first heartbeat
	Connect   time.Duration // until the helper answered
	Err       error
}

// Usable reports whether jobs can run on the host.
func (r *CheckResult) Usable() bool { return r.Err == nil }

// Check checks hosts concurrently, for jobs that run in cwd. dir and nonce are those of
// MakeCheckDir. It sends each result as soon as it has it, and closes the channel when the
// hosts have been cleaned up.
func Check(ctx context.Context, connector Connector, list []*Host, cwd, dir, nonce string) <-chan *CheckResult {
	found := make(chan *CheckResult, len(list))
	var checks sync.WaitGroup
	for _, h := range list {
		checks.Go(func() { checkHost(ctx, connector, h, Open{RunDir: dir, Nonce: nonce, Cwd: cwd}, found) })
	}
	go func() {
		checks.Wait()
		close(found)
	}()
	return found
}

// MakeCheckDir creates a directory by which hosts find out whether they share cwd. dir is ""
// if cwd is not writable.
func MakeCheckDir(cwd string) (dir, nonce string) {
	nonce = rand.Text()
	dir, err := os.MkdirTemp(cwd, ".dcs-check-")
	if err != nil {
		return "", nonce
	}
	if err := os.WriteFile(filepath.Join(dir, rundir.NonceFile), []byte(nonce+"\n"), 0o600); err != nil {
		os.RemoveAll(dir)
		return "", nonce
	}
	return dir, nonce
}

// checkHost connects to one host, waits for its first heartbeat, sends the result to found,
// and then cleans up on the host.
func checkHost(ctx context.Context, connector Connector, h *Host, open Open, found chan<- *CheckResult) {
	c := &CheckResult{Host: h}
	began := time.Now()
	// The uid must be unique among all checks and hosts, because the host removes
	// everything of this run at the end, also in a shared work_dir.
	uid := "check-" + rand.Text()
	open.Version, open.Run, open.RunName, open.Host, open.Epoch, open.Check = ProtocolVersion, uid, uid, h.Name, 1, true
	open.WorkDir, open.ShareDir, open.Nice = h.WorkDir, h.ShareDir, h.Nice
	open.Slots, open.Less = h.Slots.Fixed, h.Slots.Less
	open.Owner, open.OwnerIdle = h.Owner, h.OwnerIdle
	w, err := connector.Connect(ctx, h, &open)
	if err != nil {
		c.Err = err
		found <- c
		return
	}
	defer w.Close()
	c.Hello, c.Connect = w.Hello(), time.Since(began)
	c.Err = c.firstHeartbeat(ctx, w)
	usable := c.Err == nil
	found <- c // now owned by the receiver
	if !usable || w.Send(&Bye{End: true}) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanUpTimeout)
	defer cancel()
	for { // until the host has cleaned up
		select {
		case _, ok := <-w.Reports():
			if !ok {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (c *CheckResult) firstHeartbeat(ctx context.Context, w Worker) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	for {
		select {
		case m, ok := <-w.Reports():
			if !ok {
				return w.Err()
			}
			switch m := m.(type) {
			case *Heartbeat:
				c.Heartbeat = m
				return nil
			case *Trouble:
				if m.Fatal {
					return errors.New(m.Text)
				}
				c.Hello.Warnings = append(c.Hello.Warnings, m.Text)
			}
		case <-ctx.Done():
			return fmt.Errorf("%s: connected, but no heartbeat within %.0f s", c.Host.Name, heartbeatTimeout.Seconds())
		}
	}
}
