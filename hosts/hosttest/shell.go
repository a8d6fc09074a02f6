package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Home is the home directory that commands see: an empty one, with rc files of
// ours where they are wanted. The rc files of whoever runs the tests would cost
// time, print things, and leave locks behind when a test kills them.
func (s *SSHD) Home() string { return filepath.Join(s.Dir, "home") }

// writeShell makes Home, and the program that stands for the login shell, "" when
// the user's own is wanted. sshd runs that program in the place of every command,
// with the command in SSH_ORIGINAL_COMMAND; it runs the shell as sshd would have.
func (s *SSHD) writeShell() (string, error) {
	if err := os.MkdirAll(s.Home(), 0o700); err != nil {
		return "", fmt.Errorf("hosttest: %w", err)
	}
	if s.opts.Shell == "" && s.opts.Noise == "" {
		return "", nil
	}
	shell := s.opts.Shell
	if shell == "" {
		shell = "/bin/sh"
	}
	noise := filepath.Join(s.Dir, "noise")
	show := "cat " + quote(noise) + "\n"
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
	files[wrapper] = fmt.Sprintf("#!/bin/sh\n%sexec %s -c \"$SSH_ORIGINAL_COMMAND\"\n", begin, quote(shell))
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			return "", fmt.Errorf("hosttest: %w", err)
		}
	}
	return wrapper, nil
}

// quote makes one word of a shell's (sh or csh).
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
