package sshconf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts"
)

// A directive that we cannot honour for a host in use is named with the host,
// file and line; one that means nothing here is not, nor is any for other hosts.
func TestWarnings(t *testing.T) {
	for text, want := range map[string]string{
		"ProxyCommand corkscrew proxy 80 %h %p": "m: ProxyCommand in the ssh configuration is not honoured",
		"GSSAPIAuthentication yes":              "m: GSSAPIAuthentication yes in the ssh configuration is not honoured",
		"StrictHostKeyChecking no":              "m: StrictHostKeyChecking no in the ssh configuration is not honoured",
		"StrictHostKeyChecking off":             "m: StrictHostKeyChecking off",
		"BindAddress 10.0.0.1":                  "m: BindAddress 10.0.0.1",
		"CanonicalizeHostname always":           "m: CanonicalizeHostname always",
		"PKCS11Provider /usr/lib/x.so":          "m: PKCS11Provider",
		"RevokedHostKeys /etc/revoked":          "m: RevokedHostKeys",
		"SetEnv A=1 B=2":                        "m: SetEnv A=1 B=2",
		"PubkeyAuthentication no":               "m: PubkeyAuthentication no",
		"NoSuchThing 1":                         `m: "nosuchthing" in the ssh configuration is unknown`,
		"Port":                                  "m: port has no value",
		"IdentityFile \"open":                   "m: a quote is not closed",
		"= x":                                   "m: a keyword is missing",

		"ControlMaster auto":               "",
		"ControlPath ~/.ssh/cm-%C":         "",
		"ForwardAgent yes":                 "",
		"ForwardX11 yes":                   "",
		"LocalForward 8080 localhost:80":   "",
		"ServerAliveInterval 30":           "",
		"Compression yes":                  "",
		"SendEnv LANG LC_*":                "",
		"HashKnownHosts yes":               "",
		"GSSAPIAuthentication no":          "",
		"PKCS11Provider none":              "",
		"PubkeyAuthentication yes":         "",
		"ProxyCommand ssh -W %h:%p gate":   "",
		"ProxyCommand none":                "",
		"IgnoreUnknown No*\nNoSuchThing 1": "",
		"StrictHostKeyChecking ask":        "",
	} {
		c := config(t, "Host melon4\n"+text+"\n"+text+"\n")
		_, warnings, err := c.Resolve(&hosts.Host{Name: "m"}, "melon4")
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		all := strings.Join(warnings, "\n")
		if want == "" && all != "" || want != "" && (!strings.HasPrefix(all, want) || !strings.Contains(all, "config:2)")) {
			t.Errorf("%q: warnings %q, want %q with its line", text, all, want)
		}
		if _, warnings, err = c.Resolve(&hosts.Host{Name: "o"}, "other"); err != nil || len(warnings) > 0 {
			t.Errorf("%q concerns another host: %v, %v", text, warnings, err)
		}
	}
}

func TestWarningsOfAGatewayNameBoth(t *testing.T) {
	c := config(t, "Host gate\nBindAddress 1.2.3.4\nHost *\nProxyJump gate\nHost gate\n")
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

// A value that cannot be meant stops the host, with file and line.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"Port 0":                 `"0" is not a port`,
		"Port ssh":               `"ssh" is not a port`,
		"Port 70000":             `"70000" is not a port`,
		"ConnectTimeout soon":    `ConnectTimeout "soon" is not a time`,
		"IdentityFile ~/%q":      "the token %q",
		"IdentityFile 5%":        "ends in %",
		"HostName %n":            "the token %n",
		"ProxyJump -oX=1":        "is not [user@]host[:port]",
		"ProxyJump a,,b":         "is not [user@]host[:port]",
		"ProxyJump a:0":          "is not a port",
		"Ciphers rot13":          "none of rot13 can be used here",
		"RefuseConnection use b": "refuses the connection: use b",
	} {
		c := config(t, "Host m\n"+text+"\n")
		if _, _, err := c.Resolve(named("m"), "m"); err == nil || !strings.HasPrefix(err.Error(), "m: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	for _, alias := range []string{"", "@", "a@", "-oProxyCommand=x", "a b", "a:0", "ssh://"} {
		if got, _, err := config(t, "").ResolveAlias(alias); err == nil {
			t.Errorf("%q became %+v", alias, got)
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	for what, file := range map[string]string{
		"is not an ssh configuration file": dir,
		"NUL bytes":                        write(t, filepath.Join(dir, "binary"), "Host a\x00"),
		"Include: ":                        write(t, filepath.Join(dir, "includes"), "\nInclude "+filepath.Join(dir, "binary")+"\n"),
	} {
		if _, err := load(file, lab(t), ""); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	big := write(t, filepath.Join(dir, "big"), "")
	if err := os.Truncate(big, maxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := load(big, lab(t), ""); err == nil {
		t.Error("a huge file was read")
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{
		"Host a\n User bob\n", "Match host a exec x\nPort 1\n", "Host *\nProxyJump b,c\nHost b\nProxyJump none\n",
		"IdentityFile ~/%h\nUserKnownHostsFile a \"b c\"\n", "Match final host *\nHostName %h.x\n", "HostKeyAlgorithms ^x*,+y\n",
		"ProxyCommand ssh -W %h:%p g\n", "Tag x\nMatch tagged x !user y\nConnectTimeout 1h\n", "a=\"\\\"\n",
	} {
		f.Add([]byte(s), "a")
	}
	f.Fuzz(func(t *testing.T, text []byte, alias string) {
		if strings.Contains(strings.ToLower(string(text)), "include") {
			return // reads other files
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "c")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		env := lab(t)
		c, err := load(file, env, "")
		if err != nil {
			return
		}
		c.openssh = "" // a fuzzed Match exec must run nothing
		got, warnings, err := c.ResolveAlias(alias)
		for _, w := range warnings {
			if !strings.Contains(w, "("+file+":") {
				t.Fatalf("a warning without its place: %q", w)
			}
		}
		if err != nil {
			return
		}
		if got.HostName == "" || got.Port < 1 || got.Port > 65535 || got.User == "" || len(got.Jumps) > maxJumps {
			t.Fatalf("%+v", got)
		}
	})
}
