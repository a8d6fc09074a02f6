package link

import (
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dcs-tui/hosts"
)

// maxJumps bounds a chain of gateways.
const maxJumps = 16

// Resolve returns the connection that `ssh ADDRESS` would make, with what the
// inventory says of the host taken first, as ssh takes its -p, -l, -i and -J.
// address is one of h.Addresses. The warnings are lines for people, each with
// the host's name; an error is about the configuration, not about the network.
func (c *SSHConfig) Resolve(h *hosts.Host, address string) (*Target, []string, error) {
	r := &resolution{c: c, name: h.Name}
	first := given{alias: address, user: h.User, port: h.Port, identity: h.Identity}
	if h.Jump != nil {
		first.jump = &h.Jump
	}
	return r.run(first)
}

// ResolveAlias returns the connection that `ssh ALIAS` would make; alias may be
// written [user@]host[:port] or ssh://[user@]host[:port].
func (c *SSHConfig) ResolveAlias(alias string) (*Target, []string, error) {
	r := &resolution{c: c, name: alias}
	first, err := parseSpec(alias)
	if err != nil {
		return nil, nil, err
	}
	return r.run(first)
}

// given is what is known of a connection before ssh_config is asked.
type given struct {
	alias    string
	user     string
	port     int
	identity string
	jump     *[]string // nil: what ssh_config says
	passed   bool      // jump is for ssh to know; the caller has these gateways already
}

// resolution is one call of Resolve, gateways included.
type resolution struct {
	c        *SSHConfig
	name     string
	warnings []string
	depth    int
}

