package sshconf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Config resolves hosts by the user's ssh configuration. Answers are kept: a file that
// changes later is not read again for the same question. It is safe for concurrent use.
type Config struct {
	env *environment
	ssh *openSSH
}

// query is one question to the configuration: what would be written after `ssh`.
type query struct {
	alias string
	user  string // "": not said
	port  int    // 0: not said
	jump  string // the value of -J; "": not said
}

// Load returns the configuration in the file at path; "" means ~/.ssh/config and
// /etc/ssh/ssh_config, each if it exists. With a path the system's file is ignored,
// as with `ssh -F`. The path must be a readable file. Its content is read by ssh when a
// host is resolved.
func Load(path string) (*Config, error) {
	env, err := thisUser()
	if err != nil {
		return nil, fmt.Errorf("ssh configuration: %w", err)
	}
	program, _ := exec.LookPath("ssh") // its absence matters only once a host is resolved
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
	return &Config{env: env, ssh: newOpenSSH(program, path, system)}, nil
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
