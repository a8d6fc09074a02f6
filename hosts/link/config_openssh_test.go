package link

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
)

// needSSH skips the test with a clear message if there is no ssh program.
func needSSH(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("LEFT OUT: no ssh program to compare with; install openssh-client")
	}
}

// TestRefusedFile checks that a file that ssh refuses is an error with ssh's own message, with file
// and line, and that the error is the same for every host.
func TestRefusedFile(t *testing.T) {
	c := config(t, "Match final all\nHost a\n  Bogus directive\n  Port 0\n")
	var said []string
	for _, alias := range []string{"a", "b"} {
		_, w, err := resolveAlias(c, alias)
		if err == nil || len(w) > 0 {
			t.Fatalf("%s: %v, %v", alias, w, err)
		}
		said = append(said, err.Error())
	}
	if said[0] != said[1] || !strings.HasPrefix(said[0], "ssh says: ") || strings.Contains(said[0], "terminating") ||
		strings.Count(said[0], "line 3: ") != 1 || strings.Count(said[0], "line 4: ") != 1 || !strings.Contains(said[0], "config") {
		t.Errorf("%q", said)
	}
}

// TestWithoutSSH checks that, without an ssh program, a host is refused, and that the error says
// what to install.
func TestWithoutSSH(t *testing.T) {
	c, err := newSSHConfig("", configLab(t), "")
	must(t, err)
	refuses(t, c, named("m"), "a", "install the OpenSSH client")
}

// TestUnreadableFiles checks that a path that is not a file, such as a device without an end, is
// refused before ssh is called.
func TestUnreadableFiles(t *testing.T) {
	for file, want := range map[string]string{
		t.TempDir():         "is not an ssh configuration file",
		"/dev/zero":         "is not an ssh configuration file",
		"/nonexistent/file": "no such file",
	} {
		if _, err := newSSHConfig(file, configLab(t), "/nonexistent/ssh"); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// fakeSSH returns a configuration whose ssh program is a stand-in that runs script, and a function
// that returns the arguments of each call of it.
func fakeSSH(t *testing.T, path, script string) (*SSHConfig, func() []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	ssh := program(t, "ssh", "#!/bin/sh\necho \"$*\" >>"+log+"\n"+script+"\n")
	c, err := newSSHConfig(path, configLab(t), ssh)
	must(t, err)
	return c, func() []string {
		data, _ := os.ReadFile(log)
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

// TestArguments checks that settings of the inventory reach ssh as its own options. If no
// configuration file is named, ssh itself finds the usual files.
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

// TestAskedOnce checks that hosts that are resolved at the same time share equal calls of ssh.
func TestAskedOnce(t *testing.T) {
	c, log := fakeSSH(t, "", `for name; do :; done; echo "hostname $name.lab"; echo "proxyjump none"`)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			got, _, err := resolveAlias(c, fmt.Sprint("h", i%4))
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

// TestUnknownKeyword checks that a keyword of a later OpenSSH that is set and unknown to us is
// reported.
func TestUnknownKeyword(t *testing.T) {
	c, _ := fakeSSH(t, "", `echo hostname x; echo newthing off; case "$*" in *melon) echo laterthing on;; esac`)
	if _, w, err := resolveAlias(c, "melon"); err != nil || len(w) != 1 || !strings.Contains(w[0], `"laterthing" in the ssh configuration is unknown`) {
		t.Errorf("%v, %v", w, err)
	}
}

// TestSSHThatHangs checks that an ssh that hangs is ended together with the commands of its Match
// exec, and that the result is an error.
func TestSSHThatHangs(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	alive, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer alive.Close()
	c, _ := fakeSSH(t, "", "exec 3>"+fifo+"; sleep 1000 & sleep 1000")
	c.timeout = 200 * time.Millisecond
	refuses(t, c, named("m"), "m", "did not answer within 200ms")
	// The pipe ends when the last of these processes ends. The deadline only ends a failing test.
	must(t, alive.SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("something still runs: %v", err)
	}
}

// TestSSHThatFails checks that a program that is not ssh, or an ssh that fails, is an error. It is
// called again the next time, unless it gave a reason.
func TestSSHThatFails(t *testing.T) {
	for script, want := range map[string]string{
		"echo hello":                         "is it OpenSSH 6.8 or later?",
		"exit 3":                             "exit status 3",
		"echo 'no such thing' >&2; exit 255": "ssh says: no such thing",
	} {
		c, log := fakeSSH(t, "", script)
		for range 2 {
			refuses(t, c, named("m"), "m", want)
		}
		if n := len(log()); (n == 1) != strings.Contains(want, "says") {
			t.Errorf("%q: asked %d times", script, n)
		}
	}
	c, err := newSSHConfig("", configLab(t), "/nonexistent/ssh")
	must(t, err)
	refuses(t, c, named("m"), "a", "/nonexistent/ssh")
}
