package sshlink

import (
	"fmt"
	"os"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/sshconf"
)

func opener(t testing.TB, s *hosttest.SSHD) *Opener {
	t.Helper()
	config, err := sshconf.Load(s.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Config: config, Warn: func(host, text string) { t.Logf("warning: %s: %s", host, text) }})
}

// The ssh link keeps every promise of hosts.Link against a real OpenSSH server
// (issue 2, point 4), directly and through a gateway.
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

// The login shells of issue 2, point 4, run our fixed text.
func TestLoginShells(t *testing.T) {
	for _, shell := range []string{"/bin/bash", "/bin/dash", "/bin/tcsh"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := os.Stat(shell); err != nil {
				hosttest.LeaveOut(t, "%v", err)
			}
			const noise = "*** Welcome ***\n"
			s := hosttest.StartSSHD(t, hosttest.Options{Shell: shell, Noise: noise})
			got := mustRun(t, New(Options{}), target(s), `exec /bin/sh -c 'printf %s "a b" "$0"; echo \!'`)
			if want := noise + "a b/bin/sh!\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
