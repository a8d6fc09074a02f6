package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"dcs-tui/internal/regular"
)

// maxKeyFile bounds the size of a key or certificate file.
const maxKeyFile = 256 << 10

// keyFile is one identity file as it was read. Only unlock changes afterwards.
type keyFile struct {
	path  string
	stamp stamp
	pub   ssh.PublicKey    // nil if it cannot be read without the passphrase
	cert  *ssh.Certificate // of PATH-cert.pub; nil if there is none
	// Why the private key cannot be used; nil if it can, perhaps with a passphrase.
	err error

	locked []byte     // content of a file that needs a passphrase
	signer ssh.Signer // nil if it is locked or cannot be used
	unlock *unlocking // guarded by keyring.mu
}

// stamp identifies the content of a file.
type stamp struct {
	size int64
	time time.Time
}

func fileStamp(path string) stamp {
	st, err := os.Stat(path)
	if err != nil {
		return stamp{size: -1}
	}
	return stamp{st.Size(), st.ModTime()}
}

// readKeyFile reads an identity file. It always returns one, whose err describes what is
// wrong. A public key alone is enough if the agent has the private one.
func readKeyFile(path string) *keyFile {
	k := &keyFile{path: path, stamp: fileStamp(path)}
	if b, err := regular.Read(os.OpenFile, path+".pub", maxKeyFile); err == nil {
		k.pub, _, _, _, _ = ssh.ParseAuthorizedKey(b)
	}
	k.cert, _ = readCertificate(path + "-cert.pub")
	text, err := regular.Read(os.OpenFile, path, maxKeyFile)
	if err != nil {
		k.err = plainCause(err)
		return k
	}
	if pub, _, _, _, err := ssh.ParseAuthorizedKey(text); err == nil {
		k.pub, k.err = pub, errors.New("it holds only the public key, and the agent does not have the private one")
		return k
	}
	if k.err = checkMode(path); k.err != nil {
		return k
	}
	k.signer, err = ssh.ParsePrivateKey(text)
	var missing *ssh.PassphraseMissingError
	switch {
	case err == nil:
		k.pub = k.signer.PublicKey()
	case errors.As(err, &missing):
		k.locked = text
		if missing.PublicKey != nil {
			k.pub = missing.PublicKey
		}
	case k.pub != nil && isSecurityKey(k.pub):
		k.err = errors.New("it is a security key, which is used only through an ssh-agent: ssh-add " + path)
	default:
		k.err = fmt.Errorf("not a private key that can be used here: %w", err)
	}
	return k
}

// checkMode refuses a private key of ours that others may read, as OpenSSH does.
func checkMode(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return plainCause(err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if ok && int(sys.Uid) == os.Getuid() && st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("its permissions %#o let others read it: chmod 600 %s", st.Mode().Perm(), path)
	}
	return nil
}

// readCertificate reads a user certificate.
func readCertificate(path string) (*ssh.Certificate, error) {
	b, err := regular.Read(os.OpenFile, path, maxKeyFile)
	if err != nil {
		return nil, plainCause(err)
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(b)
	if err != nil {
		return nil, fmt.Errorf("not a certificate: %w", err)
	}
	cert, ok := pub.(*ssh.Certificate)
	if !ok {
		return nil, errors.New("a plain public key, not a certificate")
	}
	if cert.CertType != ssh.UserCert {
		return nil, errors.New("a host's certificate, not a user's")
	}
	return cert, nil
}

// sameKey compares two public keys, either of which may be nil.
func sameKey(a, b ssh.PublicKey) bool {
	return a != nil && b != nil && bytes.Equal(a.Marshal(), b.Marshal())
}

// plainCause removes the path from a file error, because the caller names the file.
func plainCause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// maxPrompts is how often a passphrase is asked for, as in OpenSSH's
// NumberOfPasswordPrompts.
const maxPrompts = 3

// errNoPrompt is the error for a locked key if nobody can type a passphrase.
var errNoPrompt = errors.New("it has a passphrase and there is no terminal to ask for it: run ssh-add for it first")

// keyring holds the identities that were read, so that a passphrase is asked for once for
// all hosts that need the key.
type keyring struct {
	prompt func(what string) ([]byte, error)

	mu    sync.Mutex
	files map[string]*keyFile

	asking sync.Mutex // one question at a time
}

// unlocking is the question for the passphrase of one key, and its result.
type unlocking struct {
	done   chan struct{}
	signer ssh.Signer // valid after done
	err    error      // valid after done
}

func newKeyring(prompt func(string) ([]byte, error)) *keyring {
	return &keyring{prompt: prompt, files: map[string]*keyFile{}}
}

// file returns the identity at path. It reads the file again if it has changed.
func (r *keyring) file(path string) *keyFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.files[path]; k != nil && k.stamp == fileStamp(path) {
		return k
	}
	k := readKeyFile(path)
	r.files[path] = k
	return k
}

// openedSigner returns the key's signer, or why it cannot be used. Both are nil for a locked key
// whose passphrase nobody has answered yet.
func (r *keyring) openedSigner(k *keyFile) (ssh.Signer, error) {
	if k.signer != nil || k.err != nil {
		return k.signer, k.err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.unlock == nil {
		return nil, nil
	}
	select {
	case <-k.unlock.done:
		return k.unlock.signer, k.unlock.err
	default:
		return nil, nil
	}
}

// open asks for the key's passphrase, at most once. Concurrent and later callers get the
// same answer, a refusal included.
func (r *keyring) open(ctx context.Context, k *keyFile) error {
	if r.prompt == nil {
		return errNoPrompt
	}
	r.mu.Lock()
	u := k.unlock
	if u == nil {
		u = &unlocking{done: make(chan struct{})}
		k.unlock = u
		// The question does not end with ctx: others wait for the answer, too, and a
		// person who is typing cannot be interrupted.
		go func() {
			defer close(u.done)
			u.signer, u.err = r.ask(k)
		}()
	}
	r.mu.Unlock()
	select {
	case <-u.done:
		return u.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *keyring) ask(k *keyFile) (ssh.Signer, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	what := "passphrase for " + k.path
	for range maxPrompts {
		secret, err := r.prompt(what)
		if err != nil {
			return nil, fmt.Errorf("its passphrase was not given: %w", err)
		}
		signer, err := ssh.ParsePrivateKeyWithPassphrase(k.locked, secret)
		clear(secret)
		if err == nil {
			return signer, nil
		}
		what = "that was wrong; passphrase for " + k.path
	}
	return nil, fmt.Errorf("its passphrase was wrong %d times", maxPrompts)
}
