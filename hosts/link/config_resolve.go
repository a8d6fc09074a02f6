package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dcs-tui/hosts"
)

// maxJumps bounds a chain of gateways.
const maxJumps = 16

// Target is everything that is needed to open one ssh connection, with every file,
// pattern, token and default resolved. It is not changed once it is made.
type Target struct {
	Alias    string   // name for which the configuration was queried, for messages
	Config   string   // absolute path of the configuration, if it is not the usual one; for advice
	Command  []string // argv with which OpenSSH makes the same connection; for advice
	HostName string   // name or address to dial; never empty
	Port     int      // never 0
	User     string   // never empty

	// IdentityFiles are private key files in the order to try, absolute. They need not
	// exist. A missing file is worth a message only if Explicit.
	IdentityFiles []string
	// IdentityFiles come from the inventory or ssh_config, not from the usual list.
	Explicit         bool
	CertificateFiles []string // in addition to IDENTITY-cert.pub beside each identity
	// Of the agent's keys offer only those that IdentityFiles or CertificateFiles name.
	IdentitiesOnly bool
	IdentityAgent  string // path of the agent's socket; "": no agent

	// Jumps are the gateways in the order to dial. Their own gateways precede them, and
	// their Jumps are nil.
	Jumps []*Target
	// ProxyCommand is the line for the user's shell whose standard input and output are the
	// connection, with its tokens expanded; "": dial. A target that has one has no Jumps.
	ProxyCommand string
	proxyPattern string // ProxyCommand before its tokens are expanded; limits the dials in progress

	// KnownHosts are the user's files, then the global ones; they need not exist. New keys
	// are added to the first, which is /dev/null when the user wants none.
	KnownHosts        []string
	HostKeyAlias      string   // look up this name instead of HostName; "": HostName and Port
	HostKeyAlgorithms []string // in order of preference; nil: choose from the known keys
	AcceptNew         bool     // remember a host key that no file knows

	// Env has the variables, as NAME=value, that SendEnv and SetEnv select for the server.
	Env []string

	HashKnownHosts  bool          // write only a hash of a name into known_hosts
	RequiredRSASize int           // smallest number of bits of an RSA key; 0: any
	ConnectTimeout  time.Duration // 0: the caller's default
	Network         string        // for net.Dialer: "tcp", "tcp4" or "tcp6" (AddressFamily)
	Ciphers         []string      // nil: the library's
	KexAlgorithms   []string      // nil: the library's
	MACs            []string      // nil: the library's
}

// Address returns HostName and Port as net.Dial wants them.
func (t *Target) Address() string { return net.JoinHostPort(t.HostName, strconv.Itoa(t.Port)) }

// Resolve returns the connection that `ssh ADDRESS` would make. The settings
// of the inventory override it, as ssh's options -p, -l, -i, and -J do. address is one of
// h.Addresses. Each warning is a line. Neither the warnings nor the error name the host. The error
// concerns the configuration and not the network; IsTransient tells whether a repetition may help.
func (c *SSHConfig) Resolve(ctx context.Context, h *hosts.Host, address string) (*Target, []string, error) {
	q := request{alias: address, user: h.User, port: h.Port, identity: h.Identity, jump: h.Jump}
	if c.path == "" && h.SSHConfig != "" {
		path, err := checkReadable(h.SSHConfig)
		if err != nil {
			return nil, nil, fmt.Errorf("ssh configuration: %w", err)
		}
		q.config = path
	}
	return c.resolve(ctx, q)
}

// IsTransient reports whether the error of Resolve says only that ssh did not answer.
func IsTransient(err error) bool {
	_, transient := errors.AsType[*transientError](err)
	return transient
}

func (c *SSHConfig) resolve(ctx context.Context, q request) (*Target, []string, error) {
	q.config = cmp.Or(c.path, q.config)
	r := &resolution{ctx: ctx, config: c}
	t, err := r.target(q, "")
	return t, r.warnings, err
}

// request is what is known of a connection before the configuration is queried.
type request struct {
	alias    string
	user     string   // "": from the configuration
	port     int      // 0: from the configuration
	identity string   // key file of the inventory; "": none
	jump     []string // gateways; nil: from the configuration
	resolved bool     // the caller has already resolved the gateways in jump
	config   string   // absolute path of the configuration file; "": the usual files
}

