package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// loginState records the course of a login, for the message when it fails.
type loginState struct {
	acceptsKeys bool     // the server accepts public keys as a method
	allowed     []string // methods that the server offers
	partial     []string // methods that succeeded, after which the server wants another one
}

// clientConfig returns the library's configuration. verified is called when the server has
// proved its identity.
func (a *attempt) clientConfig(ctx context.Context, verified func()) (*ssh.ClientConfig, error) {
	algorithms, err := a.hostKey.algorithms()
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{
		Config: ssh.Config{
			Ciphers:      a.target.Ciphers,
			KeyExchanges: a.target.KexAlgorithms,
			MACs:         a.target.MACs,
		},
		User:              a.target.User,
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(name string, addr net.Addr, key ssh.PublicKey) error {
			if err := a.hostKey.check(name, addr, key); err != nil {
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
	}, nil
}

// signers returns the keys to offer.
func (a *attempt) signers(ctx context.Context) []ssh.Signer {
	a.login.acceptsKeys = true
	var inAgent []ssh.Signer
	var agentErr error
	if a.target.IdentityAgent != "" {
		inAgent, agentErr = openAgent(ctx, a.target.IdentityAgent)
	}
	a.offer = makeOffer(a.target, a.opener.keyring, inAgent)
	if agentErr != nil {
		a.offer.leftOut = append(a.offer.leftOut, agentErr.Error())
	}
	for _, k := range a.offer.unnamed {
		why, known := a.unusableKeys[k.path]
		if !known {
			why = "it has a passphrase, and there is no " + k.path + ".pub to offer it by"
		}
		a.offer.leftOut = append(a.offer.leftOut, k.path+": "+why)
	}
	var list []ssh.Signer
	a.offer.keys = slices.DeleteFunc(a.offer.keys, func(c candidate) bool {
		if bits := rsaBits(c.signer.PublicKey()); bits > 0 && bits < a.target.RequiredRSASize {
			a.offer.leftOut = append(a.offer.leftOut,
				fmt.Sprintf("%s: it has %d bits, and RequiredRSASize is %d", c.name, bits, a.target.RequiredRSASize))
			return true
		}
		why, bad := a.unusableKeys[c.blob()]
		if c.locked != nil && !bad {
			why, bad = a.unusableKeys[string(c.locked.pub.Marshal())]
		}
		if bad {
			a.offer.leftOut = append(a.offer.leftOut, c.name+": "+why)
			return true
		}
		list = append(list, watchedSigner{c, a, ctx})
		return false
	})
	return list
}

// watchedSigner records why signing with a key that the server accepts has failed.
type watchedSigner struct {
	candidate
	a   *attempt
	ctx context.Context // of the login
}

func (w watchedSigner) PublicKey() ssh.PublicKey { return w.signer.PublicKey() }

func (w watchedSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return w.SignWithAlgorithm(rand, data, "")
}

func (w watchedSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if w.locked != nil {
		w.a.lockedKey = w.locked
		return nil, errLocked
	}
	if isSecurityKey(w.PublicKey()) {
		w.a.touching.Store(&w.name)
		defer func() {
			if w.ctx.Err() == nil {
				w.a.touching.Store(nil)
			}
		}()
		w.a.opener.warn(w.a.host, "touch the security key "+w.name+" if it blinks")
	}
	var sig *ssh.Signature
	var err error
	if as, ok := w.signer.(ssh.AlgorithmSigner); ok && algorithm != "" {
		sig, err = as.SignWithAlgorithm(rand, data, algorithm)
	} else {
		sig, err = w.signer.Sign(rand, data)
	}
	if err != nil {
		w.a.signErr = err
		w.a.unusableKeys[w.blob()] = "it could not sign: " + err.Error()
	}
	return sig, err
}

// isSecurityKey reports whether a key is in hardware, which may wait for a touch.
func isSecurityKey(key ssh.PublicKey) bool { return strings.HasPrefix(plainKey(key).Type(), "sk-") }

// candidate is a key, or a certificate, that will be offered.
type candidate struct {
	signer  ssh.Signer
	name    string   // for messages
	problem string   // why the server may refuse this certificate; "": nothing is known
	locked  *keyFile // set if its passphrase was not asked for yet
}

// blob identifies the key for the server.
func (c candidate) blob() string { return string(c.signer.PublicKey().Marshal()) }

// offer holds the keys for one target, in the order to try.
type offer struct {
	keys    []candidate
	unnamed []*keyFile // locked, and their public keys are not known
	leftOut []string   // keys that cannot be used, and why
}

// makeOffer lists the identities that the configuration names, each after its certificates,
// then the other keys of the agent, then those that need a passphrase. A server allows
// about six tries (MaxAuthTries), so named keys come before an agent full of others.
func makeOffer(t *Target, ring *keyring, inAgent []ssh.Signer) *offer {
	o := &offer{}
	var locked []candidate
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
		for _, c := range append(base.certified(own, t.User), base) {
			if c.locked != nil {
				locked = append(locked, c)
			} else {
				o.keys = append(o.keys, c)
			}
		}
	}
	for _, s := range inAgent {
		c := candidate{signer: s, name: describe(s.PublicKey(), "in the agent")}
		o.keys = append(o.keys, c.certified(certs, t.User)...)
		isNamed := slices.ContainsFunc(named, func(pub ssh.PublicKey) bool {
			return sameKey(pub, plainKey(s.PublicKey()))
		}) ||
			slices.ContainsFunc(certs, func(cert *ssh.Certificate) bool { return sameKey(cert, s.PublicKey()) })
		if isNamed || !t.IdentitiesOnly {
			o.keys = append(o.keys, c)
		}
	}
	o.keys = append(o.keys, locked...)
	o.keys = withoutRepeats(o.keys)
	return o
}

// certified returns the key with each of the certificates that is for it. user is who logs in.
func (c candidate) certified(certs []*ssh.Certificate, user string) (list []candidate) {
	for _, cert := range certs {
		if !sameKey(cert.Key, c.signer.PublicKey()) {
			continue
		}
		if s, err := ssh.NewCertSigner(cert, c.signer); err == nil {
			list = append(list, candidate{signer: s, name: "the certificate of " + c.name,
				problem: certificateProblem(cert, user, time.Now()), locked: c.locked})
		}
	}
	return list
}

// certificateProblem returns why a server may refuse a certificate, or "". The clock of the server
// may differ, and it may have rules of its own about principals, so the certificate is offered
// nevertheless, as ssh does it.
func certificateProblem(cert *ssh.Certificate, user string, now time.Time) string {
	const layout = "2006-01-02 15:04"
	at := uint64(now.Unix())
	switch {
	case at >= cert.ValidBefore && cert.ValidBefore != ssh.CertTimeInfinity:
		return "which expired on " + time.Unix(int64(cert.ValidBefore), 0).Format(layout)
	case at < cert.ValidAfter:
		return "which is valid from " + time.Unix(int64(cert.ValidAfter), 0).Format(layout)
	case len(cert.ValidPrincipals) > 0 && !slices.Contains(cert.ValidPrincipals, user):
		return fmt.Sprintf("which is for %s, not for %s", strings.Join(cert.ValidPrincipals, " and "), user)
	}
	return ""
}

// signerFor returns a signer of the identity: the agent's if it has the key, else the
// file's. false: there is none yet, or none at all.
func (o *offer) signerFor(k *keyFile, ring *keyring, inAgent []ssh.Signer) (candidate, bool) {
	for _, s := range inAgent {
		if sameKey(k.pub, s.PublicKey()) {
			return candidate{signer: s, name: describe(k.pub, k.path+", in the agent")}, true
		}
	}
	signer, err := ring.openedSigner(k)
	switch {
	case err != nil:
		o.leftOut = append(o.leftOut, fmt.Sprintf("%s: %v", k.path, err))
		return candidate{}, false
	case signer != nil:
		return candidate{signer: signer, name: describe(signer.PublicKey(), k.path)}, true
	case k.pub == nil:
		o.unnamed = append(o.unnamed, k)
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
		repeated := seen[c.blob()]
		seen[c.blob()] = true
		return repeated
	})
}

