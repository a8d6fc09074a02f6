package sshconf

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// algorithms settles a list such as HostKeyAlgorithms: NAMES replaces the
// defaults, +NAMES adds to them, -NAMES takes away, ^NAMES prefers. Names may
// carry wildcards. (`ssh -G` has settled all that and prints plain names.) Only
// what the Go library can do is kept; nothing left is an error. Old algorithms
// are used only when named.
func algorithms(keyword, value string, safe, old []string) ([]string, error) {
	names := strings.Split(strings.TrimLeft(value, "+-^"), ",")
	every := append(slices.Clone(safe), old...)
	var named []string // the names, wildcards filled in, in the user's order
	for _, p := range names {
		for _, a := range every {
			if fits, _ := path.Match(p, a); fits && !slices.Contains(named, a) {
				named = append(named, a)
			}
		}
	}
	without := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(a string) bool { return slices.Contains(named, a) })
	}
	var result []string
	switch value[0] {
	case '+':
		result = append(slices.Clone(safe), slices.DeleteFunc(named, func(a string) bool { return slices.Contains(safe, a) })...)
	case '-':
		result = without(safe)
	case '^':
		result = append(named, without(safe)...)
	default:
		result = named
	}
	if len(result) == 0 {
		return nil, fmt.Errorf("none of %s %s can be used here; there are %s", keyword, value, strings.Join(every, ","))
	}
	return result, nil
}

// setAlgorithms fills the four lists of a target.
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
		list, err := algorithms(l.keyword, value, l.safe, l.old)
		if err != nil {
			return err
		}
		*l.to = list
	}
	return nil
}
