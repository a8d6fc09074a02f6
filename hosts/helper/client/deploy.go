package client

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"dcs-tui/hosts"
)

// arrive follows the bootstrap until the helper's own stream begins, and sends
// the binary where it is asked for.
func (s *session) arrive() error {
	var why []string
	damaged := false
	s.at("looking for a place for the helper")
	for {
		word, rest, err := s.answers.next()
		if err != nil {
			return s.ended(err)
		}
		switch word {
		case "have", "ok":
			s.timer.Reset(s.c.opt.ConnectTimeout)
			s.at("starting the helper")
		case "need":
			if err := s.deploy(rest); err != nil {
				return err
			}
		case "skip":
			why = append(why, clean(rest))
		case "bad":
			damaged = true
			why = append(why, clean(rest)+" (the program we sent does not run there, or arrived damaged)")
		case "none":
			return s.noPlace(why, damaged)
		case "go":
			return nil
		default:
			return s.fail(hosts.Broken, "", fmt.Errorf("the bootstrap answered %q", clean(word)))
		}
	}
}

// noPlace explains why the helper can run nowhere.
func (s *session) noPlace(why []string, damaged bool) error {
	err := fmt.Errorf("there is no place for the helper: %s", strings.Join(why, "; "))
	if damaged {
		return s.fail(hosts.Broken, "", err)
	}
	return s.fail(hosts.Misconfigured, "give the host a work_dir that is yours, has room, and may run programs", err)
}

// deploy sends the binary; rest is what follows "need". The deadline is one of
// progress: it is put off with each piece that was taken.
func (s *session) deploy(rest string) error {
	method, where, _ := strings.Cut(rest, " ")
	s.at("sending the helper to " + clean(where))
	s.timer.Reset(s.c.opt.StallTimeout)
	read := s.binary.plain
	if method == "gzip" && s.host.Link != "local" {
		read = s.binary.gzipped
	} else {
		method = "plain"
	}
	src, n, err := read()
	if err != nil {
		return s.fail(hosts.Misconfigured, "", err)
	}
	dst := s.stream.Stdin()
	if _, err = fmt.Fprintf(dst, "%s %d\n", method, n); err == nil {
		err = s.pour(dst, src)
	}
	if err != nil {
		var own *errSource
		if errors.As(err, &own) {
			return s.fail(hosts.Misconfigured, "", err)
		}
		// The far end has gone, or is going: what it says last, and how it ended,
		// explain more than err does.
	}
	s.timer.Reset(s.c.opt.StallTimeout)
	s.at("checking the helper in " + clean(where))
	return nil
}

// errSource is an error of reading our own program, not of the link.
type errSource struct{ err error }

func (e *errSource) Error() string { return e.err.Error() }
func (e *errSource) Unwrap() error { return e.err }

// pour copies src to dst and puts the deadline off as it goes.
func (s *session) pour(dst io.Writer, src io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return err
			}
			s.timer.Reset(s.c.opt.StallTimeout)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &errSource{fmt.Errorf("read the program to send: %w", err)}
		}
	}
}
