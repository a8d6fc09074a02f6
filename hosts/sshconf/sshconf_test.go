package sshconf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
)

// lab is a user whose home directory is the test's own.
func lab(t *testing.T) *environment {
	t.Helper()
	vars := map[string]string{"SSH_AUTH_SOCK": "/run/agent", "OTHER_SOCK": "/run/other", "LAB": "melon"}
	return &environment{
		home: t.TempDir(), user: "alice", uid: "1000", hostname: "desk.lab",
		getenv: func(k string) (string, bool) { v, ok := vars[k]; return v, ok },
		lookup: func(string) (string, error) { return "", fmt.Errorf("no such user") },
	}
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// config loads text as a configuration file. The ssh program, which reads it, knows only the
// real user.
func config(t *testing.T, text string) *Config {
	t.Helper()
	needSSH(t)
	c, err := Load(write(t, filepath.Join(t.TempDir(), "config"), text))
	if err != nil {
		t.Fatal(err)
	}
	l := lab(t)
	c.env.getenv, c.env.hostname = l.getenv, l.hostname
	return c
}

func named(name string) *hosts.Host { return &hosts.Host{Name: name, Link: "ssh"} }

// With no configuration at all a host is what `ssh NAME` would make of it.
func TestNothingSaid(t *testing.T) {
	c := config(t, "")
	got, warnings, err := c.Resolve(named("melon4"), "melon4")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	dir := filepath.Join(c.env.home, ".ssh")
	want := fmt.Sprintf("%+v", Target{
		Alias: "melon4", HostName: "melon4", Port: 22, User: c.env.user, IdentityAgent: "/run/agent", Network: "tcp",
		IdentityFiles: []string{dir + "/id_rsa", dir + "/id_ecdsa", dir + "/id_ed25519"},
		KnownHosts:    []string{dir + "/known_hosts", dir + "/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"},
	})
	if fmt.Sprintf("%+v", *got) != want {
		t.Errorf("got  %+v\nwant %s", *got, want)
	}
	if got.Address() != "melon4:22" {
		t.Error(got.Address())
	}
}

// What the inventory says comes first; a key of the inventory is tried before
// those of ssh_config, as with ssh -i.
func TestInventoryWins(t *testing.T) {
	c := config(t, "Host melon*\n HostName %h.lab\n User bob\n Port 2200\n IdentityFile /k/conf\n ProxyJump gate\n")
	h := &hosts.Host{Name: "m", User: "carol", Port: 2222, Identity: "~/inv", Jump: []string{"me@gw:2", "gw2"}}
	got, _, err := c.Resolve(h, "melon4")
	if err != nil {
		t.Fatal(err)
	}
	if got.HostName != "melon4.lab" || got.User != "carol" || got.Port != 2222 || !got.Explicit ||
		strings.Join(got.IdentityFiles, " ") != c.env.home+"/inv /k/conf" {
		t.Errorf("%+v", got)
	}
	if len(got.Jumps) != 2 || got.Jumps[0].HostName != "gw" || got.Jumps[0].User != "me" || got.Jumps[0].Port != 2 || got.Jumps[1].HostName != "gw2" {
		t.Errorf("jumps %+v", got.Jumps)
	}
	h.Jump = []string{} // jump = "none"
	if got, _, err = c.Resolve(h, "melon4"); err != nil || len(got.Jumps) > 0 {
		t.Errorf("jump none: %+v, %v", got.Jumps, err)
	}
	if got, _, err = c.Resolve(&hosts.Host{Name: "m"}, "10.0.0.7"); err != nil || got.HostName != "10.0.0.7" || got.User != c.env.user {
		t.Errorf("another address: %+v, %v", got, err)
	}
}

func TestFilesAndTokens(t *testing.T) {
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
	got, warnings, err := c.ResolveAlias("a")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	wd, _ := os.Getwd()
	home := c.env.home
	want := fmt.Sprintf("%+v", Target{
		Alias: "a", HostName: "a.lab", Port: 22, User: "bob", Explicit: true, IdentitiesOnly: true, IdentityAgent: "/run/other",
		IdentityFiles:    []string{home + "/.ssh/my key", home + "/k_a.lab_bob_" + c.env.user + "_a_22", wd + "/melon/k%"},
		CertificateFiles: []string{home + "/cert_desk_" + c.env.uid},
		KnownHosts:       []string{home + "/kh1", "/kh2_alias"}, HostKeyAlias: "alias", Strict: AcceptNew,
		ConnectTimeout: 90 * time.Second, Network: "tcp6",
	})
	if fmt.Sprintf("%+v", *got) != want {
		t.Errorf("got  %+v\nwant %s", *got, want)
	}
	got, _, err = c.ResolveAlias("b")
	if err != nil || got.IdentityAgent != "" || len(got.IdentityFiles) != 0 || got.KnownHosts[0] != "/dev/null" || len(got.KnownHosts) != 3 {
		t.Errorf("none: %+v, %v", got, err)
	}
}

func TestInclude(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/d/1.conf", "Host a\n User one\nHost b\n User never\n")
	write(t, dir+"/d/2.conf", "User two\nPort 2\n")
	third := write(t, dir+"/third", "Host c\n User three\n")
	c := config(t, "Host a\n  Include "+dir+"/d/*.conf nothing*\nInclude "+third+"\nHost *\n Port 9\n")
	me := c.env.user
	for alias, want := range map[string]string{"a": "one 2", "b": me + " 9", "c": me + " 9"} {
		got, _, err := c.ResolveAlias(alias) // b and c: the Includes stand inside Host a, so only a reads them
		if err != nil || fmt.Sprint(got.User, " ", got.Port) != want {
			t.Errorf("%s: %+v, %v; want %s", alias, got, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "loop")
	write(t, file, "Include "+file+"\nInclude "+file+"\n")
	if _, _, err := config(t, "Include "+file+"\n").ResolveAlias("a"); err == nil || !strings.Contains(err.Error(), "Too many recursive") {
		t.Errorf("a file that includes itself: %v", err)
	}
}
