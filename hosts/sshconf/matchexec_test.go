package sshconf

import (
	"path/filepath"
	"strings"
	"testing"
)

// `Match exec` and its like: OpenSSH is asked when it is there, and only for
// hosts that the rest of the line fits.
func TestMatchExec(t *testing.T) {
	const text = `
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
Host *
  Port 2222
`
	t.Run("without ssh", func(t *testing.T) {
		c := config(t, text)
		got, w, err := c.ResolveAlias("inside")
		if err != nil || got.User != "alice" || got.Port != 2222 || len(w) != 1 || !strings.Contains(w[0], "inside: `Match exec`") || !strings.Contains(w[0], "config:2") {
			t.Errorf("%+v, %v, %v", got, w, err)
		}
		if _, w, err := c.ResolveAlias("elsewhere"); err != nil || len(w) > 0 {
			t.Errorf("a host that the block does not concern: %v, %v", w, err)
		}
	})
	t.Run("with ssh", func(t *testing.T) {
		needSSH(t)
		c, err := Load(write(t, filepath.Join(t.TempDir(), "config"), text))
		if err != nil {
			t.Fatal(err)
		}
		got, w, err := c.ResolveAlias("inside")
		if err != nil {
			t.Fatal(err)
		}
		if got.HostName != "in.lab" || got.User != "bob" || got.Port != 2222 || !got.Explicit || !strings.HasSuffix(got.IdentityFiles[0], "/.ssh/in") ||
			len(got.IdentityFiles) != 1 || strings.Join(got.KnownHosts[:2], " ") != "/tmp/kh1 /tmp/kh2" || strings.Join(got.HostKeyAlgorithms, " ") != "ssh-ed25519" ||
			got.Ciphers != nil || len(got.Jumps) != 1 {
			t.Errorf("%+v", got)
		}
		if len(w) != 1 || !strings.Contains(w[0], "BindAddress") {
			t.Errorf("warnings %v", w)
		}
		got, w, err = c.ResolveAlias("outside")
		if err != nil || len(w) > 0 || got.User != c.env.user || got.Explicit {
			t.Errorf("%+v, %v, %v", got, w, err)
		}
	})
	t.Run("ssh refuses", func(t *testing.T) {
		needSSH(t)
		c, err := Load(write(t, filepath.Join(t.TempDir(), "config"), text+"Bogus directive\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, w, err := c.ResolveAlias("inside")
		if all := strings.Join(w, "\n"); err != nil || !strings.Contains(all, "ssh -G: exit status 255") || !strings.Contains(all, `"bogus"`) {
			t.Errorf("%v, %v", w, err)
		}
	})
}
