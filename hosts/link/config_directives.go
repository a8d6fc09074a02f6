package link

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// support is what the built-in client does with a directive of ssh_config(5).
type support int

const (
	// honored: the directive has the effect that it has with ssh.
	honored support = iota
	// unneeded: the directive has no effect on what is done here.
	unneeded
	// warned: the directive has an effect with ssh that it lacks here, so a value that matters is
	// named in a warning.
	warned
)

// directive is a row of the table of ssh_config(5)'s directives.
type directive struct {
	name    string // as ssh_config(5) writes it
	support support
	// For docs/reference/ssh.md. Of a warned directive: what happens or what to do instead.
	note    string
	matters func(value string) bool // of a warned directive; value may be in the spelling of `ssh -G`
}

// Notes that several directives share.
const (
	bySSH         = "ssh itself applies it"
	terminalOnly  = "for sessions at a terminal"
	forwardOnly   = "jobs outlive the connection, so nothing is forwarded"
	sharedOnly    = "there is one connection per host"
	passwordOnly  = "only keys are used; a refused login names the other methods"
	ownKeepalives = "the program has keepalives of its own"
	hostsOnly     = "for hostbased logins"
	obsolete      = "obsolete"
	usualOffered  = "the usual algorithms are offered"
	toAgent       = "add the key to an ssh-agent"
	toKnownHosts  = "put the host's key into known_hosts"
)

