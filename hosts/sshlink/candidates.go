package sshlink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/crypto/ssh"

	"dcs-tui/hosts/sshconf"
)

// candidate is a key, or a certificate, that will be offered.
type candidate struct {
	signer ssh.Signer
	name   string   // for messages
	locked *keyFile // its passphrase has not been asked for
}

// blob identifies what the server sees.
func (c candidate) blob() string { return string(c.signer.PublicKey().Marshal()) }

// offer is what can be done to log in at one target, in the order to try.
type offer struct {
	keys    []candidate
	blind   []*keyFile // locked, and only the passphrase would tell the public half
	leftOut []string   // what cannot be used, and why
}

// makeOffer lists what to try: the identities that the configuration names,
// their certificates before them, then what else the agent has, then whatever
// needs a passphrase. The server allows about six tries (MaxAuthTries), so a
// named key must not wait behind an agent full of others.
func makeOffer(t *sshconf.Target, ring *keyring, inAgent []ssh.Signer) *offer {
	o := &offer{}
	var locked []candidate
	add := func(c candidate) {
		if c.locked != nil {
			locked = append(locked, c)
		} else {
			o.keys = append(o.keys, c)
		}
	}
	certs := readCertificates(t, o)
	var named []ssh.PublicKey
	for _, path := range t.IdentityFiles {
		k := ring.file(path)
		if k.pub == nil && errors.Is(k.err, os.ErrNotExist) && !t.Explicit {
			continue
		}
		named = append(named, k.pub)
		base, ok := o.signerFor(k, ring, inAgent)
		if !ok {
			continue
		}
		own := certs
		if k.cert != nil {
			own = append([]*ssh.Certificate{k.cert}, certs...)
		}
		for _, cert := range own {
			if !sameKey(cert.Key, base.signer.PublicKey()) {
				continue
			}
			if s, err := ssh.NewCertSigner(cert, base.signer); err == nil {
				add(candidate{s, "the certificate of " + base.name, base.locked})
			}
		}
		add(base)
	}
	for _, s := range inAgent {
		c := candidate{signer: s, name: describe(s.PublicKey(), "in the agent")}
		for _, cert := range certs {
			if sameKey(cert.Key, s.PublicKey()) {
				if cs, err := ssh.NewCertSigner(cert, s); err == nil {
					o.keys = append(o.keys, candidate{signer: cs, name: "the certificate of " + c.name})
				}
			}
		}
		isNamed := slices.ContainsFunc(named, func(pub ssh.PublicKey) bool { return sameKey(pub, plainKey(s.PublicKey())) }) ||
			slices.ContainsFunc(certs, func(cert *ssh.Certificate) bool { return sameKey(cert, s.PublicKey()) })
		if isNamed || !t.IdentitiesOnly {
			o.keys = append(o.keys, c)
		}
	}
	o.keys = append(o.keys, locked...)
	o.keys = withoutRepeats(o.keys)
	return o
}

// signerFor returns how to sign with the identity: by the agent if that has the
// key, else by the file.
func (o *offer) signerFor(k *keyFile, ring *keyring, inAgent []ssh.Signer) (candidate, bool) {
	for _, s := range inAgent {
		if sameKey(k.pub, s.PublicKey()) {
			return candidate{signer: s, name: describe(k.pub, k.path+", in the agent")}, true
		}
	}
	signer, err := ring.opened(k)
	switch {
	case err != nil:
		o.leftOut = append(o.leftOut, fmt.Sprintf("%s: %v", k.path, err))
		return candidate{}, false
	case signer != nil:
		return candidate{signer: signer, name: describe(signer.PublicKey(), k.path)}, true
	case k.pub == nil:
		o.blind = append(o.blind, k)
		return candidate{}, false
	}
	return candidate{signer: lockedSigner{k}, name: describe(k.pub, k.path), locked: k}, true
}

func readCertificates(t *sshconf.Target, o *offer) (certs []*ssh.Certificate) {
	for _, path := range t.CertificateFiles {
		cert, err := readCertificate(path)
		if err != nil {
			o.leftOut = append(o.leftOut, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		certs = append(certs, cert)
	}
	return certs
}

func withoutRepeats(list []candidate) []candidate {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(c candidate) bool {
		b := c.blob()
		defer func() { seen[b] = true }()
		return seen[b]
	})
}

// plainKey is the key inside a certificate, or the key itself.
func plainKey(k ssh.PublicKey) ssh.PublicKey {
	if cert, ok := k.(*ssh.Certificate); ok {
		return cert.Key
	}
	return k
}

func describe(pub ssh.PublicKey, where string) string {
	return fmt.Sprintf("%s (%s)", where, ssh.FingerprintSHA256(pub))
}

// lockedError says that the server wants a key whose passphrase is not known yet.
type lockedError struct{ key *keyFile }

func (e *lockedError) Error() string { return e.key.path + " is locked" }

// lockedSigner offers a key without being able to sign: a passphrase is asked
// for only once a server has said that it would take the key, and not while a
// connection waits.
type lockedSigner struct{ key *keyFile }

func (s lockedSigner) PublicKey() ssh.PublicKey { return s.key.pub }

func (s lockedSigner) Sign(io.Reader, []byte) (*ssh.Signature, error) {
	return nil, &lockedError{s.key}
}

func (s lockedSigner) SignWithAlgorithm(io.Reader, []byte, string) (*ssh.Signature, error) {
	return nil, &lockedError{s.key}
}
