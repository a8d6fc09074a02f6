package locallink

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"dcs-tui/hosts"
)

// Opener opens links to this machine.
type Opener struct{}

// Open returns a link at once.
func (Opener) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	if err := ctx.Err(); err != nil {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: err}
	}
	return New(h.Name, nil), nil
}

// link runs commands as children of this process.
type link struct {
	host   string
	prefix []string // argv that /bin/sh, -c and the command are added to
	env    []string // as of os/exec; nil: our own

	mu      sync.Mutex
	closed  bool
	streams map[*stream]struct{}
}

// New returns a link for the host of that name which runs prefix..., /bin/sh,
// -c, COMMAND as a child of this process, with the environment env; nil is this
// process's own.
func New(host string, env []string, prefix ...string) hosts.Link {
	return &link{host: host, prefix: prefix, env: env, streams: map[*stream]struct{}{}}
}

// Start runs command with /bin/sh.
func (l *link) Start(ctx context.Context, command string) (hosts.Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: err}
	}
	argv := append(append([]string(nil), l.prefix...), "/bin/sh", "-c", command)
	// Held while the child is made, so that Close misses none.
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: errors.New("the link is closed")}
	}
	s, err := start(argv, l.env, l.forget)
	if err != nil {
		return nil, l.startError(argv[0], err)
	}
	l.streams[s] = struct{}{}
	return s, nil
}

// startError classes the reasons for which a child cannot be made.
func (l *link) startError(name string, err error) error {
	e := &hosts.Error{Host: l.host, Class: hosts.Misconfigured, Err: err}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		e.Advice = "is " + name + " installed here and in PATH?"
	case errors.Is(err, os.ErrPermission):
		e.Advice = "may you run " + name + "?"
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		e.Class, e.Advice = hosts.Unreachable, "this machine has no room for another process: ulimit -u, memory"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Class, e.Advice = hosts.Unreachable, "too many open files: raise ulimit -n"
	}
	return e
}

// KeepAlive has nothing to ask: the far end is this machine.
func (l *link) KeepAlive(context.Context) error { return nil }

// Close ends every command that was started.
func (l *link) Close() error {
	l.mu.Lock()
	l.closed = true
	var list []*stream
	for s := range l.streams {
		list = append(list, s)
	}
	l.mu.Unlock()
	for _, s := range list {
		s.kill()
	}
	for _, s := range list {
		s.Close()
	}
	return nil
}

func (l *link) forget(s *stream) {
	l.mu.Lock()
	delete(l.streams, s)
	l.mu.Unlock()
}
