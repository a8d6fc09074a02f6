package client

import (
	"errors"
	"fmt"
	"io"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
)

// lastWait bounds how long we wait, once a stream has ended, to learn how its
// command ended and what it said last.
const lastWait = 2 * time.Second

// fail makes an error about the host, unless err already is one.
func (s *session) fail(class hosts.Class, advice string, err error) error {
	return classed(s.host.Name, class, advice, err)
}

func classed(host string, class hosts.Class, advice string, err error) error {
	var e *hosts.Error
	if errors.As(err, &e) {
		return err
	}
	return &hosts.Error{Host: host, Class: class, Err: err, Advice: advice}
}

// noBinary explains why no program can be sent to a host of this kind.
func (s *session) noBinary(err error) error {
	var no *errNoBinary
	if errors.As(err, &no) {
		return s.fail(hosts.Misconfigured, no.advice, err)
	}
	return s.fail(hosts.Misconfigured, "", err)
}

// ended explains why the bootstrap's output ended or made no sense.
func (s *session) ended(err error) error {
	if errors.Is(err, errNoise) {
		return s.fail(hosts.Broken, "its login shell should print nothing when it is not interactive",
			fmt.Errorf("the login shell %w, more than %d KiB%s", err, maxNoise>>10, s.answers.said()))
	}
	if errors.Is(err, errTerminal) {
		return s.fail(hosts.Misconfigured, "take -t out of the link, and RequestTTY out of the ssh configuration", err)
	}
	how := howEnded(s.host.Name, "the login shell", s.stream, s.words, err)
	if e := (*hosts.Error)(nil); errors.As(how, &e) && e.Class == hosts.Broken {
		e.Err = fmt.Errorf("%w%s", e.Err, s.answers.said())
		e.Advice = "a command such as `true` must work over this link"
	}
	return how
}

// howEnded turns the end of a stream into an error about the host: Broken when
// the command is known to have ended, Unreachable when the link is gone.
func howEnded(host, who string, stream hosts.Stream, words *lastWords, err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return classed(host, readClass(err), "", err)
	}
	limit := time.NewTimer(lastWait)
	defer limit.Stop()
	state := make(chan error, 1)
	go func() { state <- stream.Wait() }()
	select {
	case err = <-state:
	case <-limit.C:
		return classed(host, hosts.Broken, "", fmt.Errorf("%s closed its output and goes on%s", who, words.said()))
	}
	select { // what it said comes on a way of its own
	case <-words.done:
	case <-limit.C:
	}
	var exit *hosts.ExitError
	var known *hosts.Error
	switch {
	case errors.As(err, &known): // the link knows why
		return err
	case err == nil:
		return classed(host, hosts.Broken, "", fmt.Errorf("%s ended: %w%s", who, &hosts.ExitError{}, words.said()))
	case errors.As(err, &exit):
		return classed(host, hosts.Broken, "", fmt.Errorf("%s ended: %w%s", who, exit, words.said()))
	}
	return classed(host, hosts.Unreachable, "", fmt.Errorf("the link was cut: %w", err))
}

// readClass says what an error of reading is a sign of.
func readClass(err error) hosts.Class {
	for _, e := range []error{wire.ErrFormat, wire.ErrGap, wire.ErrWord, wire.ErrChecksum, wire.ErrTooLarge} {
		if errors.Is(err, e) {
			return hosts.Broken
		}
	}
	if errors.Is(err, wire.ErrVersion) {
		return hosts.Misconfigured
	}
	return hosts.Unreachable
}
