package link

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
)

// configLab returns the environment of a user whose home directory belongs to the test.
func configLab(t *testing.T) *environment {
	t.Helper()
	vars := map[string]string{"SSH_AUTH_SOCK": "/run/agent", "OTHER_SOCK": "/run/other", "LAB": "melon"}
	return &environment{
		home: t.TempDir(), user: "alice", uid: "1000", hostname: "desk.lab",
		getenv:  func(k string) (string, bool) { v, ok := vars[k]; return v, ok },
		environ: func() []string { return []string{"LANG=C.UTF-8", "LC_TIME=C", "LC_ALL=", "HOME=/h", "=odd"} },
	}
}

// config loads text as a configuration file. The ssh program, which reads it, knows only the real
// user.
func config(t *testing.T, text string) *SSHConfig {
	t.Helper()
	needSSH(t)
	c, err := LoadSSHConfig(write(t, filepath.Join(t.TempDir(), "config"), text))
	must(t, err)
	l := configLab(t)
	c.env.getenv, c.env.environ, c.env.hostname = l.getenv, l.environ, l.hostname
	return c
}

// resolveAlias returns the connection that `ssh ALIAS` would make.
func resolveAlias(c *SSHConfig, alias string) (*Target, []string, error) {
	q, err := parseJump(alias)
	if err != nil {
		return nil, nil, err
	}
	return c.resolve(context.Background(), q)
}

// refuses fails the test unless the host is refused with an error that contains all words.
func refuses(t *testing.T, c *SSHConfig, h *hosts.Host, address string, words ...string) {
	t.Helper()
	got, _, err := c.Resolve(t.Context(), h, address)
	if err == nil {
		t.Errorf("%q became %+v", address, got)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q: got %v, want %q", address, err, word)
		}
	}
}

func hostNamed(name string) *hosts.Host { return &hosts.Host{Name: name, Link: "ssh"} }

// TestHostWithoutConfiguration checks that, with no configuration at all, a host is resolved as
// `ssh NAME` resolves it.
func TestHostWithoutConfiguration(t *testing.T) {
	c := config(t, "")
	got, warnings, err := c.Resolve(t.Context(), hostNamed("melon4"), "melon4")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	dir := filepath.Join(c.env.home, ".ssh")
	want := fmt.Sprintf("%+v", Target{
		Alias:         "melon4",
		Config:        c.path,
		Command:       []string{"ssh", "-F", c.path, "melon4"},
		HostName:      "melon4",
		Port:          22,
		User:          c.env.user,
		IdentityAgent: "/run/agent",
		Network:       "tcp",
		IdentityFiles: []string{
			dir + "/id_rsa", dir + "/id_ecdsa", dir + "/id_ecdsa_sk", dir + "/id_ed25519", dir + "/id_ed25519_sk",
		},
		KnownHosts: []string{
			dir + "/known_hosts", dir + "/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2",
		},
	})
	if fmt.Sprintf("%+v", *got) != want {
		t.Errorf("got  %+v\nwant %s", *got, want)
	}
	if got.Address() != "melon4:22" {
		t.Error(got.Address())
	}
}

// TestInventoryWins checks that the inventory has precedence over ssh_config. A key of the
// inventory is tried before those of ssh_config, as with ssh -i.
func TestInventoryWins(t *testing.T) {
	c := config(t, "Host melon*\n HostName %h.lab\n User bob\n Port 2200\n IdentityFile /k/conf\n ProxyJump gate\n")
	h := &hosts.Host{Name: "m", User: "carol", Port: 2222, Identity: "~/inv", Jump: []string{"me@gw:2", "gw2"}}
	got, _, err := c.Resolve(t.Context(), h, "melon4")
	must(t, err)
	if got.HostName != "melon4.lab" || got.User != "carol" || got.Port != 2222 || !got.Explicit ||
		strings.Join(got.IdentityFiles, " ") != c.env.home+"/inv /k/conf" {
		t.Errorf("got %+v, want the values of the inventory before those of the configuration", got)
	}
	wantCommand := "ssh -F " + c.path + " -l carol -p 2222 -J me@gw:2,gw2 -i ~/inv melon4"
	if strings.Join(got.Command, " ") != wantCommand {
		t.Errorf("got command %q, want %q", got.Command, wantCommand)
	}
	if len(got.Jumps) != 2 || got.Jumps[0].HostName != "gw" || got.Jumps[0].User != "me" || got.Jumps[0].Port != 2 ||
		got.Jumps[1].HostName != "gw2" {
		t.Errorf("jumps %+v", got.Jumps)
	}
	h.Jump = []string{} // jump = "none"
	if got, _, err = c.Resolve(t.Context(), h, "melon4"); err != nil || len(got.Jumps) > 0 {
		t.Errorf("jump none: %+v, %v", got.Jumps, err)
	}
	if got, _, err = c.Resolve(t.Context(), &hosts.Host{Name: "m"}, "10.0.0.7"); err != nil ||
		got.HostName != "10.0.0.7" || got.User != c.env.user {
		t.Errorf("another address: %+v, %v", got, err)
	}
}

