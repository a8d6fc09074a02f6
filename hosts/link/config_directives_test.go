package link

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
)

var updatePage = flag.Bool("update", false, "write the tables of docs/reference/ssh.md")

// TestSettingsAreDocumented checks that docs/reference/ssh.md has the table of directives. Directives with the
// same note share a row.
func TestSettingsAreDocumented(t *testing.T) {
	const file, begin, end = "../../docs/reference/ssh.md", "<!-- keys of ssh_config -->\n", "<!-- end of keys -->\n"
	page := read(t, file)
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no tables of settings", file)
	}
	sections := []struct{ intro, note string }{
		honored:  {"These have the effect that they have with ssh:", ""},
		unneeded: {"These do not matter for what is done here, and are ignored:", "because"},
		warned: {"These have an effect with ssh that they lack here. A warning names each one that applies to\n" +
			"a host with another value than OpenSSH's default:", "instead"},
	}
	var b strings.Builder
	b.WriteString(before + begin)
	for kind, section := range sections {
		var notes []string
		names := map[string][]string{}
		for _, d := range sortedDirectives() {
			if d.support != support(kind) {
				continue
			}
			if names[d.note] == nil {
				notes = append(notes, d.note)
			}
			names[d.note] = append(names[d.note], d.name)
		}
		fmt.Fprintf(&b, "%s\n\n| settings | %s |\n|---|---|\n", section.intro, section.note)
		for _, note := range notes {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names[note], ", "), note)
		}
		if kind < len(sections)-1 {
			b.WriteString("\n")
		}
	}
	b.WriteString(end + after)
	if *updatePage {
		must(t, os.WriteFile(file, []byte(b.String()), 0o644))
		return
	}
	if page != b.String() {
		t.Errorf("%s does not list the directives as they are: go test ./hosts/link -run TestSettingsAreDocumented "+
			"-args -update", file)
	}
}

func sortedDirectives() []directive {
	return slices.SortedFunc(slices.Values(directives), func(a, b directive) int {
		return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name))
	})
}

// TestEveryDirectiveHasOneRow checks that the table names each directive once, and that a row has
// what its kind needs.
func TestEveryDirectiveHasOneRow(t *testing.T) {
	if got := len(directivesByKeyword()); got != len(directives) {
		t.Errorf("%d rows for %d directives", len(directives), got)
	}
	for _, d := range directives {
		if (d.matters != nil) != (d.support == warned) || d.support != honored && d.note == "" {
			t.Errorf("%s: the row is incomplete", d.name)
		}
	}
}

// TestInstalledSSHHasNoOtherSettings checks that the table has every keyword that the installed ssh
// prints.
func TestInstalledSSHHasNoOtherSettings(t *testing.T) {
	needSSH(t)
	out, err := exec.Command("ssh", "-G", "-T", "-F", "/dev/null", unknownHost).Output()
	must(t, err)
	for keyword := range parseSettings(string(out)) {
		if _, known := directivesByKeyword()[keyword]; !known {
			t.Errorf("the installed ssh prints %s, which is not in the table", keyword)
		}
	}
}

// TestSelectEnv checks the patterns of SendEnv, and that a variable of SetEnv follows, so that it
// replaces one that is sent.
func TestSelectEnv(t *testing.T) {
	c := config(t, "SendEnv LANG LC_* X?\nSendEnv -LC_ALL\nSetEnv LANG=de A=\"two words\"\n")
	c.env.environ = func() []string {
		return []string{"LANG=C", "LC_TIME=a=b", "LC_=", "LC_ALL=C", "X=1", "X1=2", "X12=3", "HOME=/h", "=odd", ""}
	}
	got, warnings, err := resolveAlias(c, "a")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	// ssh removes the pattern LC_ALL, not the variables that LC_* selects.
	want := []string{"LANG=C", "LC_TIME=a=b", "LC_=", "LC_ALL=C", "X1=2", "LANG=de", "A=two words"}
	if !slices.Equal(got.Env, want) {
		t.Errorf("got %q, want %q", got.Env, want)
	}
}

// TestVariablesReachTheCommand checks that a command sees what SendEnv and SetEnv select, as far as the
// server accepts it, like a command of the installed ssh.
func TestVariablesReachTheCommand(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{Config: []string{"AcceptEnv LC_*"}})
	file := write(t, filepath.Join(t.TempDir(), "config"),
		"SendEnv LC_DCS* OTHER\nSetEnv LC_DCS_SET=\"two words\"\n"+read(t, s.ConfigFile))
	t.Setenv("LC_DCS_SENT", "ä=b")
	t.Setenv("OTHER", "not accepted")
	const command = `printf '%s|' "$LC_DCS_SENT" "$LC_DCS_SET" "$OTHER"`
	config, err := LoadSSHConfig(file)
	must(t, err)
	l, err := NewSSH(SSHOptions{Config: config}).Open(contextUnlessStuck(t), s.Host("melon4"))
	must(t, err)
	defer l.Close()
	want := "ä=b|two words||"
	if got := run(t, l, command); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out, err := exec.Command(
		"ssh", "-F", file, "-i", s.Identity, "-p", fmt.Sprint(s.Port), "127.0.0.1", command,
	).CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("the installed ssh: got %q, %v; want %q", out, err, want)
	}
}

// TestRSAKeysAreLargeEnough checks that RequiredRSASize applies to the server's key and to ours.
func TestRSAKeysAreLargeEnough(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{RSA: true})
	key := filepath.Join(t.TempDir(), "id")
	if out, err := exec.Command(
		"ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", key,
	).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	write(t, s.AuthorizedKeys(), read(t, key+".pub"))
	tg := target(s)
	tg.IdentityFiles, tg.RequiredRSASize = []string{key}, 2048
	if got := mustRun(t, NewSSH(SSHOptions{}), tg, "echo reached"); got != "reached\n" {
		t.Errorf("got %q", got)
	}
	tg.RequiredRSASize = 20000
	mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Denied, key, "it has 2048 bits, and RequiredRSASize is 20000")
	tg.HostKeyAlgorithms = []string{"rsa-sha2-512"}
	mustFail(t, NewSSH(SSHOptions{}), tg, hosts.HostKey, "RSA key of", "RequiredRSASize is 20000")
}
