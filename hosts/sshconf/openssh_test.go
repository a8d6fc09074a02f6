package sshconf

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dcs-tui/hosts"
)

// needSSH says that the program is missing, loudly, when it is.
func needSSH(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("LEFT OUT: no ssh program to compare with; install openssh-client")
	}
}

// A configuration means to us what it means to the installed OpenSSH.
func TestAgreesWithOpenSSH(t *testing.T) {
	needSSH(t)
	for name, c := range map[string]struct {
		text    string
		aliases []string
	}{
		"empty":    {"", []string{"a", "A.Example.ORG", "10.0.0.1", "fe80::1"}},
		"comments": {"# x\n\n   # y\nHost a # z\n\tUser = bob # no\n  Port=\t2222\nUser\tlate\n", []string{"a"}},
		"crlf":     {"Host a\r\n  User bob\r\n  Port 2222\r\n", []string{"a", "b"}},
		"first wins": {`
User top
Host a b
  User ab
  Port 1
Host a
  Port 2
  HostName %h.Lab
Host *
  Port 3
  HostKeyAlias all
`, []string{"a", "b", "c"}},
		"patterns": {`
Host *.lab !bad.lab
  Port 1
Host node?? 10.0.0.*
  Port 2
Host !x
  Port 3
Host n*1*2
  Port 4
Host [a-z]
  Port 5
Host "quoted" q\"x
  Port 6
`, []string{"a.lab", "bad.lab", "node12", "node1", "10.0.0.77", "10x0.0.1", "y", "n1", "n12", "nx1y2", "n21", "lab", ".lab", "quoted", "A.LAB"}},
		"match": {`
Match host a.lab,!x*
  User one
Host a
  HostName A.lab
Match host a.lab
  Port 11
Match originalhost a host *.lab user one
  Port 12
Match originalhost A,b !user carol
  Port 13
Match localuser nobody-here
  Port 14
Match all
  HostKeyAlias all
Match host="*.lab"
  ConnectTimeout 7
`, []string{"a", "b", "c", "a.lab", "A", "x.lab"}},
		"match final": {`
Match final host *.lab
  User final
Match canonical
  Port 4
Host foo.lab
  Port 5
  HostName other.%%
Host foo*
  HostName FOO.lab
  IdentityFile ~/.ssh/a
  IdentityFile ~/.ssh/b
`, []string{"foo", "foo2", "bar", "bar.lab"}},
		"files": {`
Host a
  IdentityFile ~/.ssh/one
  IdentityFile "~/.ssh/two"
Host *
  IdentityFile ~/.ssh/one
  IdentityFile /tmp/three
  CertificateFile /tmp/c
  CertificateFile /tmp/d
  UserKnownHostsFile ~/.ssh/kh_%h /tmp/%C%d%i /tmp/%k_%L_%l /tmp/%n_%p_%r_%u
  UserKnownHostsFile /tmp/late
  GlobalKnownHostsFile /etc/one /etc/two
  IdentitiesOnly yes
  IdentityAgent ~/agent_%u_%r
`, []string{"a", "b"}},
		"options": {`
Host a
  StrictHostKeyChecking accept-new
  ConnectTimeout 1m30s
  AddressFamily inet6
  IdentityAgent none
Host b
  StrictHostKeyChecking ask
  ConnectTimeout 10
  AddressFamily inet
Host c
  ConnectTimeout none
  AddressFamily any
  StrictHostKeyChecking yes
`, []string{"a", "b", "c"}},
		"jumps": {`
Host a
  ProxyJump gate
Host b
  ProxyJump bob@gate:2222,other
Host c
  ProxyJump none
Host d
  ProxyCommand none
Host e
  ProxyJump ssh://x@y:7
Host c d
  ProxyJump late
`, []string{"a", "b", "c", "d", "e", "f"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, filepath.Join(t.TempDir(), "config"), c.text)
			conf, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, alias := range c.aliases {
				out, err := exec.Command("ssh", "-G", "-T", "-F", file, "--", alias).CombinedOutput()
				if err != nil {
					t.Fatalf("ssh -G %s: %v: %s", alias, err, out)
				}
				got, _, err := conf.ResolveAlias(alias)
				if err != nil {
					t.Errorf("%s: %v", alias, err)
					continue
				}
				compare(t, conf.env, alias, got, string(out))
			}
		})
	}
}