// TestTokensInFileNamesAreExpanded checks that the tokens, variables, and ~ in the names of files
// are expanded, and that `none` means no file.
func TestTokensInFileNamesAreExpanded(t *testing.T) {
	c := config(t, `
Host a
  HostName a.lab
  User bob
  IdentityFile "~/.ssh/my key"
  IdentityFile=%d/k_%h_%r_%u_%n_%p
  identityfile ${LAB}/k%%
  IdentityFile none
  CertificateFile ~/cert_%L_%i
  IdentitiesOnly yes
  IdentityAgent $OTHER_SOCK
  UserKnownHostsFile ~/kh1 /kh2_%k
  GlobalKnownHostsFile none
  HostKeyAlias alias
  StrictHostKeyChecking accept-new
  ConnectTimeout 1m30s
  AddressFamily inet6
Host b
  IdentityAgent none
  IdentityFile none
  UserKnownHostsFile none
`)
	got, warnings, err := resolveAlias(c, "a")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	wd, _ := os.Getwd()
	home := c.env.home
	want := fmt.Sprintf("%+v", Target{
		Alias:          "a",
		Config:         c.path,
		Command:        []string{"ssh", "-F", c.path, "a"},
		HostName:       "a.lab",
		Port:           22,
		User:           "bob",
		Explicit:       true,
		IdentitiesOnly: true,
		IdentityAgent:  "/run/other",
		IdentityFiles: []string{
			home + "/.ssh/my key",
			home + "/k_a.lab_bob_" + c.env.user + "_a_22",
			wd + "/melon/k%",
		},
		CertificateFiles: []string{home + "/cert_desk_" + c.env.uid},
		KnownHosts:       []string{home + "/kh1", "/kh2_alias"},
		HostKeyAlias:     "alias",
		AcceptNew:        true,
		ConnectTimeout:   90 * time.Second,
		Network:          "tcp6",
	})
	if fmt.Sprintf("%+v", *got) != want {
		t.Errorf("got  %+v\nwant %s", *got, want)
	}
	got, _, err = resolveAlias(c, "b")
	if err != nil || got.IdentityAgent != "" || len(got.IdentityFiles) != 0 || got.KnownHosts[0] != "/dev/null" ||
		len(got.KnownHosts) != 3 {
		t.Errorf("none: %+v, %v", got, err)
	}
}