// resolution is one call of Resolve, gateways included.
type resolution struct {
	ctx      context.Context // of that call
	config   *SSHConfig
	warnings []string
	numJumps int
}

// target resolves one connection. about begins its warnings and errors: "gateway NAME: ",
// or "" for the host itself.
func (r *resolution) target(q request, about string) (*Target, error) {
	if q.alias == "" || q.alias[0] == '-' || strings.ContainsFunc(q.alias, func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c)
	}) {
		return nil, fmt.Errorf("%q is not a name or address to connect to", q.alias)
	}
	s, err := r.config.settingsOf(r.ctx, q)
	if err != nil {
		if _, isTransient := errors.AsType[*transientError](err); !isTransient {
			direct := q
			direct.jump = []string{}
			if _, failed := r.config.settingsOf(r.ctx, direct); failed == nil { // its own gateway
				err = fmt.Errorf("%w: %s", err, noJumpAdvice)
			}
		}
		return nil, fmt.Errorf("%s%w", about, err)
	}
	for _, line := range warnings(s, q.config) {
		r.warnings = appendNew(r.warnings, about+line)
	}
	t := &Target{Alias: q.alias, User: q.user, Port: q.port, Config: q.config}
	options, _ := q.options() // they were valid for ssh
	if q.identity != "" {
		options = append(options, "-i", q.identity)
	}
	t.Command = append(append([]string{"ssh"}, options...), q.alias)
	if err := r.config.fillTarget(t, s, q); err != nil {
		return nil, fmt.Errorf("%s%w", about, err)
	}
	specs, err := setWay(t, s, q)
	if err != nil {
		return nil, fmt.Errorf("%s%w", about, err)
	}
	t.Jumps, err = r.jumps(specs, q.config)
	return t, err
}

// jumps resolves the gateways: the first by its own configuration, each other one through
// those before it, as ssh -J does. It returns them in the order to dial. config is the configuration
// file.
func (r *resolution) jumps(specs []string, config string) ([]*Target, error) {
	var chain []*Target
	for i, spec := range specs {
		q, err := parseJump(spec)
		if err != nil {
			return nil, err
		}
		q.config = config
		r.numJumps++
		if r.numJumps > maxJumps {
			return nil, errJumpLoop(q.alias)
		}
		if i > 0 {
			q.jump, q.resolved = specs[:i], true
		}
		t, err := r.target(q, "gateway "+q.alias+": ")
		if err != nil {
			return nil, err
		}
		chain = append(append(chain, t.Jumps...), t)
		t.Jumps = nil
	}
	return chain, nil
}

func errJumpLoop(name string) error {
	return fmt.Errorf("more than %d gateways, or a loop of gateways, on the way through %s: %s", maxJumps, name,
		noJumpAdvice)
}

const noJumpAdvice = "give it `ProxyJump none` (or jump = \"none\" in the inventory)"

// setWay sets the ProxyCommand of t, or returns its gateways as written. Of ProxyJump and
// ProxyCommand `ssh -G` prints only the one that applies.
func setWay(t *Target, s settings, q request) (jumps []string, err error) {
	switch {
	case q.resolved:
		return nil, nil
	case q.jump != nil:
		return q.jump, nil
	}
	value := s.first("proxyjump")
	if command := s.first("proxycommand"); value == "" && command != "" && !isNone(command) {
		value = jumpOfProxyCommand(strings.Fields(command))
		if value == "" {
			return nil, setProxyCommand(t, s, command)
		}
	}
	if value == "" || isNone(value) {
		return nil, nil
	}
	value, err = t.proxyTokens().expand(value)
	if err != nil {
		return nil, fmt.Errorf("the jump host: %w", err)
	}
	return strings.Split(value, ","), nil
}

