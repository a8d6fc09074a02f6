package sshlink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// maxKeyFile bounds what is read as a key or certificate.
const maxKeyFile = 256 << 10

// keyFile is one identity as it lies on the disk. Everything is fixed once it
// has been read, except what unlocking fills in (see unlock.go).
type keyFile struct {
	path  string
	stamp stamp
	pub   ssh.PublicKey    // nil when only the passphrase would tell
	cert  *ssh.Certificate // of PATH-cert.pub; nil if there is none
	err   error            // why there is no usable private half; nil if there is, perhaps locked

	locked []byte     // the file, while it needs a passphrase
	signer ssh.Signer // nil while locked or unusable
	unlock *unlocking // guarded by keyring.mu
}

// stamp tells whether a file is still the one that was read.
type stamp struct {
	size int64
	time time.Time
}

func stampOf(path string) stamp {
	st, err := os.Stat(path)
	if err != nil {
		return stamp{size: -1}
	}
	return stamp{st.Size(), st.ModTime()}
}

// readKeyFile reads an identity. It always returns one; err in it says what is
// wrong. A public key alone is enough when the agent holds the private one.
func readKeyFile(path string) *keyFile {
	k := &keyFile{path: path, stamp: stampOf(path)}
	if b, err := readSmall(path + ".pub"); err == nil {
		k.pub, _, _, _, _ = ssh.ParseAuthorizedKey(b)
	}
	if b, err := readSmall(path + "-cert.pub"); err == nil {
		k.cert, _ = parseCertificate(b)
	}
	text, err := readSmall(path)
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

// readSmall reads a regular file of bounded size.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(b) > maxKeyFile {
		err = errors.New("far too long for a key")
	}
	return b, err
}

// readCertificate reads a user certificate.
func readCertificate(path string) (*ssh.Certificate, error) {
	b, err := readSmall(path)
	if err != nil {
		return nil, plainCause(err)
	}
	return parseCertificate(b)
}

func parseCertificate(b []byte) (*ssh.Certificate, error) {
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

// plainCause takes the path out of a file error: the caller names the file.
func plainCause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
