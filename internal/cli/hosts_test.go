package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// TestHostsCheckJSONIsDocumented checks that docs/formats.md lists exactly the fields of hosts
// check --json.
func TestHostsCheckJSONIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "`hosts check --json`\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for i, word := range strings.Split(cells[1], "`") {
				if i%2 == 1 {
					documented = append(documented, word)
				}
			}
		}
	}
	b, _ := json.Marshal(checkedOf(&hosts.CheckResult{Host: &hosts.Host{Name: "a"}, Hello: new(hosts.Hello), Beat: new(hosts.Beat)}))
	fields := map[string]any{}
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/formats.md does not document %s", name)
		}
	}
	if len(documented) != len(fields) {
		t.Errorf("documented are %q, printed is %s", documented, b)
	}
}

// TestHostLinesAreGrouped checks that idle hosts with the same message share a line of status, and
// that other hosts have lines of their own.
func TestHostLinesAreGrouped(t *testing.T) {
	at := time.Date(2026, 3, 14, 15, 4, 0, 0, time.UTC)
	host := func(name, last string, running, ended int) hostStatus {
		return hostStatus{Name: name, HostCount: runview.HostCount{Running: running, Ended: ended}, Last: last, LastAt: &at}
	}
	got := hostLines([]hostStatus{
		host("a1", "a1: 10.0.0.1:22 refuses connections", 0, 2), host("a2", "a2: 10.0.0.2:22 refuses connections", 0, 3),
		host("a3", "a3: 10.0.0.3:22 refuses connections", 1, 0), host("b1", "b1 is up", 0, 0), host("b2", "b2 is up", 0, 0),
	})
	want := []string{"hosts", "a[1-2] (2 hosts)", "a3 ", "b1 ", "b2 "}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("%q has no %q", got[i], w)
		}
	}
	if !strings.Contains(got[1], "5 ended") || !strings.Contains(got[1], "HOST:22 refuses connections") || !strings.Contains(got[2], "10.0.0.3:22") {
		t.Errorf("%q", got)
	}
}

// TestSSHHosts checks that the names in an ssh configuration become hosts: without patterns, once
// for each machine, in the order of the files.
func TestSSHHosts(t *testing.T) {
	dir := t.TempDir()
	more := filepath.Join(dir, "more")
	os.WriteFile(more, []byte("host = \"n1\" n2 # n9\n  Port 2201\nHost n2\nHostName 10.9.0.2\n"), 0o600)
	file := filepath.Join(dir, "config")
	os.WriteFile(file, []byte("# Host no\nHost ws01 ws02 *.lab !x\n  HostName 10.9.0.1\nInclude "+more+"\nHost ?\nHOST git@odd\n"), 0o600)
	list, err := sshHosts(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list {
		got = append(got, f.Name+" "+f.bad)
	}
	if want := []string{"ws01 ", "ws02 the same machine as ws01", "n1 ", "n2 "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAdviceNamesTheSSHConfig checks that suggested commands can be executed: they name the ssh
// configuration of the run, and each word is quoted for the shells that read it (X2).
func TestAdviceNamesTheSSHConfig(t *testing.T) {
	for _, c := range []struct {
		config any
		want   string
	}{
		{nil, "ssh ws2 "},
		{"/lab/ssh_config", "ssh -F /lab/ssh_config ws2 "},
		{"/my lab/it's", `ssh -F '/my lab/it'\''s' ws2 `},
	} {
		asked := rundir.Asked{UID: "abcdefghjkmn", Options: map[string]any{}}
		if c.config != nil {
			asked.Options["ssh-config"] = c.config
		}
		run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", asked)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := catOn(run, "ws2", "/far/1.1.out"), c.want+"cat /far/1.1.out"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := catOn(run, "ws2", "/far off/1.1.out"); !strings.HasSuffix(got, ` cat ''\''/far off/1.1.out'\'''`) {
			t.Error(got)
		}
		if err := os.WriteFile(run.Path(rundir.HostsDir, "ws2"+rundir.HostDirSuffix), []byte("ws2:/far/abcdefghjkmn\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if left := leftOnHosts(run); len(left) != 1 || !strings.HasSuffix(left[0], ": "+c.want+"rm -r /far/abcdefghjkmn") {
			t.Errorf("%q", left)
		}
	}
}

