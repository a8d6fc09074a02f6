package sshlink

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skeema/knownhosts"
)

const edKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2wQ3Ul4hT5bE3n9eQ1a0n2w5i1J8sH7yq7c2vI0mYV"

// Lines that the library would stop at are named and emptied, each in its place.
func TestCleanKnown(t *testing.T) {
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
		{"melon4", "not a host"},
		{"melon4 ssh-ed25519", "not a host"},
		{"melon4 ssh-rsa " + strings.Fields(edKey)[1], "of type ssh-ed25519"},
		{"melon4 ssh-ed25519 ????", "base64"},
		{"melon4 ssh-future AAAACnNzaC1mdXR1cmU=", "cannot be used"},
		{"@whatever melon4 " + edKey, "marker @whatever"},
		{"@cert-authority @revoked x " + edKey, "marker @revoked"},
		{"|2|aaaa|bbbb " + edKey, "unknown kind"},
		{"|1|aaaa|b!bb " + edKey, "base64"},
		{"a,! " + edKey, "!"},
		{"[melon4 " + edKey, "[HOST]:PORT"},
		{"melon4 " + edKey + strings.Repeat(" x", 40_000), "too long"},
	} {
		good, bad := cleanKnown([]byte("# first\n" + c.line + "\nlast " + edKey))
		if c.bad == "" && len(bad) != 0 || c.bad != "" && (len(bad) != 1 || !strings.HasPrefix(bad[0], "2: ") || !strings.Contains(bad[0], c.bad)) {
			t.Errorf("%.60q: bad %q, want %q", c.line, bad, c.bad)
		}
		if n := bytes.Count(good, []byte("\n")); n != 2 || !bytes.HasSuffix(good, []byte("\nlast "+edKey)) {
			t.Errorf("%.60q: the lines were shifted:\n%s", c.line, good)
		}
	}
}

// FuzzCleanKnown: what is left of any file, the library reads.
func FuzzCleanKnown(f *testing.F) {
	for _, s := range []string{
		"melon4 " + edKey + "\n", "@cert-authority *.lab " + edKey, "@revoked", "|1|a|b " + edKey, "[a]:b,c " + edKey + " \n#\n\r\n",
		"!,a " + edKey, "|1|=|= " + edKey, "\x00 \t" + edKey, ", " + edKey, "a\rb " + edKey + "\r",
	} {
		f.Add([]byte(s))
	}
	file := filepath.Join(f.TempDir(), "known_hosts")
	f.Fuzz(func(t *testing.T, text []byte) {
		good, _ := cleanKnown(text)
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := knownhosts.NewDB(file); err != nil {
			t.Errorf("%q became %q: %v", text, good, err)
		}
	})
}