// fillTarget sets all fields of t but the gateways.
func (c *SSHConfig) fillTarget(t *Target, s settings, q request) error {
	if why := s.first("refuseconnection"); why != "" {
		return fmt.Errorf("the ssh configuration refuses the connection: %s", why)
	}
	t.HostName = s["hostname"][0]
	t.User = cmp.Or(t.User, s.first("user"), c.env.user)
	if t.Port == 0 {
		var err error
		if t.Port, err = hosts.ParsePort(cmp.Or(s.first("port"), "22")); err != nil {
			return err
		}
	}
	t.HostKeyAlias = s.first("hostkeyalias")
	f := fileSettings{env: c.env, tokens: c.env.tokens(t)}
	f.identities(t, s, q.identity)
	f.agent(t, s)
	f.knownHosts(t, s)
	if f.err != nil {
		return f.err
	}
	t.IdentitiesOnly = !isOff(s.first("identitiesonly"))
	t.AcceptNew = strings.EqualFold(s.first("stricthostkeychecking"), "accept-new")
	t.Network = cmp.Or(
		map[string]string{"inet": "tcp4", "inet6": "tcp6"}[strings.ToLower(s.first("addressfamily"))], "tcp",
	)
	if value := s.first("connecttimeout"); value != "" && !isNone(value) {
		seconds, err := strconv.ParseUint(value, 10, 24)
		if err != nil {
			return fmt.Errorf("ConnectTimeout %q is not a number of seconds", value)
		}
		t.ConnectTimeout = time.Duration(seconds) * time.Second
	}
	if value := s.first("requiredrsasize"); value != "" {
		var err error
		if t.RequiredRSASize, err = strconv.Atoi(value); err != nil {
			return fmt.Errorf("RequiredRSASize %q is not a number of bits", value)
		}
	}
	t.HashKnownHosts = !isOff(s.first("hashknownhosts"))
	t.Env = selectEnv(c.env.environ(), s["sendenv"], s["setenv"])
	return t.setAlgorithms(s)
}

// selectEnv returns the variables of environ that match one of the patterns of SendEnv, and then
// those of SetEnv, which replace them. As for ssh, * and ? in a pattern match any text and any
// character.
func selectEnv(environ, sendEnv, setEnv []string) (selected []string) {
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		matches := func(pattern string) bool { return matchPattern(pattern, name) }
		if name != "" && slices.ContainsFunc(sendEnv, matches) {
			selected = append(selected, variable)
		}
	}
	return append(selected, setEnv...)
}

// matchPattern reports whether s matches a pattern of ssh_config(5).
func matchPattern(pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] == '*' {
		return matchPattern(pattern[1:], s) || s != "" && matchPattern(pattern, s[1:])
	}
	return s != "" && (pattern[0] == '?' || pattern[0] == s[0]) && matchPattern(pattern[1:], s[1:])
}

// parseJump parses [user@]host[:port]. An IPv6 address must be in brackets if a port follows.
func parseJump(spec string) (request, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(spec), "ssh://"), "/")
	var q request
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		q.user, rest = rest[:at], rest[at+1:]
		if q.user == "" {
			return q, fmt.Errorf("%q is not [user@]host[:port]", spec)
		}
	}
	q.alias = rest
	if strings.Count(rest, ":") == 1 || strings.HasPrefix(rest, "[") {
		if host, port, err := net.SplitHostPort(rest); err == nil {
			if q.port, err = hosts.ParsePort(port); err != nil {
				return q, fmt.Errorf("%q: %w", spec, err)
			}
			q.alias = host
		} else {
			q.alias = strings.Trim(rest, "[]")
		}
	}
	if q.alias == "" || q.alias[0] == '-' || strings.ContainsAny(q.alias, " \t/") {
		return q, fmt.Errorf("%q is not [user@]host[:port]", spec)
	}
	return q, nil
}

// jumpOption returns gateways as the value of ssh's -J.
func jumpOption(specs []string) (string, error) {
	if len(specs) == 0 {
		return "none", nil
	}
	var out []string
	for _, spec := range specs {
		q, err := parseJump(spec)
		if err != nil {
			return "", err
		}
		one := strings.TrimSuffix(net.JoinHostPort(q.alias, strconv.Itoa(q.port)), ":0")
		if q.user != "" {
			one = q.user + "@" + one
		}
		out = append(out, one)
	}
	return strings.Join(out, ","), nil
}