// TestShellOnAHost checks that a shell on a host is opened by the same link that the run uses.
func TestShellOnAHost(t *testing.T) {
	t.Setenv("SHELL", "/bin/mysh")
	run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Asked{UID: "abcdefghjkmn", Options: map[string]any{"ssh-config": "/lab/config"}, InventoryFile: "hosts.toml",
		InventoryText: "[[host]]\nname = 'here'\nlink = 'local'\n[[host]]\nname = 'ws'\naddress = '10.0.0.1'\nport = 2222\nuser = 'me'\njump = 'gate'\n" +
			"[[host]]\nname = 'box'\nlink = 'docker exec -i {name}'\n[[host]]\nname = 'own'\nlink = 'ssh -o A=b {name}'\n"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"here": "/bin/mysh", "ws": "ssh -t -F /lab/config -l me -J gate -p 2222 -- 10.0.0.1", "box": "docker exec -i box /bin/sh -i", "own": "ssh -t -o A=b own",
	} {
		if c, err := shellOn(run, host); err != nil || strings.Join(c.Args, " ") != want {
			t.Errorf("%s: %v, %v, want %s", host, c, err, want)
		}
	}
	if _, err := shellOn(run, "-oProxyCommand=x"); err == nil {
		t.Error("a host that the run does not have")
	}
}

// TestAdviceUsesTheLink checks that the advice for a host reached by a command uses that command,
// quoted for the shells on the way.
func TestAdviceUsesTheLink(t *testing.T) {
	run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Asked{UID: "abcdefghjkmn", Options: map[string]any{}, InventoryFile: "hosts.toml",
		InventoryText: "[[host]]\nname = 'box'\nlink = 'docker exec -i {name}'\n[[host]]\nname = 'ws'\nlink = \"ssh -o 'A=b c' {name}\"\n"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"box": `docker exec -i box cat '/far off/1.1.out'`,
		"ws":  `ssh -o 'A=b c' ws cat ''\''/far off/1.1.out'\'''`,
	} {
		if got := catOn(run, host, "/far off/1.1.out"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestPassphraseThroughTheScreen checks that the screen asks for a passphrase that a background
// dispatcher needs, and that no journal, log, or other file of the run contains it.
func TestPassphraseThroughTheScreen(t *testing.T) {
	const secret = "correct horse 7731"
	sshd := hosttest.StartSSHD(t, hosttest.Options{Passphrase: secret})
	t.Setenv("SSH_AUTH_SOCK", "")
	inventory := filepath.Join(t.TempDir(), "hosts.toml")
	text := fmt.Sprintf("[[host]]\nname = \"ws01\"\naddress = \"127.0.0.1\"\nport = %d\nslots = 1\nwork_dir = %q\n", sshd.Port, t.TempDir())
	if err := os.WriteFile(inventory, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := inBackground(t, "true\n", "--hosts", inventory, "--ssh-config", sshd.ConfigFile)
	wrong := f.until(t, "it is asked for", func(p *runview.Snapshot) bool { return p.Question != nil }).Question
	if !wrong.Secret || !strings.Contains(wrong.Text, sshd.Identity) {
		t.Errorf("%+v", wrong)
	}
	reply := func(q *live.Question, text string) {
		t.Helper()
		if _, err := f.Do(t.Context(), runview.Action{Do: runview.Reply, Number: int(q.ID), Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	reply(wrong, "no")
	q := f.until(t, "it is asked for again", func(p *runview.Snapshot) bool { return p.Question != nil && p.Question.ID != wrong.ID }).Question
	var refused *runview.Refused
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.Reply, Number: int(wrong.ID), Text: secret}); !errors.As(err, &refused) {
		t.Error(err)
	}
	reply(q, secret)
	f.until(t, "the host works", func(p *runview.Snapshot) bool { return p.Phases[runview.Succeeded] == 1 && p.Question == nil })
	filepath.WalkDir(f.run.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, _ := os.ReadFile(path); bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s has the passphrase", path)
			}
		}
		return nil
	})
}