// plainKey returns the key inside a certificate, or the key itself.
func plainKey(k ssh.PublicKey) ssh.PublicKey {
	if cert, ok := k.(*ssh.Certificate); ok {
		return cert.Key
	}
	return k
}

func describe(pub ssh.PublicKey, where string) string {
	return fmt.Sprintf("%s (%s)", where, ssh.FingerprintSHA256(pub))
}

// errLocked is the error of a lockedSigner.
var errLocked = errors.New("the key is locked")

// lockedSigner offers a key that cannot sign yet. Its passphrase is asked for only after a
// server has accepted the key, and not while a connection waits.
type lockedSigner struct{ key *keyFile }

func (s lockedSigner) PublicKey() ssh.PublicKey { return s.key.pub }

func (s lockedSigner) Sign(io.Reader, []byte) (*ssh.Signature, error) { return nil, errLocked }

// agentTimeout bounds how long the agent may take to list its keys. A forwarded agent whose
// far end is gone accepts connections and sends nothing.
const agentTimeout = 5 * time.Second

// openAgent returns signers for the keys of the agent at socket. They work until ctx is
// done, which closes the connection.
func openAgent(ctx context.Context, socket string) ([]ssh.Signer, error) {
	var d net.Dialer
	dctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	conn, err := d.DialContext(dctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("the ssh agent at %s does not answer: %w", socket, err)
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(agentTimeout))
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("the ssh agent at %s does not list its keys: %w", socket, err)
	}
	// Signing may wait for a person (ssh-add -c, a hardware key). ctx bounds it.
	conn.SetDeadline(time.Time{})
	return signers, nil
}
