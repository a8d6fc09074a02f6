package sshconf

import (
	"fmt"
	"strings"
)

// Each directive of ssh_config(5) is in one of three sets: honoured, without
// meaning here, or beyond us. What is beyond us and set for a host in use is
// named in a warning; so is what we do not know.

// honoured are read in resolve.go and evaluate.go.
var honoured = words(`hostname user port identityfile certificatefile identitiesonly identityagent proxyjump
	proxycommand userknownhostsfile globalknownhostsfile stricthostkeychecking hostkeyalgorithms hostkeyalias
	connecttimeout ciphers kexalgorithms macs addressfamily ignoreunknown tag refuseconnection include host match`)

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

// beyond says of each other directive which values harm nobody when they are
// not honoured, and what to tell the user.
var beyond = map[string]struct {
	display string
	harm    func(it *item) bool
	advice  string
}{
	"gssapiauthentication": {"GSSAPIAuthentication", func(it *item) bool {
		return on(it) && !it.system // Debian's /etc/ssh/ssh_config says yes for everybody
	}, "Kerberos tickets are not used; log in with a key"},
	"hostbasedauthentication":  {"HostbasedAuthentication", on, "log in with a key"},
	"pubkeyauthentication":     {"PubkeyAuthentication", func(it *item) bool { return strings.EqualFold(it.value(), "no") }, "keys are all that is used"},
	"pubkeyacceptedalgorithms": {"PubkeyAcceptedAlgorithms", always, "the usual algorithms are offered"},
	"pubkeyacceptedkeytypes":   {"PubkeyAcceptedKeyTypes", always, "the usual algorithms are offered"},
	"casignaturealgorithms":    {"CASignatureAlgorithms", always, "the usual algorithms are accepted"},
	"bindaddress":              {"BindAddress", always, "the system chooses the address"},
	"bindinterface":            {"BindInterface", always, "the system chooses the interface"},
	"canonicalizehostname": {"CanonicalizeHostname", func(it *item) bool {
		return !strings.EqualFold(it.value(), "no")
	}, "write the full name as address in the inventory"},
	"pkcs11provider":                   {"PKCS11Provider", notNone, "add the key to an ssh-agent"},
	"smartcarddevice":                  {"SmartcardDevice", notNone, "add the key to an ssh-agent"},
	"securitykeyprovider":              {"SecurityKeyProvider", func(it *item) bool { return !strings.EqualFold(it.value(), "internal") }, "add the key to an ssh-agent"},
	"knownhostscommand":                {"KnownHostsCommand", notNone, "put the host's key into known_hosts"},
	"revokedhostkeys":                  {"RevokedHostKeys", notNone, "mark the key @revoked in known_hosts"},
	"verifyhostkeydns":                 {"VerifyHostKeyDNS", on, "put the host's key into known_hosts"},
	"nohostauthenticationforlocalhost": {"NoHostAuthenticationForLocalhost", on, "host keys are always checked"},
	"setenv":                           {"SetEnv", always, "use --env or setup"},
}

func always(*item) bool     { return true }
func notNone(it *item) bool { return !strings.EqualFold(it.value(), "none") }
func on(it *item) bool {
	v := strings.ToLower(it.value())
	return v != "no" && v != "false"
}

func words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// complaints names every directive that is set for the host and not honoured.
func (s *settings) complaints() []string {
	var ignored []string
	if it := s.first["ignoreunknown"]; it != nil {
		ignored = strings.Split(strings.ToLower(strings.Join(it.args, ",")), ",")
	}
	var out []string
	for _, it := range s.noted {
		b, known := beyond[it.keyword]
		switch {
		case honoured[it.keyword] || meaningless[it.keyword]:
		case known:
			if b.harm(it) {
				out = append(out, fmt.Sprintf("%s %s in the ssh configuration is not honoured: %s (%s)", b.display, strings.Join(it.args, " "), b.advice, it.where()))
			}
		case !anyPattern(ignored, it.keyword):
			out = append(out, fmt.Sprintf("%q in the ssh configuration is unknown and left out (%s)", it.keyword, it.where()))
		}
	}
	return out
}
