package link

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
)

func newKey(t *testing.T, kind, passphrase string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "id_"+kind)
	must(t, hosttest.NewKey(file, kind, passphrase))
	return file
}

// TestRefusedKeyIsDenied checks that a key that the server refuses is Denied, and that the message
// lists what was tried, what was left out, and why.
func TestRefusedKeyIsDenied(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	wrong := newKey(t, "ed25519", "")
	open := newKey(t, "ed25519", "")
	must(t, os.Chmod(open, 0o644))
	text := write(t, filepath.Join(t.TempDir(), "notes"), "not a key\n")
	tg := target(s)
	tg.IdentityFiles = []string{wrong, open, text, "/nonexistent/id", "/etc"}
	mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, "refuses every key for "+s.User,
		wrong+" (SHA256:", open+": its permissions 0644", "chmod 600",
		text+": not a private key", "/nonexistent/id: no such file", "/etc: not a regular file", "ssh-copy-id")

	tg.IdentityFiles, tg.Explicit = []string{"/nonexistent/id_rsa", "/nonexistent/id_ed25519"}, false
	mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, "no key to offer", "ssh-keygen")

	// The right key is found after wrong ones.
	tg.IdentityFiles = []string{wrong, text, s.Identity}
	mustRun(t, NewSSH(SSHOptions{}), tg, "true")
}

// TestLoginsThatNeedMoreThanAKey checks the error for a server that accepts no key, or that
// requires more than a key. The advice names the kind of link that works. If something must be
// typed, it says that a person must open the connection.
func TestLoginsThatNeedMoreThanAKey(t *testing.T) {
	const first = "over a shared connection (ControlMaster) that you open beforehand, " +
		"because the dispatcher has no terminal"
	for name, c := range map[string]struct {
		config []string
		want   []string
	}{
		"password": {[]string{"PubkeyAuthentication no", "PasswordAuthentication yes"},
			[]string{"takes no keys", "only password", "to log in by password", useSSH(""), first}},
		"keyboard-interactive": {[]string{"PubkeyAuthentication no", "KbdInteractiveAuthentication yes", "UsePAM yes"},
			[]string{
				"takes no keys",
				"only keyboard-interactive",
				"to log in by keyboard-interactive",
				useSSH(""),
				first,
			}},
		"Kerberos": {[]string{"PubkeyAuthentication no", "GSSAPIAuthentication yes"},
			[]string{"takes no keys", "gssapi-with-mic", "to log in by Kerberos", useSSH("")}},
		"second factor": {[]string{"PasswordAuthentication yes", "AuthenticationMethods publickey,password"},
			[]string{"accepts publickey", "wants password", "needs a person", useSSH(""), first}},
	} {
		t.Run(name, func(t *testing.T) {
			s := hosttest.StartSSHD(t, hosttest.Options{Config: c.config})
			mustFail(t, NewSSH(SSHOptions{}), target(s), hosts.Denied, c.want...)
		})
	}
}

// TestTooManyKeys checks that the error is one clear line if there are more keys than the server
// tries.
func TestTooManyKeys(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{Config: []string{"MaxAuthTries 2"}})
	tg := target(s)
	tg.IdentityFiles = []string{newKey(t, "ed25519", ""), newKey(t, "ecdsa", ""), newKey(t, "ed25519", ""), s.Identity}
	mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, "refuses every key")
}

// TestPassphraseIsRequestedOnce checks that a passphrase is requested once, however many hosts want
// the key at the same time, and only after a server has accepted the key.
func TestPassphraseIsRequestedOnce(t *testing.T) {
	for _, kind := range []string{"ed25519", "rsa without its public half"} {
		t.Run(kind, func(t *testing.T) {
			s := hosttest.StartSSHD(t, hosttest.Options{})
			key := lockedKey(t, s, kind)
			var asked atomic.Int32
			o := NewSSH(SSHOptions{Prompt: func(what string) ([]byte, error) {
				if n := asked.Add(1); n == 1 {
					return []byte("a slip"), nil
				}
				if want := "that was wrong; passphrase for " + key; what != want {
					t.Errorf("asked for %q, want %q", what, want)
				}
				return []byte("sesam"), nil
			}})
			tg := target(s)
			tg.IdentityFiles = []string{key}
			dialMany(t, 6, o, tg)
			mustRun(t, o, tg, "true")
			if n := asked.Load(); n != 2 {
				t.Errorf("asked %d times, want 2 (a wrong answer and the right one)", n)
			}
			// The passphrase is not requested if a server accepts another key.
			tg.IdentityFiles = []string{newKey(t, "ed25519", "other"), key}
			mustRun(t, o, tg, "true")
		})
	}
}

