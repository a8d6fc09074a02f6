package sshlink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/sshconf"
)

// Options are what an Opener needs to know.
type Options struct {
	// Config is the user's ssh configuration; required.
	Config *sshconf.Config
	// AcceptNew remembers the key of a host that no known_hosts file knows. A key
	// that differs from a known one stops the connection all the same.
	AcceptNew bool
	// Prompt asks a person for a secret and returns it; it is overwritten after
	// use. It is called by one goroutine at a time, once a key. nil: nobody can be asked.
	Prompt func(what string) (secret []byte, err error)
	// Warn is told, once each, what a person should know of a host although it
	// can be used. It may be called by several goroutines. nil: not told.
	Warn func(host, text string)
}

// connectTimeout is how long reaching a host may take when its configuration
// does not say.
const connectTimeout = 15 * time.Second

// Opener opens links over ssh. It holds what hosts have in common: keys and
// their passphrases, known host keys, connections to gateways, and how many
// dials are in the making where.
type Opener struct {
	opts     Options
	ring     *keyring
	known    knownFiles
	limits   *limits
	gateways *gateways
	writing  sync.Mutex // of a known_hosts file

	mu     sync.Mutex
	warned map[[2]string]bool
}

// New returns an Opener. It does nothing until it is asked to open.
func New(opts Options) *Opener {
	o := &Opener{opts: opts, ring: newKeyring(opts.Prompt), limits: newLimits(), warned: map[[2]string]bool{}}
	o.gateways = newGateways(o)
	return o
}

func (o *Opener) warn(host, text string) {
	o.mu.Lock()
	known := o.warned[[2]string{host, text}]
	o.warned[[2]string{host, text}] = true
	o.mu.Unlock()
	if !known && o.opts.Warn != nil {
		o.opts.Warn(host, text)
	}
}

// Open connects to h, trying its addresses in turn while they cannot be
// reached. Names are resolved anew each time.
func (o *Opener) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	if o.opts.Config == nil {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Misconfigured, Err: errors.New("no ssh configuration was read")}
	}
	var failed []error
	for _, address := range h.Addresses {
		t, warnings, err := o.opts.Config.Resolve(h, address)
		for _, w := range warnings {
			o.warn(h.Name, strings.TrimPrefix(w, h.Name+": "))
		}
		if err != nil {
			if inner := errors.Unwrap(err); inner != nil && err.Error() == h.Name+": "+inner.Error() {
				err = inner // the class names the host already
			}
			return nil, &hosts.Error{Host: h.Name, Class: hosts.Misconfigured, Err: err}
		}
		l, err := o.dialTarget(ctx, h.Name, t)
		if err == nil {
			return l, nil
		}
		failed = append(failed, err)
		if hosts.ClassOf(err) != hosts.Unreachable || ctx.Err() != nil {
			break
		}
	}
	switch len(failed) {
	case 0:
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Misconfigured,
			Err: errors.New("it has no address"), Advice: "give it one in the inventory"}
	case 1:
		return nil, failed[0]
	}
	return nil, allFailed(h.Name, failed)
}

// allFailed makes one error of those of several addresses; the last one's class
// counts, for it is the one that ended the search.
func allFailed(host string, failed []error) error {
	last := failed[len(failed)-1]
	e := &hosts.Error{Host: host, Class: hosts.ClassOf(last)}
	var text []string
	for _, err := range failed {
		var one *hosts.Error
		if errors.As(err, &one) {
			text = append(text, one.Err.Error())
			e.Advice = one.Advice
		}
	}
	e.Err = &severalErrors{strings.Join(text, "; "), failed}
	return e
}

// severalErrors words a list on one line and keeps the causes.
type severalErrors struct {
	text string
	list []error
}

func (e *severalErrors) Error() string   { return e.text }
func (e *severalErrors) Unwrap() []error { return e.list }

// dialTarget opens a link to one target, for the host of that inventory name.
func (o *Opener) dialTarget(ctx context.Context, host string, t *sshconf.Target) (hosts.Link, error) {
	c, err := o.connect(ctx, host, t, t.Jumps)
	if err != nil {
		return nil, err
	}
	return newLink(host, c, timeoutOf(t)), nil
}

func timeoutOf(t *sshconf.Target) time.Duration {
	if t.ConnectTimeout > 0 {
		return t.ConnectTimeout
	}
	return connectTimeout
}

// via words the way to a target, "" when it is direct.
func via(jumps []*sshconf.Target) string {
	if len(jumps) == 0 {
		return ""
	}
	return fmt.Sprintf(" through %s", jumps[len(jumps)-1].Alias)
}
