package link

import (
	"fmt"
	"io"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
)

func opener(t testing.TB, s *hosttest.SSHD) *SSHOpener {
	t.Helper()
	config, err := LoadSSHConfig(s.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	return NewSSH(SSHOptions{Config: config, Warn: func(host, text string) { t.Logf("warning: %s: %s", host, text) }})
}

// TestConformance checks that the ssh link keeps every promise of hosts.Link against a real OpenSSH
// server, directly and through a gateway.
func TestConformance(t *testing.T) {
	t.Run("direct", func(t *testing.T) {
		s := hosttest.StartSSHD(t, hosttest.Options{})
		hosttest.Conform(t, func(t testing.TB) (hosts.Opener, *hosts.Host) { return opener(t, s), s.Host("melon4") })
	})
	t.Run("through a gateway", func(t *testing.T) {
		gw := hosttest.StartSSHD(t, hosttest.Options{})
		s := hosttest.StartSSHD(t, hosttest.Options{With: gw})
		hosttest.Conform(t, func(t testing.TB) (hosts.Opener, *hosts.Host) {
			h := s.Host("melon4")
			h.Jump = []string{fmt.Sprintf("localhost:%d", gw.Port)}
			return opener(t, s), h
		})
	})
}

// TestLoginShells checks that the login shells run our fixed text.
func TestLoginShells(t *testing.T) {
	for _, shell := range []string{"/bin/bash", "/bin/dash", "/bin/tcsh"} {
		t.Run(shell, func(t *testing.T) {
			const noise = "*** Welcome ***\n"
			s := hosttest.StartSSHD(t, hosttest.Options{Shell: shell, Noise: noise})
			got := mustRun(t, NewSSH(SSHOptions{}), target(s), `exec /bin/sh -c 'printf %s "a b" "$0"; echo \!'`)
			if want := noise + "a b/bin/sh!\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// BenchmarkRoundTrip sends a frame of 200 bytes to a real sshd and waits for its echo.
func BenchmarkRoundTrip(b *testing.B) {
	s := hosttest.StartSSHD(b, hosttest.Options{})
	st := start(b, dial(b, NewSSH(SSHOptions{}), target(s)), "exec cat")
	defer st.Close()
	frame := make([]byte, 200)
	for b.Loop() {
		if _, err := st.Stdin().Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(st, frame); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a link and closes it.
func BenchmarkOpen(b *testing.B) {
	s := hosttest.StartSSHD(b, hosttest.Options{})
	o := NewSSH(SSHOptions{})
	for b.Loop() {
		l, err := o.dialTarget(b.Context(), "melon4", target(s))
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}
