package link

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts"
)

// Each directive of ssh_config(5) is in one of three sets: honored, without
// meaning here, or beyond us. What is beyond us and in effect for a host in use,
// other than by OpenSSH's default, is named in a warning; so is what we do not know.

// honored are read in config_*.go, or by ssh itself.
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

// complaints names every directive in effect for the host that is not honored.
func (c *SSHConfig) complaints(s *settings) []string {
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
			out = append(out, fmt.Sprintf("%q in the ssh configuration is unknown and ignored", keyword))
		case !b.harm(value):
		case keyword == "gssapiauthentication" && c.ssh.forEverybody(keyword, value):
			// Debian's /etc/ssh/ssh_config says yes for everybody
		default:
			out = append(out, fmt.Sprintf("%s %s in the ssh configuration is not supported: %s, or %s", b.display, strings.Join(s.list(keyword), " "), b.instead, hosts.UseSSH))
		}
	}
	return out
}

// setAlgorithms fills the four lists of a target. `ssh -G` prints plain names, in the
// order of preference. Only those that the Go library supports are kept, and it is an
// error if none is left. Insecure algorithms are used only when named.
func (s *settings) setAlgorithms(t *Target) error {
	safe, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	for _, l := range []struct {
		keyword   string
		to        *[]string
		safe, old []string
	}{
		{"HostKeyAlgorithms", &t.HostKeyAlgorithms, safe.HostKeys, old.HostKeys},
		{"Ciphers", &t.Ciphers, safe.Ciphers, old.Ciphers},
		{"KexAlgorithms", &t.KexAlgorithms, safe.KeyExchanges, old.KeyExchanges},
		{"MACs", &t.MACs, safe.MACs, old.MACs},
	} {
		value := s.text(strings.ToLower(l.keyword))
		if value == "" {
			continue
		}
		supported := slices.Concat(l.safe, l.old)
		*l.to = slices.DeleteFunc(strings.Split(value, ","), func(name string) bool { return !slices.Contains(supported, name) })
		if len(*l.to) == 0 {
			return fmt.Errorf("none of %s %s is supported; supported are %s", l.keyword, value, strings.Join(supported, ","))
		}
	}
	return nil
}
