package hosttest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// StartAgent runs an ssh-agent that ends with the test, adds the keys, and returns its
// socket. keys may contain options of ssh-add.
func StartAgent(t testing.TB, keys ...string) (socket string) {
	t.Helper()
	socket = filepath.Join(shortDir(t), "agent")
	// -D: in the foreground, so that it is our child.
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	cmd.Env = cleanEnv()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	gone, err := startTied(cmd)
	if err != nil {
		LeaveOut(t, "%v: apt-get install openssh-client", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // no effect on one that has been reaped
		<-gone
	})
	// It prints its environment once it listens.
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("ssh-agent did not start: %q, %v", line, err)
	}
	go io.Copy(io.Discard, out)
	if len(keys) == 0 {
		return socket
	}
	add := exec.Command("ssh-add", append([]string{"-q"}, keys...)...)
	add.Env = append(cleanEnv(), "SSH_AUTH_SOCK="+socket)
	if b, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, b)
	}
	return socket
}

// shortDir returns a directory with a name so short that a socket fits in it (108 bytes).
func shortDir(t testing.TB) string {
	t.Helper()
	if dir := t.TempDir(); len(dir) < 90 {
		return dir
	}
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// SetPassphrase sets the passphrase of a key file that has none.
func SetPassphrase(path, passphrase string) error {
	return keygen("-p", "-P", "", "-N", passphrase, "-f", path)
}

// ConvertToPEM rewrites a key file in the PEM form, keeping its passphrase.
func ConvertToPEM(path, passphrase string) error {
	err := keygen("-p", "-m", "PEM", "-P", passphrase, "-N", passphrase, "-f", path)
	if err == nil {
		if b, rerr := os.ReadFile(path); rerr != nil || !strings.Contains(string(b), "BEGIN RSA PRIVATE KEY") {
			err = errors.Join(rerr, fmt.Errorf("hosttest: %s: only an RSA key has the old form", path))
		}
	}
	return err
}
