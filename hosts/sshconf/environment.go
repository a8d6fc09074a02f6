package sshconf

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// environment is who and where we are, as ssh's tokens need it.
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
		return nil, fmt.Errorf("who are we? %w", err)
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
