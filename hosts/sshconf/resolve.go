package sshconf

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/hosts"
)

// maxJumps bounds a chain of gateways.
const maxJumps = 16

// Resolve returns the connection that `ssh ADDRESS` would make, with what the
// inventory says of the host taken first, as ssh takes its -p, -l, -i and -J.
// address is one of h.Addresses. The warnings are lines for people, each with
// the host's name; an error is about the configuration, not about the network.
func (c *Config) Resolve(h *hosts.Host, address string) (*Target, []string, error) {
	r := &resolution{c: c, name: h.Name}
	first := given{alias: address, user: h.User, port: h.Port, identity: h.Identity}
	if h.Jump != nil {
		first.jump = &h.Jump
	}
	t, err := r.target(first, nil)
	if err != nil {
		return nil, r.warnings, fmt.Errorf("%s: %w", h.Name, err)
	}
	return t, r.warnings, nil
}

// ResolveAlias returns the connection that `ssh ALIAS` would make; alias may be
// written [user@]host[:port] or ssh://[user@]host[:port].
func (c *Config) ResolveAlias(alias string) (*Target, []string, error) {
	r := &resolution{c: c, name: alias}
	first, err := parseSpec(alias)
	if err != nil {
		return nil, nil, err
	}
	t, err := r.target(first, nil)
	if err != nil {
		return nil, r.warnings, fmt.Errorf("%s: %w", alias, err)
	}
	return t, r.warnings, nil
}

// given is what is known of a connection before ssh_config is asked.
type given struct {
	alias    string
	user     string
	port     int
	identity string
	jump     *[]string // nil: what ssh_config says
}

// resolution is one call of Resolve, gateways included.
type resolution struct {
	c        *Config
	name     string
	warnings []string
	depth    int
}

func (r *resolution) warn(lines ...string) {
	for _, l := range lines {
		if l = r.name + ": " + l; !slices.Contains(r.warnings, l) {
			r.warnings = append(r.warnings, l)
		}
	}
}

// target resolves one connection. via are the names on the way to it, to find loops.
func (r *resolution) target(g given, via []string) (*Target, error) {
	if g.alias == "" {
		return nil, fmt.Errorf("no name or address to connect to")
	}
	s, bad, err := r.c.settingsOf(query{alias: g.alias, user: g.user}, g.port)
	if err != nil {
		return nil, err
	}
	about := ""
	if len(via) > 0 {
		about = "gateway " + g.alias + ": "
	}
	for _, line := range append(bad, s.complaints()...) {
		r.warn(about + line)
	}
	if it := s.first["refuseconnection"]; it != nil {
		return nil, fmt.Errorf("%sthe ssh configuration refuses the connection: %s (%s)", about, strings.Join(it.args, " "), it.where())
	}
	t := &Target{Alias: g.alias, HostName: s.hostName, User: g.user, Port: g.port}
	if err := r.fill(t, s, g, about); err != nil {
		return nil, fmt.Errorf("%s%w", about, err)
	}
	specs, err := r.jumpSpecs(t, s, g, about)
	if err != nil {
		return nil, fmt.Errorf("%s%w", about, err)
	}
	t.Jumps, err = r.jumps(specs, append(slices.Clone(via), g.alias))
	return t, err
}

// jumps resolves the gateways: the first by its own configuration, each other
// one through those before it, as ssh -J does. The result is in dialling order.
func (r *resolution) jumps(specs, via []string) ([]*Target, error) {
	var chain []*Target
	for i, spec := range specs {
		g, err := parseSpec(spec)
		if err != nil {
			return nil, err
		}
		if slices.Contains(via, g.alias) {
			return nil, fmt.Errorf("the jump hosts go in a circle: %s, %s; give %s `ProxyJump none` (or jump = \"none\" in the inventory)",
				strings.Join(via, ", "), g.alias, g.alias)
		}
		if r.depth++; r.depth > maxJumps {
			return nil, fmt.Errorf("more than %d jump hosts one after the other", maxJumps)
		}
		if i > 0 {
			g.jump = &[]string{}
		}
		t, err := r.target(g, via)
		if err != nil {
			return nil, err
		}
		chain = append(append(chain, t.Jumps...), t)
		t.Jumps = nil
	}
	return chain, nil
}

