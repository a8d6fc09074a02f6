package sshconf

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// files resolves the directives that name files.
type files struct {
	env    *environment
	tokens tokens
	err    error // the first
}

// tokens are those of ssh_config(5), TOKENS, for a target whose HostName, Port,
// User and HostKeyAlias are settled.
func (e *environment) tokens(t *Target) tokens {
	short, _, _ := strings.Cut(e.hostname, ".")
	port := strconv.Itoa(t.Port)
	key := t.Alias
	if t.HostKeyAlias != "" {
		key = t.HostKeyAlias
	}
	sum := sha1.Sum([]byte(e.hostname + t.HostName + port + t.User)) // %C is a name, not a secret
	return tokens{
		'C': hex.EncodeToString(sum[:]), 'd': e.home, 'h': t.HostName, 'i': e.uid, 'k': key, 'L': short,
		'l': e.hostname, 'n': t.Alias, 'p': port, 'r': t.User, 'u': e.user, 'j': "",
	}
}

// path expands one file name; what is not absolute is below the current
// directory, as for ssh.
func (f *files) path(value, what string) string {
	s, err := f.tokens.expand(f.env.tilde(f.env.variables(value)))
	if err == nil {
		s, err = filepath.Abs(s)
	}
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", what, err)
	}
	return s
}

func add(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

// identities lists the key files: that of the inventory, then those of
// ssh_config, and when there are none the usual ones. `IdentityFile none` alone
// means none at all.
func (f *files) identities(t *Target, s *settings, g given) {
	if g.identity != "" {
		t.IdentityFiles = []string{f.path(g.identity, "identity of the inventory")}
		t.Explicit = true
	}
	for _, value := range s.list("identityfile") {
		t.Explicit = true
		if !isNone(value) {
			t.IdentityFiles = add(t.IdentityFiles, f.path(value, "IdentityFile"))
		}
	}
	for _, value := range s.list("certificatefile") {
		if !isNone(value) {
			t.CertificateFiles = add(t.CertificateFiles, f.path(value, "CertificateFile"))
		}
	}
	if !t.Explicit {
		for _, name := range []string{"id_rsa", "id_ecdsa", "id_ed25519"} {
			t.IdentityFiles = append(t.IdentityFiles, filepath.Join(f.env.home, ".ssh", name))
		}
	}
}

// agent finds the agent's socket.
func (f *files) agent(t *Target, s *settings) {
	variable := "SSH_AUTH_SOCK"
	switch value := s.text("identityagent"); {
	case isNone(value):
		return
	case value == "", value == variable:
	case value[0] == '$' && !strings.HasPrefix(value, "${"):
		variable = value[1:]
	default:
		t.IdentityAgent = f.path(value, "IdentityAgent")
		return
	}
	t.IdentityAgent, _ = f.env.getenv(variable)
}

// knownHosts lists the user's files, then the global ones.
func (f *files) knownHosts(t *Target, s *settings) {
	dir := filepath.Join(f.env.home, ".ssh")
	for _, l := range []struct {
		keyword string
		usual   []string
	}{
		{"UserKnownHostsFile", []string{filepath.Join(dir, "known_hosts"), filepath.Join(dir, "known_hosts2")}},
		{"GlobalKnownHostsFile", []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}},
	} {
		value := s.text(strings.ToLower(l.keyword))
		if value == "" {
			t.KnownHosts = append(t.KnownHosts, l.usual...)
			continue
		}
		for _, name := range fileNames(value) {
			_, wrong := f.tokens.expand(name)
			switch {
			case wrong != nil && s.usual != nil && filepath.IsAbs(name): // most versions of ssh print it expanded; the % is its own
				t.KnownHosts = add(t.KnownHosts, name)
			case !isNone(name):
				t.KnownHosts = add(t.KnownHosts, f.path(name, l.keyword))
			case l.keyword == "UserKnownHostsFile": // else a new key would go into a global file
				t.KnownHosts = add(t.KnownHosts, "/dev/null")
			}
		}
	}
}

// fileNames cuts a list of files. `ssh -G` prints it without quotes, so of the
// words from each place the longest run that is a file counts as one name.
func fileNames(value string) []string {
	var names []string
	fields := strings.Fields(value)
	for i := 0; i < len(fields); {
		end := i + 1
		for j := len(fields); j > end; j-- {
			if _, err := os.Stat(strings.Join(fields[i:j], " ")); err == nil {
				end = j
			}
		}
		names = append(names, strings.Trim(strings.Join(fields[i:end], " "), `"`))
		i = end
	}
	return names
}
