package sshlink

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"

	"golang.org/x/crypto/ssh"
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

// watchedSigner notes why signing with a key that the server would take failed.
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
