package link

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dcs-tui/internal/account"
)

// environment holds what ssh's tokens need to know of this user and machine.
type environment struct {
	home, user, uid string
	hostname        string
	getenv          func(string) (string, bool)
	environ         func() []string // as os.Environ
}

// currentEnvironment returns the environment of this process.
func currentEnvironment() *environment {
	u := account.Current()
	e := &environment{home: u.Home, user: u.Name, uid: strconv.Itoa(u.UID), getenv: os.LookupEnv, environ: os.Environ}
	e.hostname, _ = os.Hostname() // on an error %l and %L are empty
	return e
}

// expandTilde expands ~/… and ~user/…; the name of an unknown user stays as written.
func (e *environment) expandTilde(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(e.home, path[1:])
	}
	if strings.HasPrefix(path, "~") {
		name, rest, _ := strings.Cut(path[1:], "/")
		if other, found := account.Find(name); found {
			return filepath.Join(other.Home, rest)
		}
	}
	return path
}

var variablePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)
})

var tokenPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)%.?`) })

// expandVariables expands ${NAME}. A variable that is not set stays as written, so that the file
// does not exist.
func (e *environment) expandVariables(s string) string {
	return variablePattern().ReplaceAllStringFunc(s, func(m string) string {
		if v, ok := e.getenv(m[2 : len(m)-1]); ok {
			return v
		}
		return m
	})
}

// tokens maps ssh_config's %-tokens to their values for one host.
type tokens map[string]string

// tokens returns the tokens of ssh_config(5), section TOKENS. HostName, Port, User, and
// HostKeyAlias of the target must be set.
func (e *environment) tokens(t *Target) tokens {
	short, _, _ := strings.Cut(e.hostname, ".")
	port := strconv.Itoa(t.Port)
	sum := sha1.Sum([]byte(e.hostname + t.HostName + port + t.User)) // %C is a name, not a secret
	return tokens{
		"%C": hex.EncodeToString(sum[:]),
		"%d": e.home,
		"%h": t.HostName,
		"%i": e.uid,
		"%k": cmp.Or(t.HostKeyAlias, t.Alias),
		"%L": short,
		"%l": e.hostname,
		"%n": t.Alias,
		"%p": port,
		"%r": t.User,
		"%u": e.user,
		"%j": "",
		"%%": "%",
	}
}

// expand replaces %-tokens. An unknown one is an error, as in OpenSSH.
func (t tokens) expand(s string) (string, error) {
	var err error
	expanded := tokenPattern().ReplaceAllStringFunc(s, func(m string) string {
		v, known := t[m]
		switch {
		case known || err != nil:
		case m == "%":
			err = fmt.Errorf("%q ends in %%", s)
		default:
			err = fmt.Errorf("the token %s in %q is not known here", m, s)
		}
		return v
	})
	return expanded, err
}

// fileSettings fills in the fields of a target that name files.
type fileSettings struct {
	env    *environment
	tokens tokens
	err    error // the first
}

// expandPath expands the value of a directive to an absolute path. A relative one is below
// the current directory, as for ssh.
func (f *fileSettings) expandPath(value, directive string) string {
	s, err := f.tokens.expand(f.env.expandTilde(f.env.expandVariables(value)))
	if err == nil {
		s, err = filepath.Abs(s)
	}
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", directive, err)
	}
	return s
}

// appendNew appends those of more that are not in the list.
func appendNew(list []string, more ...string) []string {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// identities sets the key files: that of the inventory, then those of ssh_config, or the default
// ones if there are none. `IdentityFile none` alone means no file at all.
func (f *fileSettings) identities(t *Target, s settings, ofInventory string) {
	if ofInventory != "" {
		t.IdentityFiles = []string{f.expandPath(ofInventory, "identity of the inventory")}
		t.Explicit = true
	}
	for _, value := range s["identityfile"] {
		t.Explicit = true
		if !isNone(value) {
			t.IdentityFiles = appendNew(t.IdentityFiles, f.expandPath(value, "IdentityFile"))
		}
	}
	for _, value := range s["certificatefile"] {
		if !isNone(value) {
			t.CertificateFiles = appendNew(t.CertificateFiles, f.expandPath(value, "CertificateFile"))
		}
	}
	if !t.Explicit {
		for _, name := range []string{"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"} {
			t.IdentityFiles = append(t.IdentityFiles, filepath.Join(f.env.home, ".ssh", name))
		}
	}
}

// agent sets the agent's socket.
func (f *fileSettings) agent(t *Target, s settings) {
	variable := "SSH_AUTH_SOCK"
	switch value := s.first("identityagent"); {
	case isNone(value):
		return
	case value == "", value == variable:
	case value[0] == '$' && !strings.HasPrefix(value, "${"):
		variable = value[1:]
	default:
		t.IdentityAgent = f.expandPath(value, "IdentityAgent")
		return
	}
	t.IdentityAgent, _ = f.env.getenv(variable)
}

// knownHosts sets the known_hosts files: the user's files, and then the global ones.
func (f *fileSettings) knownHosts(t *Target, s settings) {
	dir := filepath.Join(f.env.home, ".ssh")
	for _, l := range []struct {
		directive string
		usual     []string
	}{
		{"UserKnownHostsFile", []string{filepath.Join(dir, "known_hosts"), filepath.Join(dir, "known_hosts2")}},
		{"GlobalKnownHostsFile", []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}},
	} {
		value := s.first(strings.ToLower(l.directive))
		if value == "" {
			t.KnownHosts = append(t.KnownHosts, l.usual...)
			continue
		}
		for _, name := range splitFileNames(value) {
			_, err := f.tokens.expand(name)
			switch {
			// Most versions of ssh print it expanded, so the % is part of the name.
			case err != nil && filepath.IsAbs(name):
				t.KnownHosts = appendNew(t.KnownHosts, name)
			case !isNone(name):
				t.KnownHosts = appendNew(t.KnownHosts, f.expandPath(name, l.directive))
			// A new key must not be added to a global file.
			case l.directive == "UserKnownHostsFile":
				t.KnownHosts = appendNew(t.KnownHosts, os.DevNull)
			}
		}
	}
}

// splitFileNames splits a list of files, which `ssh -G` prints without quotes. The longest
// sequence of words that names an existing file is one name.
func splitFileNames(value string) []string {
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
