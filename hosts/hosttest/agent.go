package hosttest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// ChangePassphrase changes the passphrase of a key file. options are further options of
// ssh-keygen, such as -m PEM.
func ChangePassphrase(path, old, now string, options ...string) error {
	return keygen(append(options, "-a", "1", "-p", "-P", old, "-N", now, "-f", path)...)
}
