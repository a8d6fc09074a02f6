package link

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Each directive of ssh_config(5) is in one of three sets: honored, meaningless here, or
// unsupported. An unsupported directive that applies to a host, other than by OpenSSH's
// default, is named in a warning. So is an unknown one.

// honoredDirectives are used in config_*.go, or by ssh itself.
var honoredDirectives = wordSet(`hostname user port identityfile certificatefile identitiesonly identityagent proxyjump
	proxycommand userknownhostsfile globalknownhostsfile stricthostkeychecking hostkeyalgorithms hostkeyalias
	connecttimeout ciphers kexalgorithms macs addressfamily ignoreunknown tag refuseconnection host
	canonicalizehostname`)

// meaninglessDirectives are those of a terminal, forwarding, multiplexing, and passwords, and those
// that the program does in its own way (keepalives, retries, the format of known_hosts).
// GSSAPIAuthentication is one of them because Debian switches it on for everybody; the
// error of a refused login names Kerberos.
var meaninglessDirectives = wordSet(`addkeystoagent batchmode canonicaldomains canonicalizefallbacklocal canonicalizemaxdots
	canonicalizepermittedcnames challengeresponseauthentication channeltimeout checkhostip clearallforwardings compression
	compressionlevel connectionattempts controlmaster controlpath controlpersist dynamicforward enableescapecommandline
	enablesshkeysign escapechar exitonforwardfailure fallbacktorsh fingerprinthash forkafterauthentication forwardagent
	forwardx11 forwardx11timeout forwardx11trusted gatewayports gssapiauthentication gssapiclientidentity gssapidelegatecredentials
	gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey gssapiserveridentity gssapitrustdns hashknownhosts
	hostbasedacceptedalgorithms hostbasedkeytypes ipqos kbdinteractiveauthentication kbdinteractivedevices localcommand
	localforward loglevel logverbose numberofpasswordprompts obscurekeystroketiming passwordauthentication permitlocalcommand
	permitremoteopen preferredauthentications protocol proxyusefdpass rekeylimit remotecommand remoteforward requesttty
	requiredrsasize rhostsrsaauthentication rsaauthentication dsaauthentication sendenv serveralivecountmax
	serveraliveinterval sessiontype skeyauthentication stdinnull streamlocalbindmask streamlocalbindunlink syslogfacility
	tcpkeepalive tunnel tunneldevice updatehostkeys useprivilegedport userknownhostsfile2 globalknownhostsfile2 usersh
	versionaddendum visualhostkey warnweakcrypto xauthlocation`)

// unsupportedDirectives lists, for each other directive, which of its values must not be ignored
// silently, and what to do instead.
var unsupportedDirectives = map[string]struct {
	name    string
	matters func(value string) bool
	instead string
}{
	"hostbasedauthentication":          {"HostbasedAuthentication", isOn, "log in with a key"},
	"pubkeyauthentication":             {"PubkeyAuthentication", isOff, "keys are all that is used"},
	"pubkeyacceptedalgorithms":         {"PubkeyAcceptedAlgorithms", isAny, "the usual algorithms are offered"},
	"pubkeyacceptedkeytypes":           {"PubkeyAcceptedKeyTypes", isAny, "the usual algorithms are offered"},
	"casignaturealgorithms":            {"CASignatureAlgorithms", isAny, "the usual algorithms are accepted"},
	"bindaddress":                      {"BindAddress", isAny, "the system chooses the address"},
	"bindinterface":                    {"BindInterface", isAny, "the system chooses the interface"},
	"pkcs11provider":                   {"PKCS11Provider", isNotNone, "add the key to an ssh-agent"},
	"smartcarddevice":                  {"SmartcardDevice", isNotNone, "add the key to an ssh-agent"},
	"securitykeyprovider":              {"SecurityKeyProvider", func(v string) bool { return v != "internal" }, "add the key to an ssh-agent"},
	"knownhostscommand":                {"KnownHostsCommand", isNotNone, "put the host's key into known_hosts"},
	"revokedhostkeys":                  {"RevokedHostKeys", isNotNone, "mark the key @revoked in known_hosts"},
	"verifyhostkeydns":                 {"VerifyHostKeyDNS", isOn, "put the host's key into known_hosts"},
	"nohostauthenticationforlocalhost": {"NoHostAuthenticationForLocalhost", isOn, "host keys are always checked"},
	"setenv":                           {"SetEnv", isAny, "use --env or setup"},
}

// isAny matches every value.
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

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// unsupported returns a line for each directive in s that is not honored.
func unsupported(s settings) (lines []string) {
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		values := s[keyword]
		d, known := unsupportedDirectives[keyword]
		switch {
		case honoredDirectives[keyword] || meaninglessDirectives[keyword]:
		case !known:
			lines = append(lines, fmt.Sprintf("%q in the ssh configuration is unknown and ignored", keyword))
		case d.matters(values[0]):
			lines = append(lines, fmt.Sprintf("%s %s in the ssh configuration is not supported: %s, or %s", d.name, strings.Join(values, " "), d.instead, useSSH))
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
		*l.to = slices.DeleteFunc(strings.Split(value, ","), func(name string) bool { return !slices.Contains(l.supported, name) })
		if len(*l.to) == 0 {
			return fmt.Errorf("none of %s %s is supported; supported are %s", l.directive, value, strings.Join(l.supported, ","))
		}
	}
	return nil
}
