package sshlink

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
)

// cleanKnown empties the lines of a known_hosts file that the library does not
// understand, so that line numbers stay what they are. bad says of each
// "LINE: what is wrong".
func cleanKnown(text []byte) (good []byte, bad []string) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if err := checkKnownLine(line); err != nil {
			bad = append(bad, fmt.Sprintf("%d: %v", n, err))
			line = []byte("\n")
		}
		good = append(good, line...)
	}
	return good, bad
}

// checkKnownLine holds a line to sshd(8), SSH_KNOWN_HOSTS FILE FORMAT, as the
// library reads it.
func checkKnownLine(line []byte) error {
	if len(line) >= bufio.MaxScanTokenSize {
		return errors.New("line too long")
	}
	// The library takes off blanks and one carriage return, in this order.
	f := fields(strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"))
	if len(f) == 0 || f[0][0] == '#' {
		return nil
	}
	if f[0] == "@cert-authority" || f[0] == "@revoked" {
		f = f[1:]
	}
	if len(f) < 3 {
		return errors.New("not a host, a key type and a key")
	}
	if f[0][0] == '@' {
		return fmt.Errorf("unknown marker %s", f[0])
	}
	if err := checkPatterns(f[0]); err != nil {
		return err
	}
	blob, err := base64.StdEncoding.DecodeString(f[2])
	if err != nil {
		return errors.New("the key is not base64")
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return fmt.Errorf("a key that cannot be used here: %s", strings.TrimPrefix(err.Error(), "ssh: "))
	}
	if key.Type() != f[1] {
		return fmt.Errorf("the key is of type %s, not %s", key.Type(), f[1])
	}
	return nil
}

// checkPatterns checks the first field: hashed, or patterns with commas.
func checkPatterns(s string) error {
	if s[0] == '|' {
		part := strings.Split(s, "|")
		if len(part) != 4 || part[1] != "1" {
			return errors.New("a hashed host name of an unknown kind")
		}
		for _, p := range part[2:] {
			if _, err := base64.StdEncoding.DecodeString(p); err != nil {
				return errors.New("a hashed host name that is not base64")
			}
		}
		return nil
	}
	for p := range strings.SplitSeq(s, ",") {
		name, negated := strings.CutPrefix(p, "!")
		if name == "" && negated {
			return errors.New("a ! without a host after it")
		}
		if strings.HasPrefix(name, "[") {
			if _, _, err := net.SplitHostPort(name); err != nil {
				return fmt.Errorf("%s is not [HOST]:PORT", name)
			}
		}
	}
	return nil
}

// fields splits at blanks and tabs only.
func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' })
}
