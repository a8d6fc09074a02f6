package sshconf

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dcs-tui/hosts"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Match exec, final and the like are decided by ssh itself.
func TestMatch(t *testing.T) {
	c := config(t, `
Match host inside exec "test %h = inside"
  HostName in.lab
  User "bob"
  IdentityFile ~/.ssh/in
  UserKnownHostsFile /tmp/kh1 /tmp/kh2
  HostKeyAlgorithms ssh-ed25519
  ProxyJump gate
  BindAddress 10.0.0.1
Match host out* exec "false"
  User never
Match final host *.lab
  HostKeyAlias final
Host *
  Port 2222
`)
	got, w, err := c.ResolveAlias("inside")
	if err != nil {
		t.Fatal(err)
	}
	if got.HostName != "in.lab" || got.User != "bob" || got.Port != 2222 || !got.Explicit || len(got.IdentityFiles) != 1 || !strings.HasSuffix(got.IdentityFiles[0], "/.ssh/in") ||
		strings.Join(got.KnownHosts[:2], " ") != "/tmp/kh1 /tmp/kh2" || strings.Join(got.HostKeyAlgorithms, " ") != "ssh-ed25519" ||
		got.Ciphers != nil || len(got.Jumps) != 1 || got.HostKeyAlias != "final" {
		t.Errorf("%+v", got)
	}
	if len(w) != 1 || !strings.Contains(w[0], "BindAddress") {
		t.Errorf("warnings %v", w)
	}
	got, w, err = c.ResolveAlias("outside")
	if err != nil || len(w) > 0 || got.User != c.env.user || got.Explicit {
		t.Errorf("%+v, %v, %v", got, w, err)
	}
}

// A file that ssh refuses is an error in ssh's words, with file and line, the
// same for every host.
func TestRefusedFile(t *testing.T) {
	c := config(t, "Match final all\nHost a\n  Bogus directive\n  Port 0\n")
	var said []string
	for _, alias := range []string{"a", "b"} {
		_, w, err := c.ResolveAlias(alias)
		if err == nil || len(w) > 0 {
			t.Fatalf("%s: %v, %v", alias, w, err)
		}
		said = append(said, err.Error())
	}
	if said[0] != said[1] || !strings.HasPrefix(said[0], "ssh refuses the configuration: ") || strings.Contains(said[0], "terminating") ||
		strings.Count(said[0], "line 3: ") != 1 || strings.Count(said[0], "line 4: ") != 1 || !strings.Contains(said[0], "config") {
		t.Errorf("%q", said)
	}
}

// Without an ssh program a host is refused, and the error says what to install.
func TestWithoutSSH(t *testing.T) {
	c, err := load("", lab(t), "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.ResolveAlias("a"); err == nil || !strings.Contains(err.Error(), "install the OpenSSH client") {
		t.Errorf("got %v, want what to install", err)
	}
}

