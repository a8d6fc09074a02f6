package sshlink

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"dcs-tui/hosts"
	"dcs-tui/hosts/sshconf"
)

// plainAlgorithms are what a host that no file knows is asked for: its key
// itself, the kind that OpenSSH prefers first.
var plainAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// certAlgorithms are the kinds of host certificates. The kind depends on the
// host's key, not on that of the authority, so all are asked for.
var certAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// hostKeyCheck judges the key that one target shows.
type hostKeyCheck struct {
	o      *Opener
	host   string // inventory name
	t      *sshconf.Target
	files  *known
	accept bool
	passed bool  // a key was accepted
	err    error // why the key was refused
}

func (o *Opener) newHostKeyCheck(host string, t *sshconf.Target) (*hostKeyCheck, error) {
	files, err := o.known.load(t.KnownHosts)
	if err != nil {
		return nil, &hosts.Error{Host: host, Class: hosts.Misconfigured, Err: err}
	}
	for _, b := range files.bad {
		o.warn(host, b+" (line ignored)")
	}
	accept := o.opts.AcceptNew || t.Strict == sshconf.AcceptNew
	return &hostKeyCheck{o: o, host: host, t: t, files: files, accept: accept}, nil
}

// name is how the target is looked up, and under what it is remembered.
func (c *hostKeyCheck) name() string {
	if c.t.HostKeyAlias != "" {
		return net.JoinHostPort(c.t.HostKeyAlias, "22")
	}
	return net.JoinHostPort(strings.ToLower(c.t.HostName), strconv.Itoa(c.t.Port))
}

// portless is the name without its port, "" if that is the same. OpenSSH takes
// a key that is known for the machine on any of its ports.
func (c *hostKeyCheck) portless() string {
	if c.t.HostKeyAlias != "" || c.t.Port == 22 {
		return ""
	}
	return net.JoinHostPort(strings.ToLower(c.t.HostName), "22")
}

