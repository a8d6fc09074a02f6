package link

import (
	"bytes"
	"cmp"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/regular"
	"dcs-tui/internal/text"
)

// plainAlgorithms are requested from a host that no file knows, in OpenSSH's order of
// preference.
var plainAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// certAlgorithms are the kinds of host certificates. The kind depends on the host's key,
// not on that of the authority, so all are requested.
var certAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// hostKeyCheck checks the host key of one target.
type hostKeyCheck struct {
	opener    *SSHOpener
	host      string // inventory name
	target    *Target
	files     *knownHosts
	acceptNew bool
	passed    bool   // a key was accepted
	err       error  // why the key was refused
	shown     string // fingerprint of the key that the host has shown; "": none yet
}

func (o *SSHOpener) newHostKeyCheck(host string, t *Target) (*hostKeyCheck, error) {
	files, err := o.knownFiles.load(t.KnownHosts)
	if err != nil {
		return nil, &hosts.Error{Host: host, Class: hosts.Misconfigured, Err: err}
	}
	for _, b := range files.problems {
		o.warn(host, b)
	}
	accept := o.opts.AcceptNew || t.AcceptNew
	return &hostKeyCheck{opener: o, host: host, target: t, files: files, acceptNew: accept}, nil
}

// name returns the name by which the target's key is looked up and remembered. An alias is used as it
// stands, so it may have the form [HOST]:PORT.
func (c *hostKeyCheck) name() string {
	if alias := c.target.HostKeyAlias; strings.HasPrefix(alias, "[") {
		return alias
	} else if alias != "" {
		return net.JoinHostPort(alias, "22")
	}
	return net.JoinHostPort(strings.ToLower(c.target.HostName), strconv.Itoa(c.target.Port))
}

// portless returns the name without its port, or "" if that is the same. Like OpenSSH, we accept a
// key that is known for the machine on any of its ports.
func (c *hostKeyCheck) portless() string {
	if c.target.HostKeyAlias != "" || c.target.Port == 22 {
		return ""
	}
	return net.JoinHostPort(strings.ToLower(c.target.HostName), "22")
}

// algorithms returns the host key algorithms to request. Servers have several keys and
// files mostly one, so the server must be asked for the one that can be compared.
func (c *hostKeyCheck) algorithms() ([]string, error) {
	list, isKnown := c.knownAlgorithms(c.name())
	if !isKnown { // keys that are known for another port come first, but any is accepted
		if p := c.portless(); p != "" {
			others, _ := c.knownAlgorithms(p)
			list = appendNew(list, others...)
		}
		list = appendNew(list, plainAlgorithms...)
	}
	if len(c.target.HostKeyAlgorithms) == 0 {
		return list, nil
	}
	var wanted []string
	for _, a := range c.target.HostKeyAlgorithms {
		if slices.Contains(list, a) || (!isKnown && slices.Contains(ssh.InsecureAlgorithms().HostKeys, a)) {
			wanted = append(wanted, a)
		}
	}
	if len(wanted) == 0 {
		return nil, c.fail(fmt.Errorf("HostKeyAlgorithms of the ssh configuration leaves none of the kinds of key "+
			"that %s is known by: %s",
			c.name(), strings.Join(list, ", ")), "correct HostKeyAlgorithms")
	}
	return wanted, nil
}

// knownAlgorithms returns the algorithms of the keys that are known for name, certificates first.
// own reports whether any of them is the host's own key, not that of an authority.
func (c *hostKeyCheck) knownAlgorithms(name string) (list []string, own bool) {
	var certs, plain []string
	for _, k := range c.files.db.HostKeys(name) {
		switch {
		case k.Cert:
			certs = certAlgorithms
		case k.Type() == ssh.KeyAlgoRSA:
			plain = append(plain, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA)
		default:
			plain = append(plain, k.Type())
		}
	}
	return appendNew(slices.Clone(certs), plain...), len(plain) > 0
}

// check is the library's callback.
func (c *hostKeyCheck) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	c.shown = fingerprint(key)
	c.err = c.compare(key)
	if bits := rsaBits(key); bits > 0 && bits < c.target.RequiredRSASize {
		c.err = c.fail(fmt.Errorf("its host key is an RSA key of %d bits, and RequiredRSASize is %d",
			bits, c.target.RequiredRSASize),
			"ask who runs it for a larger key")
	}
	if c.err == errUnknown && c.acceptNew {
		c.err = c.remember(key)
	} else if c.err == errUnknown {
		c.err = c.unknown(key)
	}
	c.passed = c.err == nil
	return c.err
}

// rsaBits returns the size of an RSA key, or 0 for a key of another kind.
func rsaBits(key ssh.PublicKey) int {
	if crypto, ok := plainKey(key).(ssh.CryptoPublicKey); ok {
		if public, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok {
			return public.N.BitLen()
		}
	}
	return 0
}

// errUnknown is the result of compare if no file has the name or the key.
var errUnknown = errors.New("unknown host key")