// run resolves the host itself. What ssh has against the whole configuration
// stands without a host's name, so that it can be told once.
func (r *resolution) run(first given) (*Target, []string, error) {
	t, err := r.target(first, nil)
	if says := (*refused)(nil); errors.As(err, &says) && says.whole {
		return nil, r.warnings, says
	}
	if err != nil {
		return nil, r.warnings, fmt.Errorf("%s: %w", r.name, err)
	}
	return t, r.warnings, nil
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
	if g.alias == "" || g.alias[0] == '-' || strings.ContainsFunc(g.alias, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return nil, fmt.Errorf("%q is not a name or address to connect to", g.alias)
	}
	about := ""
	if len(via) > 0 {
		about = "gateway " + g.alias + ": "
	}
	q := query{alias: g.alias, user: g.user, port: g.port}
	if g.jump != nil {
		var err error
		if q.jump, err = asOption(*g.jump); err != nil {
			return nil, fmt.Errorf("%s%w", about, err)
		}
	}
	s, err := r.c.ssh.settings(q)
	if err != nil && strings.Contains(err.Error(), "jumphost loop") { // ssh's words for a host that is its own gateway
		return nil, circle(via, g.alias)
	}
	if err != nil {
		return nil, fmt.Errorf("%s%w", about, err)
	}
	for _, line := range r.c.complaints(s) {
		r.warn(about + line)
	}
	if why := s.text("refuseconnection"); why != "" {
		return nil, fmt.Errorf("%sthe ssh configuration refuses the connection: %s", about, why)
	}
	t := &Target{Alias: g.alias, HostName: s.values["hostname"][0], User: g.user, Port: g.port}
	if err := r.fill(t, s, g, about); err != nil {
		return nil, fmt.Errorf("%s%w", about, err)
	}
	specs, err := r.jumpSpecs(t, s, g, about)
	if err != nil {
		return nil, fmt.Errorf("%s%w", about, err)
	}
	t.Jumps, err = r.jumps(specs, append(slices.Clone(via), g.hop()))
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
		if slices.Contains(via, g.hop()) {
			return nil, circle(via, g.hop())
		}
		if r.depth++; r.depth > maxJumps {
			return nil, fmt.Errorf("more than %d jump hosts one after the other", maxJumps)
		}
		if i > 0 {
			before := specs[:i]
			g.jump, g.passed = &before, true
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

// hop names a connection in a circle: one address with two ports is two machines,
// as behind a gateway that hands ports on.
func (g *given) hop() string {
	if g.port == 0 {
		return g.alias
	}
	return fmt.Sprintf("%s:%d", g.alias, g.port)
}

func circle(via []string, name string) error {
	return fmt.Errorf("the jump hosts go in a circle: %s; give %s `ProxyJump none` (or jump = \"none\" in the inventory)",
		strings.Join(append(slices.Clone(via), name), ", "), name)
}

// jumpSpecs returns the gateways as written, nil for none.
func (r *resolution) jumpSpecs(t *Target, s *settings, g given, about string) ([]string, error) {
	switch {
	case g.passed:
		return nil, nil
	case g.jump != nil:
		return *g.jump, nil
	}
	value := s.text("proxyjump")
	if command := s.text("proxycommand"); value == "" && command != "" && !isNone(command) {
		if value = asJump(strings.Fields(command)); value == "" {
			return nil, fmt.Errorf("ProxyCommand in the ssh configuration is not supported, and without it another host might be reached; %s", hosts.UseSSH)
		}
	}
	if value == "" || isNone(value) {
		return nil, nil
	}
	value, err := tokens{'h': t.HostName, 'p': strconv.Itoa(t.Port), 'r': t.User, 'n': t.Alias}.expand(value)
	if err != nil {
		return nil, fmt.Errorf("the jump host: %w", err)
	}
	return strings.Split(value, ","), nil
}

// fill sets everything but the gateways.
func (r *resolution) fill(t *Target, s *settings, g given, about string) error {
	env := r.c.env
	if t.User == "" {
		t.User = env.user
		if user := s.text("user"); user != "" {
			t.User = user
		}
	}
	if t.Port == 0 {
		t.Port = 22
		if port := s.text("port"); port != "" {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil || n == 0 {
				return fmt.Errorf("%q is not a port", port)
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
	t.IdentitiesOnly = isOn(s.text("identitiesonly"))
	if strict := s.text("stricthostkeychecking"); strings.EqualFold(strict, "accept-new") {
		t.Strict = AcceptNew
	} else if strict != "" && isOff(strict) {
		r.warn(about + "StrictHostKeyChecking no in the ssh configuration is not supported: host keys are always checked; use accept-new, or " + hosts.UseSSH)
	}
	switch strings.ToLower(s.text("addressfamily")) {
	case "inet":
		t.Network = "tcp4"
	case "inet6":
		t.Network = "tcp6"
	default:
		t.Network = "tcp"
	}
	if value := s.text("connecttimeout"); value != "" && !isNone(value) {
		seconds, err := strconv.ParseUint(value, 10, 24)
		if err != nil {
			return fmt.Errorf("ConnectTimeout %q is not a number of seconds", value)
		}
		t.ConnectTimeout = time.Duration(seconds) * time.Second
	}
	return s.setAlgorithms(t)
}

// asJump reads a ProxyCommand that does what ProxyJump does: `ssh -W %h:%p
// gate`, or the older `ssh gate nc %h %p`. It returns the gateway as ProxyJump
// would name it, "" when the command is anything else.
func asJump(command []string) string {
	if len(command) > 0 && command[0] == "exec" {
		command = command[1:]
	}
	if len(command) == 0 || path.Base(command[0]) != "ssh" {
		return ""
	}
	var host, user, port string
	forwards := false
	rest := command[1:]
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		option := ""
		if len(word) >= 2 && word[0] == '-' {
			option = word[:2]
		}
		switch option {
		case "-q", "-T", "-x", "-a", "-n":
			if len(word) > 2 {
				return ""
			}
		case "-W", "-l", "-p":
			value := word[2:]
			if value == "" {
				if len(rest) == 0 {
					return ""
				}
				value, rest = rest[0], rest[1:]
			}
			switch option {
			case "-W":
				if value != "%h:%p" && value != "[%h]:%p" {
					return ""
				}
				forwards = true
			case "-l":
				user = value
			case "-p":
				port = value
			}
		default:
			if word == "" || word[0] == '-' {
				return ""
			}
			if host != "" { // the command to run at the gateway
				return gatewaySpec(host, user, port, !forwards && netcat(append([]string{word}, rest...)))
			}
			host = word
		}
	}
	return gatewaySpec(host, user, port, forwards)
}

// netcat reports whether a command connects its standard streams with %h %p.
func netcat(words []string) bool {
	switch path.Base(words[0]) {
	case "nc", "ncat", "netcat":
	default:
		return false
	}
	n := len(words)
	return n >= 3 && words[n-2] == "%h" && words[n-1] == "%p"
}

func gatewaySpec(host, user, port string, sound bool) string {
	if !sound || host == "" || strings.ContainsAny(host, "|;&<>$`, ") {
		return ""
	}
	if user != "" && !strings.Contains(host, "@") {
		host = user + "@" + host
	}
	if port != "" {
		host += ":" + port
	}
	return host
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

// asOption writes gateways as the value of ssh's -J.
func asOption(specs []string) (string, error) {
	if len(specs) == 0 {
		return "none", nil
	}
	var out []string
	for _, spec := range specs {
		g, err := parseSpec(spec)
		if err != nil {
			return "", err
		}
		one := g.alias
		if strings.Contains(one, ":") {
			one = "[" + one + "]"
		}
		if g.user != "" {
			one = g.user + "@" + one
		}
		if g.port != 0 {
			one += ":" + strconv.Itoa(g.port)
		}
		out = append(out, one)
	}
	return strings.Join(out, ","), nil
}

// Target is everything that is needed to open one ssh connection, with every
// file, pattern, token and default resolved. It is read only once made.
type Target struct {
	Alias    string // the name by which ssh_config was asked, for messages
	HostName string // name or address to dial; never empty
	Port     int    // never 0
	User     string // never empty

	// IdentityFiles are private key files in the order to try, absolute. Files
	// that do not exist are still listed when they were asked for; Explicit says
	// whether they were (a missing explicit file is worth a warning, a missing
	// usual one is not).
	IdentityFiles    []string
	Explicit         bool     // IdentityFiles come from the inventory or ssh_config, not from the usual list
	CertificateFiles []string // on top of IDENTITY-cert.pub beside each identity
	IdentitiesOnly   bool     // of the agent's keys offer only those that IdentityFiles or CertificateFiles name
	IdentityAgent    string   // path of the agent's socket; "": no agent

	Jumps []*Target // gateways in the order to dial, outermost first; a gateway's own Jumps are already unrolled here and are nil in it

	// KnownHosts are the files to look in: the user's first, then the global
	// ones; they need not exist. AcceptNew adds to the first, which is /dev/null
	// when the user wants none.
	KnownHosts        []string
	HostKeyAlias      string   // look up this name instead of HostName; "": HostName and Port
	HostKeyAlgorithms []string // in order of preference; nil: choose from the known keys
	Strict            Strictness

	ConnectTimeout time.Duration // 0: the caller's own
	Network        string        // for net.Dialer: "tcp", "tcp4" or "tcp6" (AddressFamily)
	Ciphers        []string      // nil: the library's
	KexAlgorithms  []string      // nil: the library's
	MACs           []string      // nil: the library's
}

// Strictness describes what to do with a host key that no file knows. A key that
// differs from a known one stops the connection in either case.
type Strictness uint8

// The two kinds.
const (
	Strict    Strictness = iota // refuse
	AcceptNew                   // remember it, continue
)

// String gives the word of ssh_config.
func (s Strictness) String() string {
	if s == AcceptNew {
		return "accept-new"
	}
	return "yes"
}

// Address is HostName and Port as net.Dial wants them.
func (t *Target) Address() string { return net.JoinHostPort(t.HostName, strconv.Itoa(t.Port)) }
