package sshconf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Config answers what the ssh configuration says of a host. Answers are kept:
// a file that changes later is not read again for the same question. It may be
// used by several goroutines.
type Config struct {
	env    *environment
	source source

	once    sync.Once // for limits
	limits  string    // what the source cannot do, said with the first host; "": nothing
	openssh *openSSH  // source, when it is that
}

// source is where the settings of a host come from.
type source interface {
	settings(q query) (*settings, error)
	// forEverybody says that the system's own file sets a directive so for every
	// host: then it is the distribution's choice and not the user's.
	forEverybody(keyword, value string) bool
}

// query is one question to the configuration: what would be written after `ssh`.
type query struct {
	alias string
	user  string // "": not said
	port  int    // 0: not said
	jump  string // the value of -J; "": not said
}

// Load makes ready to read an ssh configuration file; path "" means
// ~/.ssh/config and then /etc/ssh/ssh_config, each if it exists. With a path
// the system's file is left aside, as `ssh -F` does. The path must be a file
// that can be read; what is in it is looked at when a host is resolved.
func Load(path string) (*Config, error) {
	env, err := thisUser()
	if err != nil {
		return nil, fmt.Errorf("ssh configuration: %w", err)
	}
	program, _ := exec.LookPath("ssh")
	return load(path, env, systemFile, program)
}

// systemFile is the configuration for everybody.
const systemFile = "/etc/ssh/ssh_config"

// load has the parts of Load that tests change; program "" means no ssh.
func load(path string, env *environment, system, program string) (*Config, error) {
	if path != "" {
		var err error
		if path, err = readable(path); err != nil {
			return nil, fmt.Errorf("ssh configuration: %w", err)
		}
	}
	c := &Config{env: env}
	if program != "" {
		c.openssh = newOpenSSH(program, path, system)
		c.source = c.openssh
		return c, nil
	}
	paths, everybody := []string{path}, ""
	if path == "" {
		paths, everybody = nil, system
		for _, p := range []string{filepath.Join(env.home, ".ssh", "config"), system} {
			if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
				paths = append(paths, p)
			}
		}
	}
	l, err := readLibrary(paths, everybody)
	if err != nil {
		return nil, fmt.Errorf("ssh configuration: %w", err)
	}
	c.source = l
	if len(paths) > 0 {
		c.limits = "there is no ssh program to ask, so the ssh configuration is read without its Match blocks; install the OpenSSH client"
	}
	return c, nil
}

// readable returns the absolute path, because ssh takes a file named "none" for no file
// at all. It refuses everything that cannot be read again and again: `ssh -F` accepts a
// directory, each question would drain a pipe, and ssh reads /dev/zero until memory is
// used up.
func readable(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	null, err := os.Stat(os.DevNull)
	if !info.Mode().IsRegular() && (err != nil || !os.SameFile(info, null)) {
		return "", fmt.Errorf("%s is not an ssh configuration file", path)
	}
	return filepath.Abs(path)
}