// TestIncludeIsPartOfItsHost checks that an Include applies only where it is written, and that
// files that include themselves are refused.
func TestIncludeIsPartOfItsHost(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/d/1.conf", "Host a\n User one\nHost b\n User never\n")
	write(t, dir+"/d/2.conf", "User two\nPort 2\n")
	third := write(t, dir+"/third", "Host c\n User three\n")
	c := config(t, "Host a\n  Include "+dir+"/d/*.conf nothing*\nInclude "+third+"\nHost *\n Port 9\n")
	me := c.env.user
	for alias, want := range map[string]string{"a": "one 2", "b": me + " 9", "c": me + " 9"} {
		// For b and c: the Includes are inside Host a, so only a reads them.
		got, _, err := resolveAlias(c, alias)
		if err != nil || fmt.Sprint(got.User, " ", got.Port) != want {
			t.Errorf("%s: %+v, %v; want %s", alias, got, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "loop")
	write(t, file, "Include "+file+"\nInclude "+file+"\n")
	refuses(t, config(t, "Include "+file+"\n"), hostNamed("a"), "a", "Too many recursive")
}

// TestDirectivesWithoutSupportAreReportedOnce checks that a directive that we cannot honor for a
// host in use is reported once. Directives without an effect here, and directives for other hosts,
// are not reported.
func TestDirectivesWithoutSupportAreReportedOnce(t *testing.T) {
	for text, want := range map[string]string{
		"StrictHostKeyChecking no":          "StrictHostKeyChecking no in the ssh configuration is not supported",
		"StrictHostKeyChecking off":         "StrictHostKeyChecking no",
		"BindAddress 10.0.0.1":              "BindAddress 10.0.0.1",
		"PKCS11Provider /usr/lib/x.so":      "PKCS11Provider",
		"RevokedHostKeys /etc/revoked":      "RevokedHostKeys",
		"VerifyHostKeyDNS ask":              "VerifyHostKeyDNS ask",
		"CASignatureAlgorithms ssh-ed25519": "CASignatureAlgorithms ssh-ed25519",
		"CheckHostIP yes":                   "CheckHostIP yes",
		"PermitLocalCommand yes":            "PermitLocalCommand yes",
		"GSSAPIDelegateCredentials yes":     "GSSAPIDelegateCredentials yes",
		"PreferredAuthentications password": "PreferredAuthentications password",
		"PubkeyAuthentication no":           "PubkeyAuthentication ",

		"ControlMaster auto":                          "",
		"ControlPath ~/.ssh/cm-%C":                    "",
		"ForwardAgent yes":                            "",
		"ForwardX11 yes":                              "",
		"LocalForward 8080 localhost:80":              "",
		"ServerAliveInterval 30":                      "",
		"Compression yes":                             "",
		"SendEnv LANG LC_*":                           "",
		"SetEnv A=1":                                  "",
		"RequiredRSASize 2048":                        "",
		"PreferredAuthentications publickey,password": "",
		"HashKnownHosts yes":                          "",
		"GSSAPIAuthentication yes":                    "",
		"PKCS11Provider none":                         "",
		"PubkeyAuthentication yes":                    "",
		"ProxyCommand ssh -W %h:%p gate":              "",
		"ProxyCommand ssh -q gate nc %h %p":           "",
		"ProxyCommand none":                           "",
		"StrictHostKeyChecking ask":                   "",
		"StrictHostKeyChecking yes":                   "",
	} {
		c := config(t, "Host melon4\n"+text+"\n"+text+"\n")
		_, warnings, err := c.Resolve(t.Context(), &hosts.Host{Name: "m"}, "melon4")
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if want == "" && len(warnings) > 0 || want != "" && (len(warnings) != 1 ||
			!strings.HasPrefix(warnings[0], want) || !strings.Contains(warnings[0], "ssh -F "+c.path)) {
			t.Errorf("%q: warnings %q, want %q", text, warnings, want)
		}
		if _, warnings, err = c.Resolve(t.Context(), &hosts.Host{Name: "o"}, "other"); err != nil || len(warnings) > 0 {
			t.Errorf("%q concerns another host: %v, %v", text, warnings, err)
		}
	}
}

// TestProxyCommandOfTheInventory checks that gateways of the inventory replace a ProxyCommand.
func TestProxyCommandOfTheInventory(t *testing.T) {
	c := config(t, "Host melon4\nProxyCommand corkscrew proxy 80 %h %p\n")
	for want, jump := range map[string][]string{"corkscrew proxy 80 melon4 22": nil, "": {}, " ": {"other"}} {
		got, _, err := c.Resolve(t.Context(), &hosts.Host{Name: "m", Jump: jump}, "melon4")
		if err != nil || got.ProxyCommand != strings.TrimSpace(want) {
			t.Errorf("jump %q: got %+v, %v; want ProxyCommand %q", jump, got, err, want)
		}
	}
}

// TestConfigurationOfAHost checks that a host is resolved with the ssh_config of the inventory unless
// the command line names another one, that its gateways are resolved with the same file, and that a
// warning advises to name the file to ssh.
func TestConfigurationOfAHost(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "lab config"),
		"Host ws01\nHostName ws01.lab\nProxyJump gate\nBindAddress 1.2.3.4\nHost gate\nHostName gate.lab\n")
	h := &hosts.Host{Name: "ws01", SSHConfig: file}
	c := config(t, "")
	c.path = ""
	got, warnings, err := c.Resolve(t.Context(), h, "ws01")
	if err != nil || got.HostName != "ws01.lab" || len(got.Jumps) != 1 || got.Jumps[0].HostName != "gate.lab" {
		t.Errorf("got %+v, %v; want ws01.lab through gate.lab", got, err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `link = "ssh -F '`+file+`' {name}"`) {
		t.Errorf("got warnings %q", warnings)
	}
	h.SSHConfig = "/nonexistent/config"
	refuses(t, c, h, "ws01", "/nonexistent/config")
	if got, _, err := config(t, "HostName other\n").Resolve(t.Context(), h, "ws01"); err != nil ||
		got.HostName != "other" {
		t.Errorf("got %+v, %v; want the configuration of the command line", got, err)
	}
}

// TestWarningNamesTheGateway checks that a warning about a gateway names it, and that a loop of
// gateways is an error with advice.
func TestWarningNamesTheGateway(t *testing.T) {
	c := config(t, "Host gate\nBindAddress 1.2.3.4\nHost *\nProxyJump gate\n")
	refuses(t, c, hostNamed("m"), "m", "ProxyJump none") // gate jumps through gate
	c = config(t, "Host gate\nBindAddress 1.2.3.4\nHost !gate *\nProxyJump gate\n")
	_, w, err := c.Resolve(t.Context(), hostNamed("m"), "m")
	if err != nil || len(w) != 1 || !strings.HasPrefix(w[0], "gateway gate: BindAddress") {
		t.Errorf("Resolve: got warnings %v, %v; want one about the gateway", w, err)
	}
}

// TestInvalidValueStopsTheHost checks that an invalid value stops the host, whether we or ssh find
// it.
func TestInvalidValueStopsTheHost(t *testing.T) {
	for text, want := range map[string]string{
		"IdentityFile ~/%q": "IdentityFile: the token %q",
		"IdentityFile 5%":   `IdentityFile: "5%" ends in %`,
		"ProxyJump -oX=1":   `"-oX=1" is not [user@]host[:port]`,
		// ssh's own messages
		"Port 0":              "line 2: Bad port '0'",
		"ConnectTimeout soon": "line 2: invalid time value",
		"HostName %n":         "unknown key %n",
		"ProxyJump a,,b":      `Invalid ProxyJump "a,,b"`,
		"Ciphers rot13":       "Bad SSH2 cipher spec 'rot13'",
	} {
		refuses(t, config(t, "Host m\n"+text+"\n"), hostNamed("m"), "m", want)
	}
	for _, alias := range []string{"", "@", "a@", "-oProxyCommand=x", "a b", "a:0", "ssh://"} {
		if got, _, err := resolveAlias(config(t, ""), alias); err == nil {
			t.Errorf("%q became %+v", alias, got)
		}
	}
	for _, address := range []string{"", "-oProxyCommand=x", "a b", "a\x00b"} {
		refuses(t, config(t, ""), hostNamed("m"), address)
	}
}

// TestAlgorithmListsAreApplied checks that lists of algorithms may replace, extend, and reorder the
// default, without the algorithms that we do not know.
func TestAlgorithmListsAreApplied(t *testing.T) {
	c := config(t, `
Host plain
  HostKeyAlgorithms ssh-ed25519,sk-ssh-ed25519@openssh.com,rsa-sha2-256
Host plus
  HostKeyAlgorithms +ssh-rsa
Host minus
  HostKeyAlgorithms -*cert-*,ecdsa-*
Host front
  HostKeyAlgorithms ^rsa-sha2-512
Host nothing
  HostKeyAlgorithms sk-ssh-ed25519@openssh.com
Host rest
  Ciphers aes256-gcm@openssh.com,aes128-ctr
  KexAlgorithms curve25519-sha256
  MACs hmac-sha2-256
`)
	for alias, check := range map[string]func([]string) bool{
		"plain": func(l []string) bool { return strings.Join(l, " ") == "ssh-ed25519 rsa-sha2-256" },
		"plus":  func(l []string) bool { return len(l) > 5 && l[len(l)-1] == "ssh-rsa" },
		"minus": func(l []string) bool {
			s := strings.Join(l, " ")
			return len(l) > 1 && !strings.Contains(s, "cert") && !strings.Contains(s, "ecdsa") &&
				strings.Contains(s, "ssh-ed25519")
		},
		"front": func(l []string) bool { return len(l) > 5 && l[0] == "rsa-sha2-512" },
		"other": func(l []string) bool { return l == nil },
	} {
		got, _, err := resolveAlias(c, alias)
		if err != nil || !check(got.HostKeyAlgorithms) {
			t.Errorf("%s: %v, %v", alias, got, err)
		}
	}
	refuses(t, c, hostNamed("m"), "nothing", "none of HostKeyAlgorithms sk-ssh-ed25519@openssh.com is supported")
	got, _, err := resolveAlias(c, "rest")
	if err != nil || len(got.Ciphers) != 2 || len(got.KexAlgorithms) != 1 || len(got.MACs) != 1 {
		t.Errorf("algorithms: got %+v, %v; want 2 ciphers, 1 key exchange, and 1 MAC", got, err)
	}
}

// TestJumpsAreResolved checks that each gateway of a ProxyJump is resolved like a host, and that
// loops are refused.
func TestJumpsAreResolved(t *testing.T) {
	c := config(t, `
Host inner
  ProxyJump gate2
Host gate2
  HostName g2.lab
  ProxyJump bob@gate1:2201
Host gate1
  HostName g1.lab
Host three
  ProxyJump gate2,other,ssh://x@last:77
Host loop1
  ProxyJump loop2
Host loop2
  ProxyJump loop1
Host self
  ProxyJump self
Host off
  ProxyJump none
Host off
  ProxyJump gate1
Host token
  ProxyJump gw-%n
Host old
  ProxyCommand ssh -q -p 2202 -l bob -W %h:%p gate1
Host older
  ProxyCommand /usr/bin/ssh bob@gate1 exec-not nc %h %p
Host oldest
  ProxyCommand ssh gate1 nc -w 5 %h %p
`)
	for alias, want := range map[string]string{
		"inner":  "bob@g1.lab:2201 me@g2.lab:22",
		"three":  "bob@g1.lab:2201 me@g2.lab:22 me@other:22 x@last:77",
		"off":    "",
		"token":  "me@gw-token:22",
		"old":    "bob@g1.lab:2202",
		"oldest": "me@g1.lab:22",
	} {
		got, warnings, err := resolveAlias(c, alias)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", alias, err, warnings)
			continue
		}
		var jumps []string
		for _, j := range got.Jumps {
			jumps = append(jumps, fmt.Sprintf("%s@%s", j.User, j.Address()))
			if j.Jumps != nil {
				t.Errorf("%s: gateway %s keeps jumps of its own", alias, j.Alias)
			}
		}
		if strings.Join(jumps, " ") != strings.ReplaceAll(want, "me@", c.env.user+"@") {
			t.Errorf("%s through %v; want %s", alias, jumps, want)
		}
	}
	refuses(t, c, hostNamed("m"), "loop1", "loop of gateways")
	refuses(t, c, hostNamed("m"), "self", "ProxyJump none")
	if got, _, err := resolveAlias(c, "older"); err != nil || got.ProxyCommand == "" || len(got.Jumps) > 0 {
		t.Errorf("got %+v, %v; want a ProxyCommand of another kind to be run", got, err)
	}
	nat := &hosts.Host{Name: "inside", Port: 2201, Jump: []string{"nat.example.org:2200"}}
	if got, _, err := c.Resolve(t.Context(), nat, "nat.example.org"); err != nil || len(got.Jumps) != 1 ||
		got.Jumps[0].Port != 2200 {
		t.Errorf("a gateway at the same address with another port: %+v, %v", got, err)
	}
	refuses(t, c, &hosts.Host{Name: "gw", Jump: []string{"gw"}}, "gw", `jump = "none"`) // through itself
}

