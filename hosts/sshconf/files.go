package sshconf

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
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
func (f *files) path(value string, where string) string {
	s, err := f.tokens.expand(f.env.tilde(f.env.variables(value)))
	if err == nil {
		s, err = filepath.Abs(s)
	}
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%w (%s)", err, where)
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
		t.IdentityFiles = []string{f.path(g.identity, "identity in the inventory")}
		t.Explicit = true
	}
	for _, it := range s.identity {
		t.Explicit = true
		if notNone(it) {
			t.IdentityFiles = add(t.IdentityFiles, f.path(it.value(), it.where()))
		}
	}
	for _, it := range s.certs {
		if notNone(it) {
			t.CertificateFiles = add(t.CertificateFiles, f.path(it.value(), it.where()))
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
	if it := s.first["identityagent"]; it != nil {
		switch value := it.value(); {
		case !notNone(it):
			return
		case value == variable:
		case value[0] == '$' && !strings.HasPrefix(value, "${"):
			variable = value[1:]
		default:
			t.IdentityAgent = f.path(value, it.where())
			return
		}
	}
	t.IdentityAgent, _ = f.env.getenv(variable)
}

// knownHosts lists the user's files, then the global ones.
func (f *files) knownHosts(t *Target, s *settings) {
	dir := filepath.Join(f.env.home, ".ssh")
	user := []string{filepath.Join(dir, "known_hosts"), filepath.Join(dir, "known_hosts2")}
	global := []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
	for _, l := range []struct {
		keyword string
		usual   []string
	}{{"userknownhostsfile", user}, {"globalknownhostsfile", global}} {
		it := s.first[l.keyword]
		if it == nil {
			t.KnownHosts = append(t.KnownHosts, l.usual...)
			continue
		}
		for _, name := range it.args {
			switch {
			case !strings.EqualFold(name, "none"):
				t.KnownHosts = add(t.KnownHosts, f.path(name, it.where()))
			case l.keyword == "userknownhostsfile": // else a new key would go into a global file
				t.KnownHosts = add(t.KnownHosts, "/dev/null")
			}
		}
	}
}
