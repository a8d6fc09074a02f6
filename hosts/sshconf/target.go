package sshconf

import (
	"net"
	"strconv"
	"time"
)

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

// Strictness says what to do with a host key that no file knows. A key that
// differs from a known one stops the connection in either case.
type Strictness uint8

// The two kinds.
const (
	Strict    Strictness = iota // refuse
	AcceptNew                   // remember it, go on
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