// lockedKey makes a key with the passphrase "sesam", which the server accepts: an ed25519 key, or
// an RSA key in the old PEM format, in which the public half cannot be read without the passphrase.
func lockedKey(t *testing.T, s *hosttest.SSHD, kind string) string {
	t.Helper()
	key := newKey(t, strings.Fields(kind)[0], "sesam")
	write(t, s.AuthorizedKeys(), read(t, key+".pub"))
	if kind == "ed25519" {
		return key
	}
	must(t, errors.Join(hosttest.ChangePassphrase(key, "sesam", "sesam", "-m", "PEM"), os.Remove(key+".pub")))
	if text := read(t, key); !strings.Contains(text, "ENCRYPTED") {
		t.Fatalf("not an encrypted PEM key: %s", text)
	}
	return key
}

// TestPassphraseNotGiven checks that the message says what to do if there is nobody to ask, if the
// person gives up, and if the person does not know the passphrase. The person is not asked again.
func TestPassphraseNotGiven(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{Passphrase: "sesam"})
	mustFail(t, NewSSH(SSHOptions{}), target(s), hosts.Denied, s.Identity, "no terminal to ask", "ssh-add")

	asked := 0
	gaveUp := NewSSH(SSHOptions{Prompt: func(string) ([]byte, error) {
		asked++
		return nil, errors.New("interrupted")
	}})
	for range 2 {
		mustFail(t, gaveUp, target(s), hosts.Denied, s.Identity, "passphrase was not given: interrupted")
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}

	asked = 0
	guesses := NewSSH(SSHOptions{Prompt: func(string) ([]byte, error) { asked++; return []byte("guess"), nil }})
	mustFail(t, guesses, target(s), hosts.Denied, "wrong 3 times")
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// TestCallerDoesNotWaitForAPassphrase checks that a caller whose context ends does not wait for the
// person. Its error is that nobody answered, not that the host refuses. A refusal would end a run
// because somebody types slowly.
func TestCallerDoesNotWaitForAPassphrase(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	for _, kind := range []string{"ed25519", "rsa without its public half"} {
		t.Run(kind, func(t *testing.T) {
			key := lockedKey(t, s, kind)
			tg := target(s)
			tg.IdentityFiles = []string{key}
			ctx, cancel := context.WithCancel(contextUnlessStuck(t))
			answer := make(chan struct{})
			o := NewSSH(SSHOptions{Prompt: func(string) ([]byte, error) {
				cancel()
				<-answer
				return []byte("sesam"), nil
			}})
			_, err := o.dialTarget(ctx, "melon4", tg)
			if !errors.Is(err, hosts.ErrUnanswered) || hosts.ClassOf(err) != hosts.Unreachable ||
				!strings.Contains(fmt.Sprint(err), key) {
				t.Errorf("without an answer: %v", err)
			}
			close(answer)
			// A later answer is kept.
			mustRun(t, o, tg, "true")
		})
	}
}

// TestCertificateOfAKeyIsUsed checks that a key with a certificate is accepted where the key alone
// is not. The certificate may be beside the key, in a CertificateFile, or in the agent.
func TestCertificateOfAKeyIsUsed(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	key := newKey(t, "ed25519", "")
	must(t, hosttest.Sign(s.UserCA(), key, false, s.User))
	tg := target(s)
	tg.IdentityFiles = []string{key}
	t.Run("beside the key", func(t *testing.T) { mustRun(t, NewSSH(SSHOptions{}), tg, "true") })

	elsewhere := filepath.Join(t.TempDir(), "my.cert")
	must(t, os.Rename(key+"-cert.pub", elsewhere))
	t.Run("not found", func(t *testing.T) { mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, key) })
	tg.CertificateFiles = []string{"/nonexistent/cert", key + ".pub", elsewhere}
	t.Run("CertificateFile", func(t *testing.T) { mustRun(t, NewSSH(SSHOptions{}), tg, "true") })
	t.Run("key in the agent", func(t *testing.T) {
		tg := *tg
		tg.IdentityAgent = hosttest.StartAgent(t, key)
		tg.IdentityFiles, tg.IdentitiesOnly = nil, true
		mustRun(t, NewSSH(SSHOptions{}), &tg, "true")
	})
	t.Run("for somebody else", func(t *testing.T) {
		other := newKey(t, "ed25519", "")
		must(t, hosttest.Sign(s.UserCA(), other, false, "nobody-of-that-name"))
		tg := target(s)
		tg.IdentityFiles = []string{other}
		mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, "the certificate of "+other,
			"which is for nobody-of-that-name, not for "+s.User, "get a new certificate")
	})
}

