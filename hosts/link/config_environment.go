package link

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// environment holds the user and host names that ssh's tokens need.
type environment struct {
	home, user, uid string
	hostname        string
	getenv          func(string) (string, bool)
	lookup          func(user string) (home string, err error)
}

// thisUser asks the system. Like OpenSSH it takes the home directory from the
// user database, and $HOME only when the user is not found there.
func thisUser() (*environment, error) {
	u, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("find the name of the current user: %w", err)
	}
	e := &environment{home: u.HomeDir, user: u.Username, uid: u.Uid, getenv: os.LookupEnv}
	e.hostname, _ = os.Hostname() // %l and %L then stay empty
	e.lookup = func(name string) (string, error) {
		other, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		return other.HomeDir, nil
	}
	return e, nil
}

// tilde expands ~/… and ~user/…; a user who is not found stays as written.
func (e *environment) tilde(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(e.home, path[1:])
	}
	if strings.HasPrefix(path, "~") {
		name, rest, _ := strings.Cut(path[1:], "/")
		if home, err := e.lookup(name); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)
})

// variables expands ${NAME}; one that is not set stays as written, and then the
// file is simply not there.
func (e *environment) variables(s string) string {
	return variable().ReplaceAllStringFunc(s, func(m string) string {
		if v, ok := e.getenv(m[2 : len(m)-1]); ok {
			return v
		}
		return m
	})
}

// tokens are the values of ssh_config's %-tokens for one host.
type tokens map[byte]string

// expand replaces %-tokens; an unknown one is an error, as in OpenSSH.
func (t tokens) expand(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", fmt.Errorf("%q ends in %%", s)
		}
		if s[i] == '%' {
			b.WriteByte('%')
		} else if v, ok := t[s[i]]; ok {
			b.WriteString(v)
		} else {
			return "", fmt.Errorf("the token %%%c in %q is not known here", s[i], s)
		}
	}
	return b.String(), nil
}

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

// maxInclude is how deep ssh lets files include files.
const maxInclude = 16

// SSHAliases returns the names of the Host lines of an ssh configuration file, in their order
// and without patterns; path "" means ~/.ssh/config. Files that it includes are read, too.
// The error is that of the file itself: what cannot be read of the others is left out, as
// ssh does.
func SSHAliases(path string) ([]string, error) {
	env, err := thisUser()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(env.home, ".ssh")
	if path == "" {
		path = filepath.Join(dir, "config")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var names []string
	var read func(data []byte, depth int)
	read = func(data []byte, depth int) {
		for line := range bytes.Lines(data) {
			words := configWords(string(line))
			if len(words) < 2 {
				continue
			}
			switch strings.ToLower(words[0]) {
			case "host":
				for _, name := range words[1:] {
					if !strings.ContainsAny(name, "*?!") && !slices.Contains(names, name) {
						names = append(names, name)
					}
				}
			case "include":
				for _, pattern := range words[1:] {
					if pattern = env.tilde(pattern); !filepath.IsAbs(pattern) {
						pattern = filepath.Join(dir, pattern)
					}
					files, _ := filepath.Glob(pattern) // a bad pattern fits no file
					for _, file := range files {
						if data, err := os.ReadFile(file); err == nil && depth < maxInclude {
							read(data, depth+1)
						}
					}
				}
			}
		}
	}
	read(data, 0)
	return names, nil
}

// configWords splits a line of an ssh configuration: a keyword, blanks or one "=", and words
// that may be quoted. # begins a comment.
func configWords(line string) []string {
	line = strings.TrimSpace(line)
	end := strings.IndexAny(line, " \t=")
	if end < 0 || line[0] == '#' {
		return nil
	}
	words := []string{line[:end]}
	line = strings.TrimPrefix(strings.TrimLeft(line[end:], " \t"), "=")
	for line = strings.TrimLeft(line, " \t"); line != "" && line[0] != '#'; line = strings.TrimLeft(line, " \t") {
		word, rest := line, ""
		if line[0] == '"' {
			word, rest, _ = strings.Cut(line[1:], `"`)
		} else if end := strings.IndexAny(line, " \t"); end >= 0 {
			word, rest = line[:end], line[end:]
		}
		words, line = append(words, word), rest
	}
	return words
}