// directives lists every directive of ssh_config(5), with the deprecated ones. One that is missing
// here and set for a host is named in a warning.
var directives = []directive{
	{"AddressFamily", honored, "", nil},
	{"CanonicalDomains", honored, bySSH, nil},
	{"CanonicalizeFallbackLocal", honored, bySSH, nil},
	{"CanonicalizeHostname", honored, bySSH, nil},
	{"CanonicalizeMaxDots", honored, bySSH, nil},
	{"CanonicalizePermittedCNAMEs", honored, bySSH, nil},
	{"CertificateFile", honored, "", nil},
	{"Ciphers", honored, "without those that the Go library lacks", nil},
	{"ConnectTimeout", honored, "15 seconds if it is not set", nil},
	{"GlobalKnownHostsFile", honored, "", nil},
	{"HashKnownHosts", honored, "", nil},
	{"Host", honored, bySSH, nil},
	{"HostKeyAlgorithms", honored, "without those that the Go library lacks", nil},
	{"HostKeyAlias", honored, "", nil},
	{"HostName", honored, "", nil},
	{"IdentitiesOnly", honored, "", nil},
	{"IdentityAgent", honored, "", nil},
	{"IdentityFile", honored, "a key of the inventory comes first", nil},
	{"IgnoreUnknown", honored, bySSH, nil},
	{"Include", honored, bySSH, nil},
	{"KexAlgorithms", honored, "without those that the Go library lacks", nil},
	{"MACs", honored, "without those that the Go library lacks", nil},
	{"Match", honored, bySSH + ", again for each connection", nil},
	{"Port", honored, "", nil},
	{"ProxyCommand", honored, "", nil},
	{"ProxyJump", honored, "hosts behind a gateway share its connection", nil},
	{"RefuseConnection", honored, "", nil},
	{"RequiredRSASize", honored, "", nil},
	{"SendEnv", honored, "the server's AcceptEnv decides what jobs see", nil},
	{"SetEnv", honored, "the server's AcceptEnv decides what jobs see", nil},
	{"Tag", honored, bySSH, nil},
	{"User", honored, "", nil},
	{"UserKnownHostsFile", honored, "", nil},

	{"AddKeysToAgent", unneeded, "an opened key is kept in memory during the run", nil},
	{"BatchMode", unneeded, "only passphrases of keys are asked for", nil},
	{"ChallengeResponseAuthentication", unneeded, passwordOnly, nil},
	{"ChannelTimeout", unneeded, forwardOnly, nil},
	{"Cipher", unneeded, obsolete, nil},
	{"ClearAllForwardings", unneeded, forwardOnly, nil},
	{"Compression", unneeded, "the connection is not compressed", nil},
	{"CompressionLevel", unneeded, obsolete, nil},
	{"ConnectionAttempts", unneeded, "a host that does not answer is tried again during the whole run", nil},
	{"ControlMaster", unneeded, sharedOnly, nil},
	{"ControlPath", unneeded, sharedOnly, nil},
	{"ControlPersist", unneeded, sharedOnly, nil},
	{"DSAAuthentication", unneeded, obsolete, nil},
	{"DynamicForward", unneeded, forwardOnly, nil},
	{"EnableEscapeCommandline", unneeded, terminalOnly, nil},
	{"EnableSSHKeysign", unneeded, hostsOnly, nil},
	{"EscapeChar", unneeded, terminalOnly, nil},
	{"ExitOnForwardFailure", unneeded, forwardOnly, nil},
	{"FallBackToRsh", unneeded, obsolete, nil},
	{"FingerprintHash", unneeded, "fingerprints are shown as SHA256", nil},
	{"ForkAfterAuthentication", unneeded, terminalOnly, nil},
	{"ForwardAgent", unneeded, forwardOnly, nil},
	{"ForwardX11", unneeded, forwardOnly, nil},
	{"ForwardX11Timeout", unneeded, forwardOnly, nil},
	{"ForwardX11Trusted", unneeded, forwardOnly, nil},
	{"GatewayPorts", unneeded, forwardOnly, nil},
	{"GlobalKnownHostsFile2", unneeded, obsolete, nil},
	// Debian switches GSSAPIAuthentication on for everybody.
	{"GSSAPIAuthentication", unneeded, passwordOnly, nil},
	{"GSSAPIClientIdentity", unneeded, passwordOnly, nil},
	{"GSSAPIKexAlgorithms", unneeded, passwordOnly, nil},
	{"GSSAPIKeyExchange", unneeded, passwordOnly, nil},
	{"GSSAPIRenewalForcesRekey", unneeded, passwordOnly, nil},
	{"GSSAPIServerIdentity", unneeded, passwordOnly, nil},
	{"GSSAPITrustDns", unneeded, passwordOnly, nil},
	{"HostbasedAcceptedAlgorithms", unneeded, hostsOnly, nil},
	{"HostbasedKeyTypes", unneeded, hostsOnly, nil},
	{"IPQoS", unneeded, "the system's default is used", nil},
	{"KbdInteractiveAuthentication", unneeded, passwordOnly, nil},
	{"KbdInteractiveDevices", unneeded, passwordOnly, nil},
	{"LocalCommand", unneeded, "see PermitLocalCommand", nil},
	{"LocalForward", unneeded, forwardOnly, nil},
	{"LogLevel", unneeded, "messages are those of the program", nil},
	{"LogVerbose", unneeded, "messages are those of the program", nil},
	{"NumberOfPasswordPrompts", unneeded, passwordOnly, nil},
	{"ObscureKeystrokeTiming", unneeded, terminalOnly, nil},
	{"PasswordAuthentication", unneeded, passwordOnly, nil},
	{"PermitRemoteOpen", unneeded, forwardOnly, nil},
	{"Protocol", unneeded, obsolete, nil},
	{"ProxyUseFdpass", unneeded, "with a ProxyCommand it is an error", nil},
	{"RekeyLimit", unneeded, "the Go library's limits are used", nil},
	{"RemoteCommand", unneeded, terminalOnly, nil},
	{"RemoteForward", unneeded, forwardOnly, nil},
	{"RequestTTY", unneeded, terminalOnly, nil},
	{"RhostsRSAAuthentication", unneeded, obsolete, nil},
	{"RSAAuthentication", unneeded, obsolete, nil},
	{"ServerAliveCountMax", unneeded, ownKeepalives, nil},
	{"ServerAliveInterval", unneeded, ownKeepalives, nil},
	{"SessionType", unneeded, terminalOnly, nil},
	{"SkeyAuthentication", unneeded, obsolete, nil},
	{"StdinNull", unneeded, terminalOnly, nil},
	{"StreamLocalBindMask", unneeded, forwardOnly, nil},
	{"StreamLocalBindUnlink", unneeded, forwardOnly, nil},
	{"SyslogFacility", unneeded, "messages are those of the program", nil},
	{"TCPKeepAlive", unneeded, ownKeepalives, nil},
	{"Tunnel", unneeded, forwardOnly, nil},
	{"TunnelDevice", unneeded, forwardOnly, nil},
	{"UpdateHostKeys", unneeded, "a known_hosts file gets a line only for a new host", nil},
	{"UsePrivilegedPort", unneeded, obsolete, nil},
	{"UserKnownHostsFile2", unneeded, obsolete, nil},
	{"UseRsh", unneeded, obsolete, nil},
	{"VersionAddendum", unneeded, "the program names itself", nil},
	{"VisualHostKey", unneeded, terminalOnly, nil},
	{"WarnWeakCrypto", unneeded, "messages are those of the program", nil},
	{"XAuthLocation", unneeded, forwardOnly, nil},

	{"BindAddress", warned, "the system chooses the address", isAny},
	{"BindInterface", warned, "the system chooses the interface", isAny},
	{"CASignatureAlgorithms", warned, "the usual algorithms are accepted", isAny},
	{"CheckHostIP", warned, "host keys are looked up by name", isOn},
	{"GSSAPIDelegateCredentials", warned, "jobs get no ticket", isOn},
	{"HostbasedAuthentication", warned, "log in with a key", isOn},
	{"KnownHostsCommand", warned, toKnownHosts, isNotNone},
	{"NoHostAuthenticationForLocalhost", warned, "host keys are always checked", isOn},
	{"PermitLocalCommand", warned, "run the LocalCommand before", isOn},
	{"PKCS11Provider", warned, toAgent, isNotNone},
	{
		"PreferredAuthentications",
		warned,
		"keys are all that is used",
		func(v string) bool { return !strings.Contains(v, "publickey") },
	},
	{"PubkeyAcceptedAlgorithms", warned, usualOffered, isAny},
	{"PubkeyAcceptedKeyTypes", warned, usualOffered, isAny},
	{"PubkeyAuthentication", warned, "keys are all that is used", isOff},
	{"RevokedHostKeys", warned, "mark the key @revoked in known_hosts", isNotNone},
	{"SecurityKeyProvider", warned, toAgent, func(v string) bool { return v != "internal" }},
	{"SmartcardDevice", warned, toAgent, isNotNone},
	// Other values are honored.
	{"StrictHostKeyChecking", warned, "host keys are always checked: use accept-new", isOff},
	{"VerifyHostKeyDNS", warned, toKnownHosts, isOn},
}

