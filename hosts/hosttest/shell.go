package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeShell makes the program that stands for the login shell, "" when the
// user's own is wanted. sshd runs it in the place of every command, with the
// command in SSH_ORIGINAL_COMMAND; it runs the shell as sshd would have.
//
// HOME points at our own rc files while the shell starts; each sets it back.
// SHLVL is removed because bash reads .bashrc under sshd only when it is the
// first shell.
func (s *SSHD) writeShell() (string, error) {
	if s.opts.Shell == "" && s.opts.Noise == "" {
		return "", nil
	}
	shell := s.opts.Shell
	if shell == "" {
		shell = "/bin/sh"
	}
	rc := filepath.Join(s.Dir, "home")
	noise := filepath.Join(s.Dir, "noise")
	files := map[string]string{
		noise:                         s.opts.Noise,
		filepath.Join(rc, ".bashrc"):  fmt.Sprintf("cat %s\nexport HOME=$DCS_TEST_HOME\n", quote(noise)),
		filepath.Join(rc, ".tcshrc"):  fmt.Sprintf("cat %s\nsetenv HOME $DCS_TEST_HOME\n", quote(noise)),
		filepath.Join(s.Dir, "shell"): wrapperText(shell, rc, noise),
	}
	if err := os.MkdirAll(rc, 0o700); err != nil {
		return "", fmt.Errorf("hosttest: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			return "", fmt.Errorf("hosttest: %w", err)
		}
	}
	return filepath.Join(s.Dir, "shell"), nil
}

func wrapperText(shell, rc, noise string) string {
	prepare := "cat " + quote(noise)
	switch filepath.Base(shell) {
	case "bash", "tcsh", "csh":
		prepare = "DCS_TEST_HOME=$HOME HOME=" + quote(rc) + "\nexport DCS_TEST_HOME HOME\nunset SHLVL"
	}
	return fmt.Sprintf("#!/bin/sh\n%s\nexec %s -c \"$SSH_ORIGINAL_COMMAND\"\n", prepare, quote(shell))
}

// quote makes one word of a shell's (sh or csh).
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
