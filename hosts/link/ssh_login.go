package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/sys/cpu"
)

// loginState is what was seen of logging in, for the message when it fails.
type loginState struct {
	asked   bool     // the server would look at public keys
	allowed []string // ways to log in that the server offers
	partial []string // ways that it accepted, without being content
}

// clientConfig is the library's view of the attempt. verified is called when the
// server has proved who it is.
func (a *attempt) clientConfig(ctx context.Context, verified func()) (*ssh.ClientConfig, error) {
	algorithms, err := a.check.algorithms()
	if err != nil {
		return nil, err
	}
	config := &ssh.ClientConfig{
		Config: ssh.Config{
			Ciphers:      a.t.Ciphers,
			KeyExchanges: a.t.KexAlgorithms,
			MACs:         a.t.MACs,
		},
		User:              a.t.User,
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(name string, addr net.Addr, key ssh.PublicKey) error {
			if err := a.check.check(name, addr, key); err != nil {
				return err
			}
			verified()
			return nil
		},
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) { return a.signers(ctx), nil })},
		AuthCallback: func(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
			a.login.allowed, a.login.partial = c.AllowedMethods, c.PartialSuccessMethods
			return nil, nil // the usual order
		},
	}
	if config.Ciphers == nil {
		config.Ciphers = ciphers()
	}
	return config, nil
}

// ciphers are the library's, with the one first that is fast without hardware
// for AES when this machine has none.
func ciphers() []string {
	list := ssh.SupportedAlgorithms().Ciphers
	if cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ || cpu.ARM64.HasAES && cpu.ARM64.HasPMULL {
		return list
	}
	slices.SortStableFunc(list, func(x, y string) int {
		switch {
		case x == y:
			return 0
		case x == ssh.CipherChaCha20Poly1305:
			return -1
		case y == ssh.CipherChaCha20Poly1305:
			return 1
		}
		return 0
	})
	return list
}

// signers lists the keys to offer, each with an eye on it.
func (a *attempt) signers(ctx context.Context) []ssh.Signer {
	a.login.asked = true
	var inAgent []ssh.Signer
	var trouble error
	if a.t.IdentityAgent != "" {
		var conn *agentConn
		inAgent, conn, trouble = openAgent(ctx, a.t.IdentityAgent)
		context.AfterFunc(ctx, conn.close)
	}
	a.offer = makeOffer(a.t, a.o.ring, inAgent)
	if trouble != nil {
		a.offer.leftOut = append(a.offer.leftOut, trouble.Error())
	}
	for _, k := range a.offer.blind {
		why, known := a.bad[k.path]
		if !known {
			why = "it has a passphrase, and there is no " + k.path + ".pub to offer it by"
		}
		a.offer.leftOut = append(a.offer.leftOut, k.path+": "+why)
	}
	var list []ssh.Signer
	a.offer.keys = slices.DeleteFunc(a.offer.keys, func(c candidate) bool {
		why, bad := a.bad[c.blob()]
		if c.locked != nil && !bad {
			why, bad = a.bad[string(c.locked.pub.Marshal())]
		}
		if bad {
			a.offer.leftOut = append(a.offer.leftOut, c.name+": "+why)
			return true
		}
		list = append(list, watchedSigner{c, a})
		return false
	})
	return list
}

// watchedSigner records why signing with a key that the server would take failed.
type watchedSigner struct {
	candidate
	a *attempt
}

func (w watchedSigner) PublicKey() ssh.PublicKey { return w.signer.PublicKey() }

func (w watchedSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return w.SignWithAlgorithm(rand, data, "")
}

func (w watchedSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	var sig *ssh.Signature
	var err error
	if as, ok := w.signer.(ssh.AlgorithmSigner); ok && algorithm != "" {
		sig, err = as.SignWithAlgorithm(rand, data, algorithm)
	} else {
		sig, err = w.signer.Sign(rand, data)
	}
	var locked *lockedError
	switch {
	case errors.As(err, &locked):
		w.a.locked = locked.key
	case err != nil:
		w.a.signFailed = err
		w.a.bad[w.blob()] = "it could not sign: " + err.Error()
	}
	return sig, err
}

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
func makeOffer(t *Target, ring *keyring, inAgent []ssh.Signer) *offer {
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

func readCertificates(t *Target, o *offer) (certs []*ssh.Certificate) {
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

// lockedError reports that the server wants a key whose passphrase is not known yet.
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

// agentLimit is how long the agent may take to list its keys. A forwarded agent
// whose far end is gone accepts connections and says nothing.
const agentLimit = 5 * time.Second

// agentConn is an open way to an ssh agent.
type agentConn struct {
	conn net.Conn
	stop func() bool
}

// openAgent returns the keys that the agent at socket can sign with. The signers
// work until close is called or ctx is done.
func openAgent(ctx context.Context, socket string) ([]ssh.Signer, *agentConn, error) {
	var d net.Dialer
	dctx, cancel := context.WithTimeout(ctx, agentLimit)
	defer cancel()
	conn, err := d.DialContext(dctx, "unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("the ssh agent at %s does not answer: %w", socket, err)
	}
	a := &agentConn{conn: conn, stop: context.AfterFunc(ctx, func() { conn.Close() })}
	conn.SetDeadline(time.Now().Add(agentLimit))
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		a.close()
		return nil, nil, fmt.Errorf("the ssh agent at %s does not list its keys: %w", socket, err)
	}
	// Signing may wait for a person (ssh-add -c, a hardware key); ctx bounds it.
	conn.SetDeadline(time.Time{})
	return signers, a, nil
}

func (a *agentConn) close() {
	if a != nil {
		a.stop()
		a.conn.Close()
	}
}