// algorithms chooses what to ask the server for, so that it shows a key that can
// be compared: servers have several, files mostly one.
func (c *hostKeyCheck) algorithms() ([]string, error) {
	var list []string
	add := func(algos ...string) {
		for _, a := range algos {
			if !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	firm := c.addKnown(add, c.name())
	if !firm {
		// Known for another port only, or not at all: a hint, no restriction.
		if p := c.portless(); p != "" {
			c.addKnown(add, p)
		}
		add(plainAlgorithms...)
	}
	if len(c.t.HostKeyAlgorithms) == 0 {
		return list, nil
	}
	var wanted []string
	for _, a := range c.t.HostKeyAlgorithms {
		if slices.Contains(list, a) || (!firm && slices.Contains(ssh.InsecureAlgorithms().HostKeys, a)) {
			wanted = append(wanted, a)
		}
	}
	if len(wanted) == 0 {
		return nil, c.fail(fmt.Errorf("HostKeyAlgorithms of the ssh configuration leaves none of the kinds of key that %s is known by: %s",
			c.name(), strings.Join(list, ", ")), "mend HostKeyAlgorithms")
	}
	return wanted, nil
}

// addKnown adds the algorithms of the keys that are known for name and says
// whether a key of the host's own is among them.
func (c *hostKeyCheck) addKnown(add func(...string), name string) (own bool) {
	keys := c.files.db.HostKeys(name)
	for _, k := range keys {
		if k.Cert {
			add(certAlgorithms...)
		}
	}
	for _, k := range keys {
		switch {
		case k.Cert:
		case k.Type() == ssh.KeyAlgoRSA:
			add(ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA)
			own = true
		default:
			add(k.Type())
			own = true
		}
	}
	return own
}

// check is the library's callback.
func (c *hostKeyCheck) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	c.err = c.judge(key)
	c.passed = c.err == nil
	return c.err
}

func (c *hostKeyCheck) judge(key ssh.PublicKey) error {
	if err := c.compare(key); err == nil || !isUnknown(err) {
		return err
	}
	if !c.accept {
		return c.unknown(key)
	}
	return c.remember(key)
}

// errUnknown: no file says anything of the key or the name.
var errUnknown = errors.New("unknown host key")

func isUnknown(err error) bool { return errors.Is(err, errUnknown) }

// compare holds the key against the files.
func (c *hostKeyCheck) compare(key ssh.PublicKey) error {
	callback := c.files.db.HostKeyCallback()
	err := callback(c.name(), nowhere, key)
	if err == nil {
		return nil
	}
	var revoked *xknownhosts.RevokedError
	if errors.As(err, &revoked) {
		return c.fail(fmt.Errorf("its host key (%s) is marked @revoked in %s", fingerprint(key),
			c.files.place(revoked.Revoked.Filename, revoked.Revoked.Line)), "do not connect; ask who runs it")
	}
	var differs *xknownhosts.KeyError
	if errors.As(err, &differs) {
		if want := c.ownKeys(differs.Want); len(want) > 0 {
			return c.changed(key, want)
		}
	}
	if p := c.portless(); p != "" && callback(p, nowhere, key) == nil {
		return nil
	}
	if _, isCert := key.(*ssh.Certificate); isCert {
		return c.fail(fmt.Errorf("its host certificate is not good: %s", strings.TrimPrefix(err.Error(), "ssh: ")),
			"ask who runs it for a certificate that is valid for the name "+c.t.HostName)
	}
	if differs == nil {
		return c.fail(err, "")
	}
	return errUnknown
}

// ownKeys leaves out authorities: they are no keys of the host.
func (c *hostKeyCheck) ownKeys(want []xknownhosts.KnownKey) []xknownhosts.KnownKey {
	authorities := c.files.db.HostKeys(c.name())
	return slices.DeleteFunc(slices.Clone(want), func(k xknownhosts.KnownKey) bool {
		return slices.ContainsFunc(authorities, func(a knownhosts.PublicKey) bool {
			return a.Cert && bytes.Equal(a.Marshal(), k.Key.Marshal())
		})
	})
}

func (c *hostKeyCheck) changed(key ssh.PublicKey, want []xknownhosts.KnownKey) error {
	// The line of the same kind says most.
	i := max(0, slices.IndexFunc(want, func(k xknownhosts.KnownKey) bool { return k.Key.Type() == key.Type() }))
	place := c.files.place(want[i].Filename, want[i].Line)
	file := c.files.own(want[i].Filename)
	return c.fail(fmt.Errorf("its host key has CHANGED: it shows %s, but %s says %s", fingerprint(key), place, fingerprint(want[i].Key)),
		fmt.Sprintf("the connection may be intercepted, or the machine was reinstalled: ask who runs it, and only then: ssh-keygen -R %s -f %s",
			shellWord(knownhosts.Normalize(c.name())), shellWord(file)))
}

func (c *hostKeyCheck) unknown(key ssh.PublicKey) error {
	looked := strings.Join(c.t.KnownHosts, ", ")
	if looked == "" {
		looked = "any file"
	}
	return c.fail(fmt.Errorf("its host key %s is not known in %s", fingerprint(key), looked),
		fmt.Sprintf("if that is the right fingerprint, run `%s` once and answer yes, or use --accept-new", c.sshCommand()))
}

// missingKind words the failure to agree on a kind of key: what the server has
// cannot be compared with what is known.
func (c *hostKeyCheck) missingKind(offered []string) error {
	return c.fail(fmt.Errorf("it offers host keys of the kinds %s, but is known by others", strings.Join(offered, ", ")),
		fmt.Sprintf("the connection may be intercepted, or the host keys were replaced: ask who runs it; `ssh-keygen -F %s` shows what is known",
			shellWord(knownhosts.Normalize(c.name()))))
}

func (c *hostKeyCheck) fail(err error, advice string) error {
	return &hosts.Error{Host: c.host, Class: hosts.HostKey, Err: err, Advice: advice}
}

// sshCommand is what reaches the same host key with OpenSSH's own client.
func (c *hostKeyCheck) sshCommand() string {
	words := []string{"ssh"}
	if c.t.Port != 22 {
		words = append(words, "-p", strconv.Itoa(c.t.Port))
	}
	var jumps []string
	for _, j := range c.t.Jumps {
		jumps = append(jumps, fmt.Sprintf("%s@%s", j.User, j.Address()))
	}
	if len(jumps) > 0 {
		words = append(words, "-J", shellWord(strings.Join(jumps, ",")))
	}
	if c.t.HostKeyAlias != "" {
		words = append(words, "-o", shellWord("HostKeyAlias="+c.t.HostKeyAlias))
	}
	home, err := os.UserHomeDir()
	if files := c.t.KnownHosts; err == nil && len(files) > 0 && files[0] != filepath.Join(home, ".ssh", "known_hosts") {
		words = append(words, "-o", shellWord("UserKnownHostsFile="+files[0])) // where we look
	}
	return strings.Join(append(words, shellWord(c.t.User+"@"+c.t.HostName)), " ")
}

// fingerprint gives kind and hash as OpenSSH shows them.
func fingerprint(key ssh.PublicKey) string {
	return strings.TrimPrefix(plainKey(key).Type(), "ssh-") + " " + ssh.FingerprintSHA256(plainKey(key))
}

// shellWord quotes s where a shell would need it.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%_+=:,./-", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
