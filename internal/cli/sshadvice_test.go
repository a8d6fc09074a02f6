package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/jobs/rundir"
)

// Advice can be carried out: what reaches a host of a run that has an ssh configuration of its own
// names that file, and each word is one for the shells that read it (X2).
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

// A shell on a host is opened in the way in which the run reaches the host.
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

// For a host that is reached by a command, the advice uses that command, quoted for the
// shells on the way.
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
