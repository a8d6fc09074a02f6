package link

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
)

func publicKey(t *testing.T, file string) ssh.PublicKey {
	t.Helper()
	k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(read(t, file)))
	must(t, err)
	return k
}

// TestKnownHostKeysAreAccepted checks that a host key is accepted or refused according to the
// known_hosts files, and that each kind of refusal has its own message.
func TestKnownHostKeysAreAccepted(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{RSA: true, ECDSA: true})
	host := publicKey(t, s.HostKey()+".pub")
	rsa := publicKey(t, strings.Replace(s.HostKey(), "ed25519", "rsa", 1)+".pub")
	other := publicKey(t, s.Identity+".pub")
	name := fmt.Sprintf("[127.0.0.1]:%d", s.Port)
	line := func(name string, k ssh.PublicKey) string { return knownhosts.Line([]string{name}, k) + "\n" }

	for _, c := range []struct {
		what, file string
		alias      string
		algorithms []string
		ok         bool
		words      []string
	}{
		{what: "known", file: line(name, host), ok: true},
		{what: "known by a hashed name", file: line(xknownhosts.HashHostname(name), host), ok: true},
		{what: "known without a port", file: line("127.0.0.1", host), ok: true},
		{what: "known by a pattern", file: line("127.0.0.*", host), ok: true},
		{what: "known by another kind of key only", file: line(name, rsa), ok: true},
		{what: "known by two kinds", file: line(name, rsa) + line(name, host), ok: true},
		{what: "known under an alias", file: line("lab", host), alias: "lab", ok: true},
		{what: "known under an alias with a port", file: line("[lab]:2200", host), alias: "[lab]:2200", ok: true},
		{what: "a line nobody can read", file: "lab ssh-future AAAA\n" + line(name, host), ok: true},
		{what: "unknown", file: "", words: []string{"not known in", ssh.FingerprintSHA256(host), "ed25519",
			"run `ssh -F 'my config' melon4` once", "--accept-new"}},
		{what: "unknown under an alias", file: line(name, host), alias: "lab", words: []string{"not known in"}},
		{
			what: "changed",
			file: "# a comment\n" + line(name, other),
			words: []string{
				"CHANGED",
				":2 says",
				ssh.FingerprintSHA256(other),
				ssh.FingerprintSHA256(host),
				"ssh-keygen -R '[127.0.0.1]:",
			},
		},
		{
			what:  "changed, behind a line nobody can read",
			file:  "lab ssh-future AAAA\n" + line(name, other),
			words: []string{"CHANGED", "/known_hosts:2 says", "-f /"},
		},
		{what: "changed, no key of that kind", file: line(name, ecdsaKey(t)), words: []string{"CHANGED"}},
		{what: "another machine's key without a port", file: line("127.0.0.1", other), words: []string{"not known"}},
		{
			what:  "revoked",
			file:  line(name, host) + "@revoked * " + strings.SplitN(line("x", host), " ", 2)[1],
			words: []string{"@revoked", ":2"},
		},
		{
			what:       "algorithms of the user",
			file:       line(name, rsa) + line(name, host),
			algorithms: []string{"rsa-sha2-512"},
			ok:         true,
		},
		{
			what:       "algorithms that exclude what is known",
			file:       line(name, host),
			algorithms: []string{"rsa-sha2-512"},
			words:      []string{"HostKeyAlgorithms"},
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			tg := target(s)
			tg.KnownHosts = []string{write(t, filepath.Join(t.TempDir(), "known_hosts"), c.file)}
			tg.HostKeyAlias, tg.HostKeyAlgorithms = c.alias, c.algorithms
			tg.Command = []string{"ssh", "-F", "my config", "melon4"}
			if c.ok {
				mustRun(t, NewSSH(SSHOptions{}), tg, "true")
				return
			}
			mustFail(t, NewSSH(SSHOptions{}), tg, hosts.HostKey, c.words...)
			if strings.Contains(c.words[0], "not known") {
				return
			}
			// AcceptNew does not change the result for a wrong key.
			before := read(t, tg.KnownHosts[0])
			mustFail(t, NewSSH(SSHOptions{AcceptNew: true}), tg, hosts.HostKey, c.words...)
			if after := read(t, tg.KnownHosts[0]); after != before {
				t.Errorf("known_hosts was changed to %s", after)
			}
		})
	}
}

// TestHostKeyOfAnotherKind checks that a server is refused if it offers no key of the types that
// are known for it. It must not pass as a new server.
func TestHostKeyOfAnotherKind(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	tg := target(s)
	tg.KnownHosts = []string{write(t, filepath.Join(t.TempDir(), "known_hosts"),
		knownhosts.Line([]string{fmt.Sprintf("[127.0.0.1]:%d", s.Port)}, ecdsaKey(t))+"\n")}
	mustFail(t, NewSSH(SSHOptions{AcceptNew: true}), tg, hosts.HostKey, "offers host keys of the kinds ssh-ed25519",
		"ssh-keygen -F")
}

func ecdsaKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	must(t, hosttest.NewKey(file, "ecdsa", ""))
	return publicKey(t, file+".pub")
}

// TestCertificatesNeedAKnownAuthority checks that host certificates are accepted only from an
// authority in the known_hosts file.
func TestCertificatesNeedAKnownAuthority(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{HostCA: true, RSA: true})
	mustRun(t, NewSSH(SSHOptions{}), target(s), "true")

	ca := publicKey(t, s.HostCA()+".pub")
	other := publicKey(t, s.Identity+".pub")
	dir := t.TempDir()
	for what, c := range map[string]struct {
		file string
		ok   bool
	}{
		"pattern without a port": {"@cert-authority 127.0.0.1 " + keyText(ca), true},
		"pattern with a star":    {"@cert-authority * " + keyText(ca), true},
		"another authority":      {"@cert-authority * " + keyText(other), false},
		"authority of others":    {"@cert-authority *.lab " + keyText(ca), false},
		"revoked authority":      {"@cert-authority * " + keyText(ca) + "@revoked * " + keyText(ca), false},
	} {
		tg := target(s)
		tg.KnownHosts = []string{write(t, filepath.Join(dir, strings.ReplaceAll(what, " ", "_")), c.file)}
		if c.ok {
			mustRun(t, NewSSH(SSHOptions{}), tg, "true")
		} else {
			mustFail(t, NewSSH(SSHOptions{}), tg, hosts.HostKey)
		}
	}
}

func keyText(k ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(k)) }

// TestUnknownKeyIsRecordedOnRequest checks that an unknown key is recorded only on request, once
// for any number of simultaneous hosts, and in a file that only the user may read. Later
// connections use the recorded key.
func TestUnknownKeyIsRecordedOnRequest(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	file := filepath.Join(t.TempDir(), "new", "known_hosts")
	tg := target(s)
	tg.KnownHosts = []string{file}
	var mu sync.Mutex
	var said []string
	o := NewSSH(SSHOptions{AcceptNew: true, Warn: func(host, text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, host+": "+text)
	}})
	dialMany(t, 6, o, tg)
	if text := read(t, file); strings.Count(text, "\n") != 1 {
		t.Errorf("more or less than one line:\n%s", text)
	}
	if st, _ := os.Stat(file); st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	if len(said) != 1 || !strings.Contains(said[0], "new host key ed25519 SHA256:") {
		t.Errorf("said %q", said)
	}
	mustRun(t, NewSSH(SSHOptions{}), tg, "true")

	// The configuration enables it, and the last line of the file is not terminated.
	tg.AcceptNew = true
	write(t, file, "# unfinished")
	mustRun(t, NewSSH(SSHOptions{}), tg, "true")
	mustRun(t, NewSSH(SSHOptions{}), tg, "true")
	if text := read(t, file); strings.Count(text, "\n") != 2 {
		t.Errorf("file:\n%s", text)
	}
}

// TestHashKnownHosts checks that a name is recorded as a hash, which the installed ssh-keygen and a
// later connection find.
func TestHashKnownHosts(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	tg := target(s)
	tg.KnownHosts, tg.AcceptNew, tg.HashKnownHosts = []string{filepath.Join(t.TempDir(), "known_hosts")}, true, true
	mustRun(t, NewSSH(SSHOptions{}), tg, "true")
	if text := read(t, tg.KnownHosts[0]); !strings.HasPrefix(text, "|1|") || strings.Contains(text, "127.0.0.1") {
		t.Errorf("the name is not hashed: %s", text)
	}
	tg.AcceptNew = false
	mustRun(t, NewSSH(SSHOptions{}), tg, "true")
	if out, err := exec.Command(
		"ssh-keygen", "-F", fmt.Sprintf("[127.0.0.1]:%d", s.Port), "-f", tg.KnownHosts[0],
	).CombinedOutput(); err != nil {
		t.Errorf("ssh-keygen -F does not find the key: %v: %s", err, out)
	}
}

// TestKnownHostsIsAFile checks that a file of host keys that cannot be read, or may have no end, is
// named in a warning, and that the keys in other files count. /dev/null holds no keys. Accept-new
// fails if known_hosts cannot be written: otherwise, every key would always be new.
func TestKnownHostsIsAFile(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	tg := target(s)
	for _, file := range []string{"/dev/zero", t.TempDir(), s.KnownHosts + "/sub"} {
		var said []string
		o := NewSSH(SSHOptions{Warn: func(_, text string) { said = append(said, text) }})
		tg.KnownHosts = []string{s.KnownHosts, file}
		mustRun(t, o, tg, "true")
		if len(said) != 1 || !strings.Contains(said[0], "cannot be read") || !strings.Contains(said[0], file) {
			t.Errorf("%s: got warnings %q, want one that names the file", file, said)
		}
		tg.KnownHosts = []string{file}
		mustFail(t, o, tg, hosts.HostKey, "is not known in "+file)
	}
	tg.KnownHosts = []string{"/dev/null", s.KnownHosts}
	mustRun(t, NewSSH(SSHOptions{}), tg, "true")
	tg.KnownHosts = []string{filepath.Join(write(t, filepath.Join(t.TempDir(), "a file"), ""), "known_hosts")}
	mustFail(t, NewSSH(SSHOptions{AcceptNew: true}), tg, hosts.Misconfigured, "a file")
}