// FuzzAnswer checks that any output of ssh becomes a complete target or an error.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"hostname a\nport 22\nuser bob\n",
		"hostname a\nproxyjump b,c@d:3\n",
		"hostname a\nproxycommand ssh -W %h:%p g\n",
		"hostname a\nidentityfile ~/%h\nidentityfile none\nuserknownhostsfile /a b c\n",
		"hostname a\nhostkeyalgorithms ^x*,+y\n",
		"hostname a\nidentityagent $X\nconnecttimeout 1h\nstricthostkeychecking accept-new\n", "\r\n  \nX\nhostname\n",
	} {
		f.Add(s)
	}
	env := &environment{
		home:     "/home/a",
		user:     "alice",
		uid:      "1",
		hostname: "desk",
		getenv:   os.LookupEnv,
		environ:  os.Environ,
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := parseSettings(text)
		if s["hostname"] == nil {
			return
		}
		c, err := newSSHConfig("", env, "ssh")
		must(t, err)
		c.run = func(args []string) (settings, error) {
			if args[len(args)-1] == unknownHost {
				return parseSettings("hostname x\nport 22\n"), nil
			}
			return s, nil
		}
		got, _, err := resolveAlias(c, "alias")
		if err == nil && (got.HostName == "" || got.Port < 1 || got.Port > 65535 || got.User == "" ||
			len(got.Jumps) > maxJumps) {
			t.Fatalf("got target %+v, want a host name, a port, a user, and few jumps", got)
		}
	})
}

// BenchmarkFirstAnswer measures the first lookup of a host.
func BenchmarkFirstAnswer(b *testing.B) {
	c, err := LoadSSHConfig("/dev/null")
	must(b, err)
	for i := 0; b.Loop(); i++ {
		if _, _, err := resolveAlias(c, fmt.Sprint("h", i)); err != nil {
			b.Fatal(err)
		}
	}
}
