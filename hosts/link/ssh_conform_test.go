package link

import (
	"fmt"
	"path/filepath"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

func opener(t testing.TB, s *hosttest.SSHD) *SSHOpener {
	t.Helper()
	config, err := LoadSSHConfig(s.ConfigFile)
	must(t, err)
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
		polltest.Long(t)
		gw := hosttest.StartSSHD(t, hosttest.Options{})
		s := hosttest.StartSSHD(t, hosttest.Options{With: gw})
		hosttest.Conform(t, func(t testing.TB) (hosts.Opener, *hosts.Host) {
			h := s.Host("melon4")
			h.Jump = []string{fmt.Sprintf("localhost:%d", gw.Port)}
			return opener(t, s), h
		})
	})
	t.Run("through a ProxyCommand", func(t *testing.T) {
		polltest.Long(t)
		s := hosttest.StartSSHD(t, hosttest.Options{})
		text := "ProxyCommand " + bashProxy + "\n" + read(t, s.ConfigFile)
		config, err := LoadSSHConfig(write(t, filepath.Join(t.TempDir(), "config"), text))
		must(t, err)
		hosttest.Conform(t, func(t testing.TB) (hosts.Opener, *hosts.Host) {
			return NewSSH(SSHOptions{Config: config}), s.Host("melon4")
		})
	})
}