// TestCertificateProblem checks the reasons for which a server may refuse a certificate.
func TestCertificateProblem(t *testing.T) {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.Local)
	at := func(d time.Duration) uint64 { return uint64(now.Add(d).Unix()) }
	for want, cert := range map[string]ssh.Certificate{
		"": {
			ValidAfter:      at(-time.Hour),
			ValidBefore:     at(time.Hour),
			ValidPrincipals: []string{"ada", "bob"},
		},
		"which expired on 2026-03-14 11:00":    {ValidBefore: at(-time.Hour)},
		"which is valid from 2026-03-14 13:00": {ValidAfter: at(time.Hour), ValidBefore: ssh.CertTimeInfinity},
		"which is for bob and eve, not for ada": {
			ValidBefore:     ssh.CertTimeInfinity,
			ValidPrincipals: []string{"bob", "eve"},
		},
	} {
		if got := certificateProblem(&cert, "ada", now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	forAll := ssh.Certificate{ValidBefore: ssh.CertTimeInfinity}
	if got := certificateProblem(&forAll, "ada", now); got != "" {
		t.Errorf("a certificate for all at all times: got %q", got)
	}
}

// untouchedKey is an agent with one security key that nobody touches.
type untouchedKey struct {
	agent.Agent
	key    ssh.PublicKey
	signed chan struct{} // closed when a signature is requested
	stop   chan struct{}
}

func (k *untouchedKey) List() ([]*agent.Key, error) {
	return []*agent.Key{{Format: k.key.Type(), Blob: k.key.Marshal(), Comment: "yubikey"}}, nil
}

func (k *untouchedKey) Sign(ssh.PublicKey, []byte) (*ssh.Signature, error) {
	close(k.signed)
	<-k.stop
	return nil, errors.New("not touched")
}

// TestSecurityKeyThatWaitsForATouch checks that a person is told to touch a security key, and that the
// error names the key if the time is over, whoever ends the attempt.
func TestSecurityKeyThatWaitsForATouch(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	public, _, err := ed25519.GenerateKey(nil)
	must(t, err)
	// PROTOCOL.u2f of OpenSSH.
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Kind        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, public, "ssh:"}))
	must(t, err)
	write(t, s.AuthorizedKeys(), keyText(key))
	k := &untouchedKey{key: key, signed: make(chan struct{}), stop: make(chan struct{})}
	socket := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		if c, err := listener.Accept(); err == nil {
			agent.ServeAgent(k, c)
			c.Close()
		}
	})
	defer func() { close(k.stop); listener.Close(); wg.Wait() }()
	tg := target(s)
	tg.IdentityAgent, tg.IdentityFiles, tg.Explicit = socket, nil, false
	said := make(chan string, 10)
	ctx, cancel := context.WithCancel(contextUnlessStuck(t))
	go func() { <-k.signed; cancel() }()
	_, err = NewSSH(SSHOptions{Warn: func(_, text string) { said <- text }}).dialTarget(ctx, "melon4", tg)
	checkError(t, err, hosts.Unreachable, "touch the security key", ssh.FingerprintSHA256(key))
	if !errors.Is(err, hosts.ErrUnanswered) {
		t.Errorf("got %v, want ErrUnanswered", err)
	}
	if text := <-said; !strings.Contains(text, "touch the security key") {
		t.Errorf("said %q", text)
	}
}

// TestKeysOfTheAgentAreUsed checks that the agent's keys are used, with IdentitiesOnly only those
// that are named. The passphrase of a key that the agent holds is not requested.
func TestKeysOfTheAgentAreUsed(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	socket := hosttest.StartAgent(t, newKey(t, "rsa", ""), newKey(t, "ecdsa", ""), s.Identity)
	tg := target(s)
	tg.IdentityAgent, tg.IdentityFiles, tg.Explicit = socket, nil, false
	t.Run("any key", func(t *testing.T) { mustRun(t, NewSSH(SSHOptions{}), tg, "true") })
	tg.IdentitiesOnly = true
	t.Run("IdentitiesOnly, none named", func(t *testing.T) {
		mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, "no key to offer")
	})
	tg.IdentityFiles = []string{s.Identity + ".pub"}
	t.Run("named by its public half", func(t *testing.T) { mustRun(t, NewSSH(SSHOptions{}), tg, "true") })

	locked := filepath.Join(t.TempDir(), "id")
	write(t, locked, read(t, s.Identity))
	must(t, hosttest.ChangePassphrase(locked, "", "sesam"))
	tg.IdentityFiles = []string{locked}
	t.Run("locked file", func(t *testing.T) { mustRun(t, NewSSH(SSHOptions{}), tg, "true") })

	t.Run("agent gone", func(t *testing.T) {
		tg := target(s)
		tg.IdentityAgent = filepath.Join(t.TempDir(), "no-agent")
		mustRun(t, NewSSH(SSHOptions{}), tg, "true")
		tg.IdentityFiles = nil
		mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, "agent at "+tg.IdentityAgent)
	})
}

// TestAgentRefusesToSign checks that the keys after one for which the agent refuses to sign are
// still tried.
func TestAgentRefusesToSign(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	second := newKey(t, "ed25519", "")
	write(t, s.AuthorizedKeys(), read(t, s.Identity+".pub")+read(t, second+".pub"))
	tg := target(s)
	// -c asks for a confirmation, which nobody can give here.
	tg.IdentityAgent = hosttest.StartAgent(t, "-c", s.Identity)
	tg.IdentityFiles = []string{s.Identity, second}
	mustRun(t, NewSSH(SSHOptions{}), tg, "true")
	tg.IdentityFiles = tg.IdentityFiles[:1]
	mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, "could not sign")
}
