package sshconf

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// setAlgorithms fills the four lists of a target. `ssh -G` prints plain names, in the
// order of preference. Only those that the Go library supports are kept, and it is an
// error if none is left. Insecure algorithms are used only when named.
func (s *settings) setAlgorithms(t *Target) error {
	safe, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	for _, l := range []struct {
		keyword   string
		to        *[]string
		safe, old []string
	}{
		{"HostKeyAlgorithms", &t.HostKeyAlgorithms, safe.HostKeys, old.HostKeys},
		{"Ciphers", &t.Ciphers, safe.Ciphers, old.Ciphers},
		{"KexAlgorithms", &t.KexAlgorithms, safe.KeyExchanges, old.KeyExchanges},
		{"MACs", &t.MACs, safe.MACs, old.MACs},
	} {
		value := s.text(strings.ToLower(l.keyword))
		if value == "" {
			continue
		}
		supported := slices.Concat(l.safe, l.old)
		*l.to = slices.DeleteFunc(strings.Split(value, ","), func(name string) bool { return !slices.Contains(supported, name) })
		if len(*l.to) == 0 {
			return fmt.Errorf("none of %s %s is supported; supported are %s", l.keyword, value, strings.Join(supported, ","))
		}
	}
	return nil
}