// directivesByKeyword maps keywords in lower case, as `ssh -G` prints them, to their rows.
var directivesByKeyword = sync.OnceValue(func() map[string]directive {
	byKeyword := map[string]directive{}
	for _, d := range directives {
		byKeyword[strings.ToLower(d.name)] = d
	}
	return byKeyword
})

func isAny(string) bool       { return true }
func isOn(v string) bool      { return !isOff(v) }
func isNotNone(v string) bool { return !isNone(v) }

// isNone reports whether a value means none.
func isNone(value string) bool { return strings.EqualFold(value, "none") }

// isOff reports whether a value is no, in the file's spelling or in that of `ssh -G`.
func isOff(value string) bool {
	switch strings.ToLower(value) {
	case "", "no", "false", "off":
		return true
	}
	return false
}

// warnings returns a line for each directive in s that has an effect with ssh and none here. config is
// the configuration file.
func warnings(s settings, config string) (lines []string) {
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		values := s[keyword]
		d, known := directivesByKeyword()[keyword]
		switch {
		case !known:
			lines = append(lines, fmt.Sprintf("%q in the ssh configuration is unknown and ignored", keyword))
		case d.support == warned && d.matters(values[0]):
			value := strings.Join(values, " ")
			if isOff(value) { // ssh prints "false" for some
				value = "no"
			}
			lines = append(lines, fmt.Sprintf("%s %s in the ssh configuration is not supported: %s, or %s",
				d.name, value, d.note, useSSH(config)))
		}
	}
	return lines
}

// setAlgorithms sets the four lists of a target. `ssh -G` prints plain names, in the order
// of preference. Only those that the Go library supports are kept, and it is an error if
// none is left. Insecure algorithms are used only when named.
func (t *Target) setAlgorithms(s settings) error {
	safe, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	for _, l := range []struct {
		directive string
		to        *[]string
		supported []string
	}{
		{"HostKeyAlgorithms", &t.HostKeyAlgorithms, slices.Concat(safe.HostKeys, old.HostKeys)},
		{"Ciphers", &t.Ciphers, slices.Concat(safe.Ciphers, old.Ciphers)},
		{"KexAlgorithms", &t.KexAlgorithms, slices.Concat(safe.KeyExchanges, old.KeyExchanges)},
		{"MACs", &t.MACs, slices.Concat(safe.MACs, old.MACs)},
	} {
		value := s.first(strings.ToLower(l.directive))
		if value == "" {
			continue
		}
		*l.to = slices.DeleteFunc(strings.Split(value, ","), func(name string) bool {
			return !slices.Contains(l.supported, name)
		})
		if len(*l.to) == 0 {
			return fmt.Errorf("none of %s %s is supported; supported are %s",
				l.directive, value, strings.Join(l.supported, ","))
		}
	}
	return nil
}