// jumpSpecs returns the gateways as written, nil for none.
func (r *resolution) jumpSpecs(t *Target, s *settings, g given, about string) ([]string, error) {
	if g.jump != nil {
		return *g.jump, nil
	}
	it := s.proxy
	if it == nil || strings.EqualFold(it.value(), "none") {
		return nil, nil
	}
	value := it.value()
	if it.keyword == "proxycommand" {
		if value = asJump(strings.Fields(strings.Join(it.args, " "))); value == "" {
			r.warn(about + "ProxyCommand in the ssh configuration is not honoured, the host is dialled directly: use ProxyJump, or jump in the inventory (" + it.where() + ")")
			return nil, nil
		}
	}
	value, err := tokens{'h': t.HostName, 'p': strconv.Itoa(t.Port), 'r': t.User, 'n': t.Alias}.expand(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", it.where(), err)
	}
	return strings.Split(value, ","), nil
}

// parseSpec reads [user@]host[:port], an IPv6 address in brackets when a port follows.
func parseSpec(spec string) (given, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(spec), "ssh://"), "/")
	var g given
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		g.user, rest = rest[:at], rest[at+1:]
		if g.user == "" {
			return g, fmt.Errorf("%q is not [user@]host[:port]", spec)
		}
	}
	g.alias = rest
	if strings.Count(rest, ":") == 1 || strings.HasPrefix(rest, "[") {
		if host, port, err := net.SplitHostPort(rest); err == nil {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil || n == 0 {
				return g, fmt.Errorf("%q: %q is not a port", spec, port)
			}
			g.alias, g.port = host, int(n)
		} else {
			g.alias = strings.Trim(rest, "[]")
		}
	}
	if g.alias == "" || g.alias[0] == '-' || strings.ContainsAny(g.alias, " \t/") {
		return g, fmt.Errorf("%q is not [user@]host[:port]", spec)
	}
	return g, nil
}

// fill sets everything but the gateways.
func (r *resolution) fill(t *Target, s *settings, g given, about string) error {
	env := r.c.env
	if t.User == "" {
		t.User = env.user
		if it := s.first["user"]; it != nil {
			t.User = it.value()
		}
	}
	if t.Port == 0 {
		t.Port = 22
		if it := s.first["port"]; it != nil {
			n, err := strconv.ParseUint(it.value(), 10, 16)
			if err != nil || n == 0 {
				return fmt.Errorf("%q is not a port (%s)", it.value(), it.where())
			}
			t.Port = int(n)
		}
	}
	t.HostKeyAlias = s.text("hostkeyalias")
	f := files{env: env, tokens: env.tokens(t)}
	f.identities(t, s, g)
	f.agent(t, s)
	f.knownHosts(t, s)
	if f.err != nil {
		return f.err
	}
	t.IdentitiesOnly = s.first["identitiesonly"] != nil && on(s.first["identitiesonly"])
	if it := s.first["stricthostkeychecking"]; it != nil {
		switch strings.ToLower(it.value()) {
		case "accept-new":
			t.Strict = AcceptNew
		case "no", "off", "false":
			r.warn(about + "StrictHostKeyChecking " + it.value() + " in the ssh configuration is not honoured, host keys are always checked: use accept-new (" + it.where() + ")")
		}
	}
	switch strings.ToLower(s.text("addressfamily")) {
	case "inet":
		t.Network = "tcp4"
	case "inet6":
		t.Network = "tcp6"
	default:
		t.Network = "tcp"
	}
	if it := s.first["connecttimeout"]; it != nil && notNone(it) {
		d, ok := duration(it.value())
		if !ok {
			return fmt.Errorf("ConnectTimeout %q is not a time (%s)", it.value(), it.where())
		}
		t.ConnectTimeout = d
	}
	return s.setAlgorithms(t)
}

func (s *settings) text(keyword string) string {
	if it := s.first[keyword]; it != nil {
		return it.value()
	}
	return ""
}

// duration reads seconds, or OpenSSH's 1h30m (sshd_config(5), TIME FORMATS).
func duration(s string) (time.Duration, bool) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	var total time.Duration
	for len(s) > 0 {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		n, err := strconv.ParseUint(s[:end], 10, 24)
		if err != nil {
			return 0, false
		}
		unit := time.Second
		if s = s[end:]; s != "" {
			var ok bool
			if unit, ok = units[s[0]|0x20]; !ok {
				return 0, false
			}
			s = s[1:]
		}
		total += time.Duration(n) * unit
		if total > 365*24*time.Hour {
			return 0, false
		}
	}
	return total, total > 0
}