// compare compares the key with those in the files.
func (c *hostKeyCheck) compare(key ssh.PublicKey) error {
	callback := c.files.db.HostKeyCallback()
	err := callback(c.name(), nowhere, key)
	if err == nil {
		return nil
	}
	if revoked, ok := errors.AsType[*xknownhosts.RevokedError](err); ok {
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
			"ask who runs it for a certificate that is valid for the name "+c.target.HostName)
	}
	if differs == nil {
		return c.fail(err, "")
	}
	return errUnknown
}

// ownKeys returns the keys in want that are not those of authorities.
func (c *hostKeyCheck) ownKeys(want []xknownhosts.KnownKey) []xknownhosts.KnownKey {
	authorities := c.files.db.HostKeys(c.name())
	return slices.DeleteFunc(slices.Clone(want), func(k xknownhosts.KnownKey) bool {
		return slices.ContainsFunc(authorities, func(a knownhosts.PublicKey) bool {
			return a.Cert && bytes.Equal(a.Marshal(), k.Key.Marshal())
		})
	})
}

func (c *hostKeyCheck) changed(key ssh.PublicKey, want []xknownhosts.KnownKey) error {
	// A line with a key of the same kind is the most helpful one.
	i := max(0, slices.IndexFunc(want, func(k xknownhosts.KnownKey) bool { return k.Key.Type() == key.Type() }))
	place := c.files.place(want[i].Filename, want[i].Line)
	file := c.files.originalName(want[i].Filename)
	return c.fail(fmt.Errorf("its host key has CHANGED: it shows %s, but %s says %s",
		fingerprint(key), place, fingerprint(want[i].Key)),
		fmt.Sprintf("the connection may be intercepted, or the machine was reinstalled: ask who runs it, "+
			"and only then: ssh-keygen -R %s -f %s",
			text.ShellWord(knownhosts.Normalize(c.name())), text.ShellWord(file)))
}

func (c *hostKeyCheck) unknown(key ssh.PublicKey) error {
	looked := cmp.Or(strings.Join(c.target.KnownHosts, ", "), "any file")
	advice := "run `" + commandLine(c.target.Command) + "` once and answer yes, or use --accept-new"
	if c.fileOfNewKeys() == "" {
		advice = "set UserKnownHostsFile to a file in which ssh can remember it, or use --accept-new, " +
			"which accepts any key each time"
	}
	return c.fail(fmt.Errorf("its host key %s is not known in %s", fingerprint(key), looked),
		"if that is the right fingerprint, "+advice)
}

// fileOfNewKeys returns the user's file to which new keys are added, or "" if the user wants none.
func (c *hostKeyCheck) fileOfNewKeys() string {
	if len(c.target.KnownHosts) == 0 || c.target.KnownHosts[0] == os.DevNull {
		return ""
	}
	return c.target.KnownHosts[0]
}

// noComparableKeyError is the error for a server none of whose keys can be compared with a known
// one.
func (c *hostKeyCheck) noComparableKeyError(offered []string) error {
	return c.fail(fmt.Errorf("it offers host keys of the kinds %s, but is known by others",
		strings.Join(offered, ", ")),
		fmt.Sprintf("the connection may be intercepted, or the host keys were replaced: ask who runs it; "+
			"`ssh-keygen -F %s` shows what is known",
			text.ShellWord(knownhosts.Normalize(c.name()))))
}

func (c *hostKeyCheck) fail(err error, advice string) error {
	return &hosts.Error{Host: c.host, Class: hosts.HostKey, Err: err, Advice: advice, Fingerprint: c.shown}
}

// fingerprint returns kind and hash of a key as OpenSSH shows them.
func fingerprint(key ssh.PublicKey) string {
	return strings.TrimPrefix(plainKey(key).Type(), "ssh-") + " " + ssh.FingerprintSHA256(plainKey(key))
}