// A path that is not a file is refused before ssh is asked, and so is a device without
// an end.
func TestUnreadableFiles(t *testing.T) {
	for file, want := range map[string]string{
		t.TempDir():         "is not an ssh configuration file",
		"/dev/zero":         "is not an ssh configuration file",
		"/nonexistent/file": "no such file",
	} {
		if _, err := load(file, lab(t), "", "/nonexistent/ssh"); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// fakeSSH answers as the script says; $LOG gets a line with the arguments of each call.
func fakeSSH(t *testing.T, path, script string) (*Config, func() []string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	program := write(t, filepath.Join(dir, "ssh"), "#!/bin/sh\necho \"$*\" >>"+log+"\n"+script+"\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := load(path, lab(t), "/etc/system", program)
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []string {
		data, _ := os.ReadFile(log)
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

// What the inventory says reaches ssh as its own options; without a file it is
// ssh that finds the usual ones.
func TestArguments(t *testing.T) {
	for path, f := range map[string]string{"": "", "/dev/null": "-F /dev/null "} {
		c, log := fakeSSH(t, path, "echo hostname x")
		h := &hosts.Host{Name: "m", User: "carol", Port: 2222, Identity: "/k", Jump: []string{"me@gw:2", "ssh://[fe80::1]"}}
		got, w, err := c.Resolve(h, "melon")
		if err != nil || len(w) > 0 || len(got.Jumps) != 2 || strings.Join(got.IdentityFiles, " ") != "/k" || !got.Explicit {
			t.Fatalf("%+v, %v, %v", got, w, err)
		}
		if _, _, err := c.Resolve(&hosts.Host{Name: "n", Jump: []string{}}, "other"); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"-G -T -F /dev/null -- dcs-tui.invalid",
			"-G -T " + f + "-l carol -p 2222 -J me@gw:2,[fe80::1] -- melon",
			"-G -T " + f + "-l me -p 2 -- gw",
			"-G -T " + f + "-J me@gw:2 -- fe80::1",
			"-G -T " + f + "-J none -- other",
		}
		if is := strings.Join(log(), "\n"); is != strings.Join(want, "\n") {
			t.Errorf("asked\n%s\nwant\n%s", is, strings.Join(want, "\n"))
		}
	}
}

// Hosts resolved together ask once for the same thing.
func TestAskedOnce(t *testing.T) {
	c, log := fakeSSH(t, "", `for name; do :; done; echo "hostname $name.lab"; echo "proxyjump none"`)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			got, _, err := c.ResolveAlias(fmt.Sprint("h", i%4))
			if err != nil || got.HostName != fmt.Sprintf("h%d.lab", i%4) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	if n := len(log()); n != 5 {
		t.Errorf("asked %d times for 4 hosts and the defaults:\n%s", n, strings.Join(log(), "\n"))
	}
}

// GSSAPIAuthentication that the system's file gives to everybody, as Debian's
// does, is no wish of the user's.
func TestSystemWideGSSAPI(t *testing.T) {
	const script = `case "$*" in *%s*) echo "gssapiauthentication yes";; esac; echo hostname x`
	for where, want := range map[string]int{"melon|*-F?/etc/system": 0, "melon": 1} {
		c, _ := fakeSSH(t, "", fmt.Sprintf(script, where))
		if _, w, err := c.ResolveAlias("melon"); err != nil || len(w) != want {
			t.Errorf("%s: %v, %v", where, w, err)
		}
	}
}

// A keyword of a later OpenSSH that is set and that we do not know is named.
func TestUnknownKeyword(t *testing.T) {
	c, _ := fakeSSH(t, "", `echo hostname x; echo newthing off; case "$*" in *melon) echo laterthing on;; esac`)
	if _, w, err := c.ResolveAlias("melon"); err != nil || len(w) != 1 || !strings.Contains(w[0], `"laterthing" in the ssh configuration is unknown`) {
		t.Errorf("%v, %v", w, err)
	}
}

// An ssh that hangs ends in an error, together with what its Match exec started.
func TestSSHThatHangs(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	alive, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	c, _ := fakeSSH(t, "", "exec 3>"+fifo+"; sleep 1000 & sleep 1000")
	c.ssh.timeout = 200 * time.Millisecond
	if _, _, err := c.Resolve(named("m"), "m"); err == nil || !strings.Contains(err.Error(), "did not answer within 200ms") {
		t.Error(err)
	}
	// The pipe ends when the last of them does; the deadline is for the failure only.
	if err := alive.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("something still runs: %v", err)
	}
}

// An ssh that is none, or fails, ends in an error, and is asked again the next
// time unless it gave a reason.
func TestSSHThatFails(t *testing.T) {
	for script, want := range map[string]string{
		"echo hello":                         "is it OpenSSH 6.8 or later?",
		"exit 3":                             "exit status 3",
		"echo 'no such thing' >&2; exit 255": "m: ssh says: no such thing",
	} {
		c, log := fakeSSH(t, "", script)
		for range 2 {
			if _, _, err := c.Resolve(named("m"), "m"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", script, err)
			}
		}
		if n := len(log()); (n == 1) != strings.Contains(want, "says") {
			t.Errorf("%q: asked %d times", script, n)
		}
	}
	c, err := load("", lab(t), "", "/nonexistent/ssh")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.ResolveAlias("a"); err == nil || !strings.Contains(err.Error(), "/nonexistent/ssh") {
		t.Error(err)
	}
}

// Names with blanks in a list that ssh prints without quotes.
func TestKnownHostsWithBlanks(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "my known hosts"), "")
	c := config(t, "UserKnownHostsFile /a \""+file+"\" /b\n")
	got, _, err := c.ResolveAlias("x")
	if err != nil || strings.Join(got.KnownHosts[:3], "|") != "/a|"+file+"|/b" {
		t.Errorf("%+v, %v", got, err)
	}
}