// compare holds a target against what ssh -G printed.
func compare(t *testing.T, env *environment, alias string, got *Target, printed string) {
	t.Helper()
	said := map[string][]string{}
	for line := range strings.Lines(printed) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[k] = append(said[k], v)
	}
	f := files{env: env, tokens: env.tokens(got)}
	paths := func(list []string) string {
		out := []string{}
		for _, one := range list {
			out = append(out, f.path(one, ""))
		}
		return strings.Join(out, " ")
	}
	check := func(what, is string, want ...string) {
		t.Helper()
		if w := strings.Join(want, " "); is != w {
			t.Errorf("ssh %s: %s is %q, OpenSSH says %q", alias, what, is, w)
		}
	}
	check("hostname", got.HostName, said["hostname"]...)
	check("user", got.User, said["user"]...)
	check("port", strconv.Itoa(got.Port), said["port"]...)
	check("hostkeyalias", got.HostKeyAlias, said["hostkeyalias"]...)
	check("addressfamily", map[string]string{"tcp": "any", "tcp4": "inet", "tcp6": "inet6"}[got.Network], said["addressfamily"]...)
	timeout := "none"
	if got.ConnectTimeout > 0 {
		timeout = fmt.Sprint(int(got.ConnectTimeout.Seconds()))
	}
	check("connecttimeout", timeout, said["connecttimeout"]...)
	check("identitiesonly", map[bool]string{true: "yes", false: "no"}[got.IdentitiesOnly], said["identitiesonly"]...)
	if agent := said["identityagent"]; len(agent) > 0 && agent[0] != "none" {
		check("identityagent", got.IdentityAgent, agent...)
	} else if len(agent) > 0 {
		check("identityagent", got.IdentityAgent, "")
	}
	if strict := said["stricthostkeychecking"][0]; (strict == "accept-new") != (got.Strict == AcceptNew) {
		t.Errorf("ssh %s: strict %v, OpenSSH says %s", alias, got.Strict, strict)
	}
	if got.Explicit {
		check("identityfile", strings.Join(got.IdentityFiles, " "), paths(said["identityfile"]))
	} else {
		for _, one := range got.IdentityFiles {
			if !slices.Contains(strings.Fields(paths(said["identityfile"])), one) {
				t.Errorf("ssh %s: %s is not among OpenSSH's usual identities", alias, one)
			}
		}
	}
	check("certificatefile", strings.Join(got.CertificateFiles, " "), paths(said["certificatefile"]))
	known := strings.Fields(said["userknownhostsfile"][0] + " " + said["globalknownhostsfile"][0])
	check("known hosts", strings.Join(got.KnownHosts, " "), paths(known))

	var jumps, want []string
	for _, j := range got.Jumps {
		jumps = append(jumps, fmt.Sprintf("%s@%s:%d", j.User, j.Alias, j.Port))
	}
	if spec := said["proxyjump"]; len(spec) > 0 && spec[0] != "none" {
		for one := range strings.SplitSeq(spec[0], ",") {
			g, err := parseSpec(one)
			if err != nil {
				t.Fatal(err)
			}
			if g.user == "" {
				g.user = env.user
			}
			if g.port == 0 {
				g.port = 22
			}
			want = append(want, fmt.Sprintf("%s@%s:%d", g.user, g.alias, g.port))
		}
	}
	check("proxyjump", strings.Join(jumps, " "), want...)
}

// What the inventory says counts as ssh's own options do.
func TestInventoryCountsAsOptions(t *testing.T) {
	needSSH(t)
	file := write(t, filepath.Join(t.TempDir(), "config"), `
Match user carol
  HostKeyAlias for-carol
Host !other !gw* *
  User bob
  Port 99
  IdentityFile /tmp/one
  ProxyJump other
  UserKnownHostsFile /tmp/%r_%p_%h
`)
	conf, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	h := &hosts.Host{Name: "m", User: "carol", Port: 2222, Identity: write(t, filepath.Join(t.TempDir(), "key"), "k"), Jump: []string{"me@gw:2", "carol@gw2:99"}}
	out, err := exec.Command("ssh", "-G", "-T", "-F", file, "-l", h.User, "-p", "2222", "-i", h.Identity, "-J", strings.Join(h.Jump, ","), "melon").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := conf.Resolve(h, "melon")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, conf.env, "melon", got, string(out))
}