// remember adds an unknown key to the user's first known_hosts file. It reads the files
// again first, because another process may have added another key. Like OpenSSH, it accepts the key
// also if the user wants no file.
func (c *hostKeyCheck) remember(key ssh.PublicKey) error {
	file := c.fileOfNewKeys()
	if file == "" {
		c.opener.warn(c.host, fmt.Sprintf("new host key %s accepted, but not remembered: "+
			"UserKnownHostsFile names no file", fingerprint(key)))
		return nil
	}
	cannot := func(err error) error {
		return &hosts.Error{Host: c.host, Class: hosts.Misconfigured,
			Err: fmt.Errorf("its host key cannot be remembered: %w", err), Advice: "make " + file + " writable"}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return cannot(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return cannot(err)
	}
	defer f.Close()
	// One writer at a time, here and in other processes of ours. Closing f unlocks it.
	c.opener.writeMu.Lock()
	defer c.opener.writeMu.Unlock()
	lockFile(f)
	if c.files, err = readKnown(c.target.KnownHosts); err != nil {
		return cannot(err)
	}
	if err := c.compare(key); err != errUnknown {
		return err
	}
	name := c.name()
	if c.target.HashKnownHosts {
		name = xknownhosts.HashHostname(knownhosts.Normalize(name))
	}
	line := knownhosts.Line([]string{name}, plainKey(key)) + "\n"
	if !endsWithNewline(f) {
		line = "\n" + line
	}
	if _, err := f.WriteString(line); err != nil {
		return cannot(err)
	}
	if err := f.Close(); err != nil {
		return cannot(err)
	}
	c.opener.warn(c.host, fmt.Sprintf("new host key %s written to %s", fingerprint(key), file))
	return nil
}

// lockFile waits at most 2 s for other programs. Without the lock, which not every file
// system has, the line is still appended in one write.
func lockFile(f *os.File) {
	for range 100 {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK && err != unix.EINTR {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// endsWithNewline reports whether the file is empty or ends with a newline.
func endsWithNewline(f *os.File) bool {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return true
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return true
	}
	return last[0] == '\n'
}

// nowhere is passed as the address of the server, because keys are looked up by name.
var nowhere = &net.TCPAddr{IP: net.IPv4zero}

// knownFiles caches sets of known_hosts files. A set is read again if a file has changed.
type knownFiles struct {
	mu   sync.Mutex
	sets map[string]*knownHosts
}

// knownHosts is one set of files as it was read. It does not change.
type knownHosts struct {
	files    []string // those that exist
	stamps   []stamp  // of all files of the set
	db       *knownhosts.HostKeyDB
	names    map[string]string // name of a file by that of its cleaned copy
	problems []string          // of files and lines that were ignored, for people
}

func (k *knownFiles) load(files []string) (*knownHosts, error) {
	key := strings.Join(files, "\x00")
	stamps := make([]stamp, len(files))
	for i, f := range files {
		stamps[i] = fileStamp(f)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if set := k.sets[key]; set != nil && slices.Equal(set.stamps, stamps) {
		return set, nil
	}
	set, err := readKnown(files)
	if err != nil {
		return nil, err
	}
	set.stamps = stamps
	if k.sets == nil {
		k.sets = map[string]*knownHosts{}
	}
	k.sets[key] = set
	return set, nil
}

// readKnown reads the files that exist. Like OpenSSH it skips files that cannot be read, and lines
// that cannot be parsed, for which the library would reject all files. Both are problems of the set.
func readKnown(files []string) (*knownHosts, error) {
	set := &knownHosts{names: map[string]string{}}
	for _, name := range files {
		err := checkKnownFile(name)
		switch {
		case errors.Is(err, os.ErrNotExist), name == os.DevNull:
		case err != nil:
			set.problems = append(set.problems, fmt.Sprintf("known host keys cannot be read: %v (file ignored)", err))
		default:
			set.files = append(set.files, name)
		}
	}
	var err error
	if set.db, err = knownhosts.NewDB(set.files...); err == nil {
		return set, nil
	}
	dir, err := os.MkdirTemp("", "dcs-known-")
	if err != nil {
		return nil, fmt.Errorf("known host keys: %w", err)
	}
	defer os.RemoveAll(dir)
	var copies []string
	for i, name := range set.files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("known host keys cannot be read: %w", err)
		}
		copied := filepath.Join(dir, strconv.Itoa(i))
		good, bad, err := cleanKnown(text, copied)
		if err != nil {
			return nil, fmt.Errorf("known host keys: %w", err)
		}
		for _, b := range bad {
			set.problems = append(set.problems, name+":"+b+" (line ignored)")
		}
		if err := os.WriteFile(copied, good, 0o600); err != nil {
			return nil, fmt.Errorf("known host keys: %w", err)
		}
		set.names[copied] = name
		copies = append(copies, copied)
	}
	if set.db, err = knownhosts.NewDB(copies...); err != nil {
		return nil, fmt.Errorf("known host keys cannot be read: %w", err)
	}
	return set, nil
}

// checkKnownFile returns an error if a file cannot be read, or may have no end.
func checkKnownFile(name string) error {
	f, err := regular.Open(os.OpenFile, name, 0)
	if err == nil {
		f.Close()
	}
	return err
}

// originalName returns the file of which file is the cleaned copy, or file itself.
func (k *knownHosts) originalName(file string) string { return cmp.Or(k.names[file], file) }

// place returns the file and line of a known key.
func (k *knownHosts) place(file string, line int) string {
	return fmt.Sprintf("%s:%d", k.originalName(file), line)
}

// cleanKnown empties the lines of a known_hosts file that the library cannot parse, so that line
// numbers stay the same. It parses each line alone, in the file scratch. bad has a "LINE: problem"
// for each.
func cleanKnown(text []byte, scratch string) (good []byte, bad []string, err error) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if err := os.WriteFile(scratch, line, 0o600); err != nil {
			return nil, nil, err
		}
		if _, err := knownhosts.NewDB(scratch); err != nil {
			why := strings.TrimPrefix(err.Error(), "knownhosts: "+scratch+":1: ")
			bad = append(bad, fmt.Sprintf("%d: %s", n, strings.TrimPrefix(why, "knownhosts: ")))
			line = []byte("\n")
		}
		good = append(good, line...)
	}
	return good, bad, nil
}
