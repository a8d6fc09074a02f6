package hosttest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"dcs-tui/hosts"
)

// keygen runs ssh-keygen without output.
func keygen(args ...string) error {
	cmd := exec.Command("ssh-keygen", append([]string{"-q"}, args...)...)
	cmd.Env = cleanEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hosttest: ssh-keygen %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// cleanEnv returns the environment of sshd and its tools. It does not depend on the variables
// of whoever runs the tests.
func cleanEnv() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent",
		"LC_ALL=C"}
}

// NewKey creates a key pair (ed25519, rsa or ecdsa) in path and path.pub.
func NewKey(path, kind, passphrase string) error {
	// The key is used in tests only: a small one is made and unlocked fast.
	args := []string{"-t", kind, "-a", "1", "-N", passphrase, "-C", "hosttest", "-f", path}
	if kind == "rsa" {
		args = append(args, "-b", "2048")
	}
	return keygen(args...)
}

// Sign creates path-cert.pub. It contains the public key path.pub, signed by ca, for a host or for
// a user, and is valid for the names.
func Sign(ca, path string, host bool, names ...string) error {
	args := []string{"-s", ca, "-I", "hosttest", "-n", strings.Join(names, ",")}
	if host {
		args = append(args, "-h")
	}
	return keygen(append(args, path+".pub")...)
}

// hostKeys returns the files of the server's private keys.
func (s *SSHD) hostKeys() []string {
	kinds := []string{"ed25519"}
	if s.opts.RSA {
		kinds = append(kinds, "rsa")
	}
	if s.opts.ECDSA {
		kinds = append(kinds, "ecdsa")
	}
	for i, k := range kinds {
		kinds[i] = filepath.Join(s.Dir, "host_"+k)
	}
	return kinds
}

// HostKey returns the file of the server's ed25519 key. The public key is in .pub.
func (s *SSHD) HostKey() string { return filepath.Join(s.Dir, "host_ed25519") }

// HostCA returns the file of the key that signed the host keys (Options.HostCA).
func (s *SSHD) HostCA() string { return filepath.Join(s.Dir, "host_ca") }

// UserCA returns the file of a key whose certificates the server accepts for its user.
func (s *SSHD) UserCA() string { return filepath.Join(s.Dir, "user_ca") }

func (s *SSHD) writeKeys() error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("hosttest: %w", err)
	}
	for _, k := range s.hostKeys() {
		if err := NewKey(k, strings.TrimPrefix(filepath.Base(k), "host_"), ""); err != nil {
			return err
		}
	}
	if err := NewKey(s.UserCA(), "ed25519", ""); err != nil {
		return err
	}
	if s.opts.HostCA {
		if err := NewKey(s.HostCA(), "ed25519", ""); err != nil {
			return err
		}
		for _, k := range s.hostKeys() {
			if err := Sign(s.HostCA(), k, true, "127.0.0.1", "localhost"); err != nil {
				return err
			}
		}
	}
	if w := s.opts.With; w != nil {
		s.Identity, s.KnownHosts, s.ConfigFile = w.Identity, w.KnownHosts, w.ConfigFile
		return nil
	}
	s.Identity = filepath.Join(s.Dir, "id_ed25519")
	s.KnownHosts = filepath.Join(s.Dir, "known_hosts")
	s.ConfigFile = filepath.Join(s.Dir, "ssh_config")
	return NewKey(s.Identity, "ed25519", s.opts.Passphrase)
}

// writeFiles writes the files that depend on the port.
func (s *SSHD) writeFiles() error {
	wrapper, err := s.writeShell()
	if err != nil {
		return err
	}
	pub, err := os.ReadFile(s.Identity + ".pub")
	if err != nil {
		return fmt.Errorf("hosttest: %w", err)
	}
	var c strings.Builder
	put := func(format string, a ...any) { fmt.Fprintf(&c, format+"\n", a...) }
	for _, l := range s.opts.Config {
		put("%s", l) // first, because sshd uses the first value of each option
	}
	put("ListenAddress 127.0.0.1:%d", s.Port)
	for _, k := range s.hostKeys() {
		put("HostKey %q", k)
		if s.opts.HostCA {
			put("HostCertificate %q", k+"-cert.pub")
		}
	}
	put("PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPrintMotd no\nLogLevel VERBOSE")
	put("PasswordAuthentication no\nKbdInteractiveAuthentication no")
	put("AuthorizedKeysFile %q", s.AuthorizedKeys())
	put("TrustedUserCAKeys %q", s.UserCA()+".pub")
	if wrapper != "" {
		put("ForceCommand %s", hosts.ShellQuote(wrapper))
	}
	// SHLVL keeps a user's bash from reading its rc files before our shell starts.
	env := map[string]string{"HOME": s.Home(), "SHLVL": "2"}
	maps.Copy(env, s.opts.Env)
	var words []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		words = append(words, fmt.Sprintf("%q", k+"="+env[k]))
	}
	put("SetEnv %s", strings.Join(words, " "))
	config := filepath.Join(s.Dir, "sshd_config")
	for name, text := range map[string]string{s.AuthorizedKeys(): string(pub), config: c.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("hosttest: %w", err)
		}
	}
	return s.noPenalties(config)
}

