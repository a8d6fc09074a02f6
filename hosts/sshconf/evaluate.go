package sshconf

import (
	"fmt"
	"strings"
)

// settings is what the configuration says for one host: the first value of
// each directive, every value of those that add up.
type settings struct {
	first     map[string]*item
	identity  []*item
	certs     []*item
	proxy     *item   // the first of ProxyJump and ProxyCommand
	noted     []*item // one of each directive seen, in order, for the warnings
	hostName  string  // after HostName, lower case
	undecided *item   // a Match that only OpenSSH can decide
	what      string  // and why
}

// query is one question to the configuration.
type query struct {
	alias string // what would be written after `ssh`
	user  string // "" unless it is already known
}

// evaluation is one reading of the configuration for one host.
type evaluation struct {
	env        *environment
	s          *settings
	q          query
	host       string // what Host lines are compared with
	final      bool
	wantsFinal bool
	bad        []string // warnings
}

// evaluate reads the configuration for one host, a second time when a
// `Match final` asks for that.
func (c *Config) evaluate(q query) (*settings, []string, error) {
	e := &evaluation{env: c.env, s: &settings{first: map[string]*item{}}, q: q, host: q.alias}
	for _, items := range c.files {
		e.items(items, true)
	}
	if err := e.settleHostName(); err != nil {
		return nil, nil, err
	}
	if e.wantsFinal {
		e.final, e.host = true, e.s.hostName // from now on HostName does not change
		for _, items := range c.files {
			e.items(items, true)
		}
	}
	return e.s, e.bad, nil
}

// settleHostName applies HostName (%h and %% are its tokens). OpenSSH lowers
// the case of names.
func (e *evaluation) settleHostName() error {
	name, err := e.hostNow()
	e.s.hostName = strings.ToLower(name)
	return err
}

func (e *evaluation) hostNow() (string, error) {
	if e.final {
		return e.s.hostName, nil
	}
	it := e.s.first["hostname"]
	if it == nil {
		return e.q.alias, nil
	}
	name, err := tokens{'h': e.q.alias}.expand(it.value())
	if err != nil {
		return e.q.alias, fmt.Errorf("%s: HostName: %w", it.where(), err)
	}
	return name, nil
}

// items walks one file. Inside a block that does not fit, an included file has
// no say at all, not even its own Host lines.
func (e *evaluation) items(items []item, enabled bool) {
	active := enabled
	for i := range items {
		it := &items[i]
		if it.problem != "" {
			if active {
				e.warn(it, "%s; the line is left out", it.problem)
			}
			if it.keyword == "host" || it.keyword == "match" {
				active = false
			}
			continue
		}
		switch it.keyword {
		case "host":
			active = enabled && anyPattern(it.args, e.host)
		case "match":
			active = enabled && e.match(it)
		case "include":
			for _, file := range it.included {
				e.items(file, active)
			}
		default:
			if active {
				e.set(it)
			}
		}
	}
}

func (e *evaluation) match(it *item) bool {
	c := criteria{original: e.q.alias, localUser: e.env.user, user: e.q.user, final: e.final}
	c.host, _ = e.hostNow() // a wrong HostName is reported once, at the end of the pass
	if c.user == "" {
		c.user = e.env.user
		if u := e.s.first["user"]; u != nil {
			c.user = u.value()
		}
	}
	if t := e.s.first["tag"]; t != nil {
		c.tag = t.value()
	}
	v, wantsFinal, what := c.judge(it.args)
	e.wantsFinal = e.wantsFinal || wantsFinal
	if v == undecided && e.s.undecided == nil {
		e.s.undecided, e.s.what = it, what
	}
	return v == yes
}

// set obtains a value: the first one wins.
func (e *evaluation) set(it *item) {
	s := e.s
	switch it.keyword {
	case "identityfile":
		s.identity = append(s.identity, it)
	case "certificatefile":
		s.certs = append(s.certs, it)
	case "proxyjump", "proxycommand":
		if s.proxy == nil {
			s.proxy = it
		}
	default:
		if s.first[it.keyword] == nil {
			s.first[it.keyword] = it
			s.noted = append(s.noted, it)
		}
	}
}

func (e *evaluation) warn(it *item, format string, args ...any) {
	e.bad = append(e.bad, fmt.Sprintf(format, args...)+" ("+it.where()+")")
}
