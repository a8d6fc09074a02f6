package sshconf

import (
	"strings"
	"testing"
)

func TestAlgorithms(t *testing.T) {
	c := config(t, `
Host plain
  HostKeyAlgorithms ssh-ed25519,sk-ssh-ed25519@openssh.com,rsa-sha2-256
Host plus
  HostKeyAlgorithms +ssh-rsa
Host minus
  HostKeyAlgorithms -*cert-*,ecdsa-*
Host front
  HostKeyAlgorithms ^rsa-sha2-512
Host nothing
  HostKeyAlgorithms sk-ssh-ed25519@openssh.com
Host rest
  Ciphers aes256-gcm@openssh.com,aes128-ctr
  KexAlgorithms curve25519-sha256
  MACs hmac-sha2-256
`)
	for alias, check := range map[string]func([]string) bool{
		"plain": func(l []string) bool { return strings.Join(l, " ") == "ssh-ed25519 rsa-sha2-256" },
		"plus":  func(l []string) bool { return len(l) > 5 && l[len(l)-1] == "ssh-rsa" },
		"minus": func(l []string) bool {
			s := strings.Join(l, " ")
			return len(l) > 1 && !strings.Contains(s, "cert") && !strings.Contains(s, "ecdsa") && strings.Contains(s, "ssh-ed25519")
		},
		"front": func(l []string) bool { return len(l) > 5 && l[0] == "rsa-sha2-512" },
		"other": func(l []string) bool { return l == nil },
	} {
		got, _, err := c.ResolveAlias(alias)
		if err != nil || !check(got.HostKeyAlgorithms) {
			t.Errorf("%s: %v, %v", alias, got, err)
		}
	}
	if _, _, err := c.ResolveAlias("nothing"); err == nil || !strings.Contains(err.Error(), "none of HostKeyAlgorithms sk-ssh-ed25519@openssh.com is supported") {
		t.Errorf("no usable algorithm: %v", err)
	}
	got, _, err := c.ResolveAlias("rest")
	if err != nil || len(got.Ciphers) != 2 || len(got.KexAlgorithms) != 1 || len(got.MACs) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