// noPenalties switches off the penalties of OpenSSH 9.8 and later for failed logins, because
// all failures of the tests come from one address. Older servers do not know the option.
func (s *SSHD) noPenalties(config string) error {
	cmd := exec.Command(s.sshd, "-t", "-f", config, "-o", "PerSourcePenalties=no")
	cmd.Env = cleanEnv()
	if out, _ := cmd.CombinedOutput(); strings.Contains(string(out), "Bad configuration option") {
		return nil
	}
	return appendFile(config, "PerSourcePenalties no\n")
}

// AuthorizedKeys returns the file of the keys that may log in.
func (s *SSHD) AuthorizedKeys() string { return filepath.Join(s.Dir, "authorized_keys") }

// announce adds this server to the client's files.
func (s *SSHD) announce() error {
	keys := s.hostKeys()
	mark := ""
	if s.opts.HostCA {
		keys, mark = []string{s.HostCA()}, "@cert-authority "
	}
	var known strings.Builder
	for _, k := range keys {
		pub, err := os.ReadFile(k + ".pub")
		if err != nil {
			return fmt.Errorf("hosttest: %w", err)
		}
		fmt.Fprintf(&known, "%s[127.0.0.1]:%d,[localhost]:%d %s", mark, s.Port, s.Port, pub)
	}
	if err := appendFile(s.KnownHosts, known.String()); err != nil {
		return err
	}
	if s.opts.With != nil {
		return nil
	}
	return appendFile(s.ConfigFile, fmt.Sprintf(`Host *
	User %s
	IdentityFile %s
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile %s
	GlobalKnownHostsFile none
	StrictHostKeyChecking yes
`, s.User, s.Identity, s.KnownHosts))
}

func appendFile(name, text string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("hosttest: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return fmt.Errorf("hosttest: %w", err)
	}
	return f.Close()
}

// Home returns the home directory of commands. It contains only the rc files for Options.Noise. The
// rc files of whoever runs the tests would cost time, print text, and leave locks behind when a
// test kills them.
func (s *SSHD) Home() string { return filepath.Join(s.Dir, "home") }

// writeShell creates Home and the program that replaces the login shell. It returns the path of the
// program, or "" for the user's own shell. sshd runs that program instead of every command, which
// is in SSH_ORIGINAL_COMMAND. The program runs the shell as sshd would.
func (s *SSHD) writeShell() (string, error) {
	if err := os.MkdirAll(s.Home(), 0o700); err != nil {
		return "", fmt.Errorf("hosttest: %w", err)
	}
	if s.opts.Shell == "" && s.opts.Noise == "" {
		return "", nil
	}
	shell := cmp.Or(s.opts.Shell, "/bin/sh")
	noise := filepath.Join(s.Dir, "noise")
	show := "cat " + hosts.ShellQuote(noise) + "\n"
	files := map[string]string{noise: s.opts.Noise}
	begin := ""
	switch filepath.Base(shell) {
	case "bash":
		// It reads .bashrc under sshd only when it is the first shell.
		files[filepath.Join(s.Home(), ".bashrc")], begin = show, "unset SHLVL\n"
	case "tcsh", "csh":
		files[filepath.Join(s.Home(), ".cshrc")] = show
	default:
		begin = show
	}
	wrapper := filepath.Join(s.Dir, "shell")
	files[wrapper] = fmt.Sprintf("#!/bin/sh\n%sexec %s -c \"$SSH_ORIGINAL_COMMAND\"\n", begin, hosts.ShellQuote(shell))
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			return "", fmt.Errorf("hosttest: %w", err)
		}
	}
	return wrapper, nil
}
