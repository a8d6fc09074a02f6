package sshconf

import (
	"fmt"
	"strings"

	"dcs-tui/hosts"
)

// Each directive of ssh_config(5) is in one of three sets: honoured, without
// meaning here, or beyond us. What is beyond us and in effect for a host in use,
// other than by OpenSSH's default, is named in a warning; so is what we do not know.

// honoured are read in resolve.go, files.go and algorithms.go, or by ssh itself.
var honoured = words(`hostname user port identityfile certificatefile identitiesonly identityagent proxyjump
	proxycommand userknownhostsfile globalknownhostsfile stricthostkeychecking hostkeyalgorithms hostkeyalias
	connecttimeout ciphers kexalgorithms macs addressfamily ignoreunknown tag refuseconnection host
	canonicalizehostname`)

// meaningless to a program without terminal, forwarding, multiplexing or
// password prompts, or that has its own way (keepalives, retries, known_hosts format).
var meaningless = words(`addkeystoagent batchmode canonicaldomains canonicalizefallbacklocal canonicalizemaxdots
	canonicalizepermittedcnames challengeresponseauthentication channeltimeout checkhostip clearallforwardings compression
	compressionlevel connectionattempts controlmaster controlpath controlpersist dynamicforward enableescapecommandline
	enablesshkeysign escapechar exitonforwardfailure fallbacktorsh fingerprinthash forkafterauthentication forwardagent
	forwardx11 forwardx11timeout forwardx11trusted gatewayports gssapiclientidentity gssapidelegatecredentials
	gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey gssapiserveridentity gssapitrustdns hashknownhosts
	hostbasedacceptedalgorithms hostbasedkeytypes ipqos kbdinteractiveauthentication kbdinteractivedevices localcommand
	localforward loglevel logverbose numberofpasswordprompts obscurekeystroketiming passwordauthentication permitlocalcommand
	permitremoteopen preferredauthentications protocol proxyusefdpass rekeylimit remotecommand remoteforward requesttty
	requiredrsasize rhostsrsaauthentication rsaauthentication dsaauthentication sendenv serveralivecountmax
	serveraliveinterval sessiontype skeyauthentication stdinnull streamlocalbindmask streamlocalbindunlink syslogfacility
	tcpkeepalive tunnel tunneldevice updatehostkeys useprivilegedport userknownhostsfile2 globalknownhostsfile2 usersh
	versionaddendum visualhostkey warnweakcrypto xauthlocation`)

// beyond says, for each other directive, which of its values matter if they are not
// supported, and what to do instead.
var beyond = map[string]struct {
	display string
	harm    func(value string) bool
	instead string
}{
	"gssapiauthentication":             {"GSSAPIAuthentication", isOn, "Kerberos tickets are not used; log in with a key"},
	"hostbasedauthentication":          {"HostbasedAuthentication", isOn, "log in with a key"},
	"pubkeyauthentication":             {"PubkeyAuthentication", isOff, "keys are all that is used"},
	"pubkeyacceptedalgorithms":         {"PubkeyAcceptedAlgorithms", always, "the usual algorithms are offered"},
	"pubkeyacceptedkeytypes":           {"PubkeyAcceptedKeyTypes", always, "the usual algorithms are offered"},
	"casignaturealgorithms":            {"CASignatureAlgorithms", always, "the usual algorithms are accepted"},
	"bindaddress":                      {"BindAddress", always, "the system chooses the address"},
	"bindinterface":                    {"BindInterface", always, "the system chooses the interface"},
	"pkcs11provider":                   {"PKCS11Provider", notNone, "add the key to an ssh-agent"},
	"smartcarddevice":                  {"SmartcardDevice", notNone, "add the key to an ssh-agent"},
	"securitykeyprovider":              {"SecurityKeyProvider", func(v string) bool { return v != "internal" }, "add the key to an ssh-agent"},
	"knownhostscommand":                {"KnownHostsCommand", notNone, "put the host's key into known_hosts"},
	"revokedhostkeys":                  {"RevokedHostKeys", notNone, "mark the key @revoked in known_hosts"},
	"verifyhostkeydns":                 {"VerifyHostKeyDNS", isOn, "put the host's key into known_hosts"},
	"nohostauthenticationforlocalhost": {"NoHostAuthenticationForLocalhost", isOn, "host keys are always checked"},
	"setenv":                           {"SetEnv", always, "use --env or setup"},
}

func always(string) bool    { return true }
func notNone(v string) bool { return !isNone(v) }

func words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// complaints names every directive in effect for the host that is not honoured.
func (c *Config) complaints(s *settings) []string {
	var out []string
	for _, keyword := range s.order {
		value := s.text(keyword)
		if value == "" {
			continue
		}
		b, known := beyond[keyword]
		switch {
		case honoured[keyword] || meaningless[keyword]:
		case !known:
			out = append(out, fmt.Sprintf("%q in the ssh configuration is unknown here and left out", keyword))
		case !b.harm(value):
		case keyword == "gssapiauthentication" && c.ssh.forEverybody(keyword, value):
			// Debian's /etc/ssh/ssh_config says yes for everybody
		default:
			out = append(out, fmt.Sprintf("%s %s in the ssh configuration is not supported: %s, or %s", b.display, strings.Join(s.list(keyword), " "), b.instead, hosts.UseSSH))
		}
	}
	return out
}
