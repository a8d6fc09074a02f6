package client

import (
	"errors"
	"fmt"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
)

// maxEarly is how many reports may come before the hello.
const maxEarly = 100

// hello sends Open, waits for Hello and checks it.
func (s *session) hello() (*worker, error) {
	s.at("waiting for the helper's hello")
	w := newWorker(s)
	if err := w.out.Write(s.open); err != nil {
		return nil, s.fail(hosts.Misconfigured, "", err)
	}
	if err := w.box.flush(s.stream.Stdin()); err != nil {
		if _, err2 := w.in.Read(); err2 != nil {
			err = err2
		}
		return nil, s.helperEnded(err)
	}
	for w.first == nil {
		m, err := w.in.Read()
		if err != nil {
			return nil, s.helperEnded(err)
		}
		switch m := m.(type) {
		case *hosts.Hello:
			w.first = m
		case *hosts.Trouble:
			if m.Fatal {
				return nil, s.fail(hosts.Misconfigured, "", errors.New(clean(m.Text)))
			}
			w.early = append(w.early, m)
		default:
			w.early = append(w.early, m)
		}
		if len(w.early) > maxEarly {
			return nil, s.fail(hosts.Broken, "", errors.New("the helper reports without having said hello"))
		}
	}
	if err := s.check(w.first); err != nil {
		return nil, err
	}
	return w, nil
}

func (s *session) helperEnded(err error) error {
	if errors.Is(err, wire.ErrVersion) {
		return s.fail(hosts.Misconfigured, s.rebuild(), err)
	}
	return howEnded(s.host.Name, "the helper", s.stream, s.words, err)
}

// rebuild advises what to do about a program of another build.
func (s *session) rebuild() string {
	return "build " + s.binary.name + " again from the sources of this dcs-tui"
}

// check looks for the reasons for which a helper that answers is of no use.
func (s *session) check(h *hosts.Hello) error {
	switch {
	case h.Version != hosts.ProtocolVersion:
		return s.fail(hosts.Misconfigured, s.rebuild(),
			fmt.Errorf("the helper speaks version %d, we speak %d", h.Version, hosts.ProtocolVersion))
	case h.FencedBy > 0:
		return &hosts.FencedError{Host: s.host.Name, By: h.FencedBy}
	case h.Error != "" && h.Passing:
		return s.fail(hosts.Broken, "", errors.New(clean(h.Error)))
	case h.Error != "":
		return s.fail(hosts.Misconfigured, "", errors.New(clean(h.Error)))
	case h.CwdError != "":
		return s.fail(hosts.Misconfigured, "name a directory that every host has with --cwd",
			fmt.Errorf("jobs cannot run in %s there: %s", s.open.Cwd, clean(h.CwdError)))
	}
	return nil
}
