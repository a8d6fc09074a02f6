package hosttest

import (
	"bytes"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// ssh runs OpenSSH's own client against the server, so that the tests of the fixture do not depend
// on our client.
func ssh(t *testing.T, s *SSHD, command string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		LeaveOut(t, "ssh is not installed: apt-get install openssh-client")
	}
	cmd := exec.Command("ssh", "-F", s.ConfigFile, "-p", strconv.Itoa(s.Port), "127.0.0.1", command)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Logf("ssh: %v: %s", err, errs.String())
	}
	return string(out), err
}

// TestServerWorksUnderEachShell checks that the fixture is a working server under each login shell,
// with noise where the shell has an rc file.
func TestServerWorksUnderEachShell(t *testing.T) {
	for _, shell := range []string{"", "/bin/bash", "/bin/dash", "/bin/tcsh"} {
		t.Run(strings.TrimPrefix(shell, "/bin/"), func(t *testing.T) {
			noise := ""
			if shell != "" {
				noise = "Welcome to melon4!\n"
			}
			s := StartSSHD(t, Options{Shell: shell, Noise: noise, Env: map[string]string{"FRUIT": "mel on"}})
			out, err := ssh(t, s, `/bin/sh -c 'echo "$FRUIT" "$HOME"'`)
			if err != nil {
				t.Fatal(err)
			}
			if want := noise + "mel on " + s.Home() + "\n"; out != want {
				t.Errorf("got %q, want %q", out, want)
			}
		})
	}
}

// TestServerComesBackWithItsKeys checks that a stopped server refuses connections and comes back on
// the same port with the same keys.
func TestServerComesBackWithItsKeys(t *testing.T) {
	s := StartSSHD(t, Options{RSA: true, ECDSA: true})
	for range 2 {
		if out, err := ssh(t, s, "echo here"); err != nil || out != "here\n" {
			t.Fatalf("ssh: got %q, %v; want \"here\"", out, err)
		}
		s.Stop()
		s.Stop()
		if c, err := net.Dial("tcp", s.Addr()); err == nil {
			c.Close()
			t.Fatal("a stopped server accepts connections")
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTwoServersMayShareAClient checks that two servers may share one client, and that host
// certificates work.
func TestTwoServersMayShareAClient(t *testing.T) {
	a := StartSSHD(t, Options{})
	b := StartSSHD(t, Options{With: a, HostCA: true})
	for _, s := range []*SSHD{a, b} {
		if out, err := ssh(t, s, "echo here"); err != nil || out != "here\n" {
			t.Errorf("ssh: got %q, %v; want \"here\"", out, err)
		}
	}
}

// TestStopEndsCommands checks that Stop leaves no process of the server, running commands included.
func TestStopEndsCommands(t *testing.T) {
	s := StartSSHD(t, Options{})
	cmd := exec.Command("ssh", "-F", s.ConfigFile, "-p", strconv.Itoa(s.Port), "127.0.0.1", "echo $$; exec sleep 1000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		LeaveOut(t, "%v", err)
	}
	buf := make([]byte, 32)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	cmd.Wait()
	if p, ok := readProc(pid); ok {
		t.Errorf("process %d (%s) is still alive", pid, p.name)
	}
}
