package sshconf

import (
	"strings"
	"testing"

	"dcs-tui/hosts"
)

// A directive that we cannot honour for a host in use is named with the host;
// one that means nothing here is not, nor is any for other hosts.
func TestWarnings(t *testing.T) {
	for text, want := range map[string]string{
		"GSSAPIAuthentication yes":          "GSSAPIAuthentication yes in the ssh configuration is not supported",
		"StrictHostKeyChecking no":          "StrictHostKeyChecking no in the ssh configuration is not supported",
		"StrictHostKeyChecking off":         "StrictHostKeyChecking no",
		"BindAddress 10.0.0.1":              "BindAddress 10.0.0.1",
		"PKCS11Provider /usr/lib/x.so":      "PKCS11Provider",
		"RevokedHostKeys /etc/revoked":      "RevokedHostKeys",
		"VerifyHostKeyDNS ask":              "VerifyHostKeyDNS ask",
		"CASignatureAlgorithms ssh-ed25519": "CASignatureAlgorithms ssh-ed25519",
		"SetEnv A=1":                        "SetEnv A=1",
		"PubkeyAuthentication no":           "PubkeyAuthentication ",

		"ControlMaster auto":                "",
		"ControlPath ~/.ssh/cm-%C":          "",
		"ForwardAgent yes":                  "",
		"ForwardX11 yes":                    "",
		"LocalForward 8080 localhost:80":    "",
		"ServerAliveInterval 30":            "",
		"Compression yes":                   "",
		"SendEnv LANG LC_*":                 "",
		"HashKnownHosts yes":                "",
		"GSSAPIAuthentication no":           "",
		"PKCS11Provider none":               "",
		"PubkeyAuthentication yes":          "",
		"ProxyCommand ssh -W %h:%p gate":    "",
		"ProxyCommand ssh -q gate nc %h %p": "",
		"ProxyCommand none":                 "",
		"StrictHostKeyChecking ask":         "",
		"StrictHostKeyChecking yes":         "",
	} {
		c := config(t, "Host melon4\n"+text+"\n"+text+"\n")
		_, warnings, err := c.Resolve(&hosts.Host{Name: "m"}, "melon4")
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if want == "" && len(warnings) > 0 || want != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0], "m: "+want) || !strings.Contains(warnings[0], hosts.UseSSH)) {
			t.Errorf("%q: warnings %q, want %q", text, warnings, want)
		}
		if _, warnings, err = c.Resolve(&hosts.Host{Name: "o"}, "other"); err != nil || len(warnings) > 0 {
			t.Errorf("%q concerns another host: %v, %v", text, warnings, err)
		}
	}
}

// A host with a ProxyCommand is refused rather than dialed directly, and so is a host
// behind such a gateway. The error names the way in that works.
func TestProxyCommandIsRefused(t *testing.T) {
	c := config(t, "Host melon4 gate\nProxyCommand corkscrew proxy 80 %h %p\nHost plum\nProxyJump gate\n")
	for name, about := range map[string]string{"melon4": "m: ", "plum": "m: gateway gate: "} {
		target, _, err := c.Resolve(&hosts.Host{Name: "m"}, name)
		if want := about + "ProxyCommand in the ssh configuration is not supported"; err == nil ||
			!strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), hosts.UseSSH) {
			t.Errorf("%s: %v, %v; want %s", name, target, err, want)
		}
	}
	for _, jump := range [][]string{{}, {"other"}} { // the inventory comes first
		if _, _, err := c.Resolve(&hosts.Host{Name: "m", Jump: jump}, "melon4"); err != nil {
			t.Errorf("jump %q: %v", jump, err)
		}
	}
}

func TestWarningsOfAGatewayNameBoth(t *testing.T) {
	c := config(t, "Host gate\nBindAddress 1.2.3.4\nHost *\nProxyJump gate\n")
	_, _, err := c.Resolve(named("m"), "m")
	if err == nil || !strings.Contains(err.Error(), "ProxyJump none") {
		t.Errorf("gate jumps through gate: %v", err)
	}
	c = config(t, "Host gate\nBindAddress 1.2.3.4\nHost !gate *\nProxyJump gate\n")
	_, w, err := c.Resolve(named("m"), "m")
	if err != nil || len(w) != 1 || !strings.HasPrefix(w[0], "m: gateway gate: BindAddress") {
		t.Errorf("%v, %v", w, err)
	}
}

// A value that cannot be meant stops the host, whoever finds it.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"IdentityFile ~/%q": "the token %q",
		"IdentityFile 5%":   "ends in %",
		"ProxyJump -oX=1":   "[user@]host[:port]",
	} {
		c := config(t, "Host m\n"+text+"\n")
		if _, _, err := c.Resolve(named("m"), "m"); err == nil || !strings.HasPrefix(err.Error(), "m: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{ // in ssh's own words
		"Port 0":              "line 2: Bad port '0'",
		"ConnectTimeout soon": "line 2: invalid time value",
		"HostName %n":         "unknown key %n",
		"ProxyJump a,,b":      `Invalid ProxyJump "a,,b"`,
		"Ciphers rot13":       "Bad SSH2 cipher spec 'rot13'",
	} {
		c := config(t, "Host m\n"+text+"\n")
		if _, _, err := c.Resolve(named("m"), "m"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	for _, alias := range []string{"", "@", "a@", "-oProxyCommand=x", "a b", "a:0", "ssh://"} {
		if got, _, err := config(t, "").ResolveAlias(alias); err == nil {
			t.Errorf("%q became %+v", alias, got)
		}
	}
	for _, address := range []string{"", "-oProxyCommand=x", "a b", "a\x00b"} {
		if got, _, err := config(t, "").Resolve(named("m"), address); err == nil {
			t.Errorf("%q became %+v", address, got)
		}
	}
}
