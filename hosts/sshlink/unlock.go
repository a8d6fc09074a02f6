package sshlink

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/crypto/ssh"
)

// maxAsk is how often a passphrase is asked for before the key is left alone,
// as with OpenSSH's NumberOfPasswordPrompts.
const maxAsk = 3

// errNoPrompt: nobody is there to type a passphrase.
var errNoPrompt = errors.New("it has a passphrase and there is no terminal to ask for it: run ssh-add for it first")

// keyring holds the identities that have been read, so that a passphrase is
// asked for once however many hosts need the key.
type keyring struct {
	prompt func(what string) ([]byte, error)

	mu    sync.Mutex
	files map[string]*keyFile

	asking sync.Mutex // one question at a time
}

// unlocking is one key's way out of its passphrase.
type unlocking struct {
	done   chan struct{}
	signer ssh.Signer
	err    error
}

func newKeyring(prompt func(string) ([]byte, error)) *keyring {
	return &keyring{prompt: prompt, files: map[string]*keyFile{}}
}

// file returns the identity at path, read anew when the file has changed.
func (r *keyring) file(path string) *keyFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.files[path]; k != nil && k.stamp == stampOf(path) {
		return k
	}
	k := readKeyFile(path)
	r.files[path] = k
	return k
}

// opened returns the key's signer, or why there is none now. Both are nil for a
// locked key that nobody was asked about yet.
func (r *keyring) opened(k *keyFile) (ssh.Signer, error) {
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

// open asks for the key's passphrase. Callers that come meanwhile wait for the
// same answer; it is kept, a refusal too.
func (r *keyring) open(ctx context.Context, k *keyFile) error {
	if r.prompt == nil {
		return errNoPrompt
	}
	r.mu.Lock()
	u := k.unlock
	if u == nil {
		u = &unlocking{done: make(chan struct{})}
		k.unlock = u
		// Not bound to ctx: the question stands for all who wait, and a person
		// who is typing cannot be interrupted.
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
	for range maxAsk {
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
	return nil, fmt.Errorf("its passphrase was wrong %d times", maxAsk)
}