// TestNoFileForNewKeys checks that a user who wants no known_hosts file, like with OpenSSH, gets every
// new key accepted if --accept-new is set, that nothing is said to be written, and that the advice for an
// unknown key is not to run ssh, which would not remember it either.
func TestNoFileForNewKeys(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	tg := target(s)
	tg.KnownHosts = []string{os.DevNull, filepath.Join(t.TempDir(), "global")}
	mustFail(t, NewSSH(SSHOptions{}), tg, hosts.HostKey, "is not known in /dev/null",
		"set UserKnownHostsFile to a file", "--accept-new")
	var said []string
	o := NewSSH(SSHOptions{AcceptNew: true, Warn: func(_, text string) { said = append(said, text) }})
	mustRun(t, o, tg, "true")
	if len(said) != 1 || !strings.Contains(said[0], "accepted") || strings.Contains(said[0], "written") {
		t.Errorf("got warnings %q, want one that the key is accepted and not remembered", said)
	}
	// The key is compared with the other files nevertheless.
	name := fmt.Sprintf("[127.0.0.1]:%d", s.Port)
	write(t, tg.KnownHosts[1], knownhosts.Line([]string{name}, ecdsaKey(t))+"\n")
	mustFail(t, o, tg, hosts.HostKey, "offers host keys")
}

const edKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2wQ3Ul4hT5bE3n9eQ1a0n2w5i1J8sH7yq7c2vI0mYV"

// TestUnusableKnownHostsLinesAreBlanked checks that lines at which the library would stop are
// reported and blanked, so that the other lines keep their numbers.
func TestUnusableKnownHostsLinesAreBlanked(t *testing.T) {
	for _, c := range []struct{ line, bad string }{
		{"melon4 " + edKey, ""},
		{"  melon4\t" + edKey + " a comment", ""},
		{"# melon4", ""},
		{"", ""},
		{"\r", ""},
		{"@cert-authority *.lab " + edKey, ""},
		{"@revoked * " + edKey, ""},
		{"[melon4]:2222,!x,y " + edKey, ""},
		{"|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= " + edKey, ""},
		{"melon4", "missing host pattern"},
		{"melon4 ssh-ed25519", "missing key type"},
		{"melon4 ssh-rsa " + strings.Fields(edKey)[1], `found "ssh-ed25519"`},
		{"melon4 ssh-ed25519 ????", "base64"},
		{"melon4 ssh-future AAAACnNzaC1mdXR1cmU=", "unknown key algorithm"},
		{"@whatever melon4 " + edKey, `unexpected marker: "@whatever"`},
		{"@cert-authority @revoked x " + edKey, `marker`},
		{"|2|aaaa|bbbb " + edKey, "hash type 2"},
		{"|1|aaaa|b!bb " + edKey, "base64"},
		{"a,! " + edKey, "negation without"},
		{"[melon4 " + edKey, "address [melon4"},
		{"melon4 " + edKey + strings.Repeat(" x", 40_000), "too long"},
	} {
		good, bad, err := cleanKnown([]byte("# first\n"+c.line+"\nlast "+edKey), filepath.Join(t.TempDir(), "line"))
		must(t, err)
		if c.bad == "" && len(bad) != 0 || c.bad != "" &&
			(len(bad) != 1 || !strings.HasPrefix(bad[0], "2: ") || !strings.Contains(bad[0], c.bad)) {
			t.Errorf("%.60q: bad %q, want %q", c.line, bad, c.bad)
		}
		if n := bytes.Count(good, []byte("\n")); n != 2 || !bytes.HasSuffix(good, []byte("\nlast "+edKey)) {
			t.Errorf("%.60q: the lines were shifted:\n%s", c.line, good)
		}
	}
}

// FuzzCleanKnown checks that the library can read what remains of any file.
func FuzzCleanKnown(f *testing.F) {
	for _, s := range []string{
		"melon4 " + edKey + "\n",
		"@cert-authority *.lab " + edKey,
		"@revoked",
		"|1|a|b " + edKey,
		"[a]:b,c " + edKey + " \n#\n\r\n",
		"!,a " + edKey, "|1|=|= " + edKey, "\x00 \t" + edKey, ", " + edKey, "a\rb " + edKey + "\r",
	} {
		f.Add([]byte(s))
	}
	file := filepath.Join(f.TempDir(), "known_hosts")
	f.Fuzz(func(t *testing.T, text []byte) {
		good, _, err := cleanKnown(text, file)
		must(t, err)
		must(t, os.WriteFile(file, good, 0o600))
		if _, err := knownhosts.NewDB(file); err != nil {
			t.Errorf("%q became %q: %v", text, good, err)
		}
	})
}
