package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// TestHostLinesAreGrouped checks that idle hosts with the same message share a line of status, that
// other hosts have lines of their own, and that a host that starts nothing is not said to be up.
func TestHostLinesAreGrouped(t *testing.T) {
	at := time.Date(2026, 3, 14, 15, 4, 0, 0, time.UTC)
	host := func(name, last string, running, ended int) hostStatus {
		return hostStatus{Name: name, HostCount: runview.HostCount{Running: running, Ended: ended}, Last: last,
			LastAt: &at,
			lastUp: last == name+" is up", HostStatus: jobs.HostStatus{State: "up"}}
	}
	drained, held := host("c1", "c1 is up", 0, 2), host("c2", "c2 is up", 1, 0)
	drained.State, drained.Reason, held.Reason = "draining", "a person asked for it", "starts nothing: its disk hangs"
	got := hostLines([]hostStatus{
		host("a1", "a1: 10.0.0.1:22 refuses connections", 0, 2),
		host("a2", "a2: 10.0.0.2:22 refuses connections", 0, 3),
		host("a3", "a3: 10.0.0.3:22 refuses connections", 1, 0), host("b1", "b1 is up", 0, 0),
		host("b2", "b2 is up", 0, 0), drained, held,
	})
	want := [][]string{{"hosts"}, {"a[1-2] (2 hosts)", "5 ended", "<host>:22 refuses connections"},
		{"a3 ", "10.0.0.3:22"}, {"b1 ", " is up"}, {"b2 "},
		{"c1 ", "2 ended; draining: a person asked for it"}, {"c2 ", "0 ended; starts nothing: its disk hangs"}}
	if len(got) != len(want) {
		t.Fatalf("the table: got %q, want 5 lines", got)
	}
	for i, parts := range want {
		checkContains(t, got[i], parts...)
	}
}

// TestHostsAreReadFromTheSSHConfiguration checks that the names in an ssh configuration become
// hosts: without patterns, once for each machine, in the order of the files.
func TestHostsAreReadFromTheSSHConfiguration(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "more", "host = \"n1\" n2 # n9\n  Port 2201\nHost n2\nHostName 10.9.0.2\n")
	writeFile(t, dir, "config", "# Host no\nHost ws01 ws02 *.lab !x\n  HostName 10.9.0.1\nInclude "+dir+
		"/more\nHost ?\nHOST git@odd\n")
	list, err := sshHosts(filepath.Join(dir, "config"))
	must(t, err)
	var got []string
	for _, f := range list {
		got = append(got, f.Name+" "+f.problem)
	}
	if want := []string{"ws01 ", "ws02 the same machine as ws01", "n1 ", "n2 "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// runOfHosts returns a run with the uid abcdefghjkmn, an inventory, and an ssh configuration; "":
// none.
func runOfHosts(t *testing.T, inventory, sshConfig string) *rundir.Run {
	t.Helper()
	asked := rundir.Settings{UID: "abcdefghjkmn", InventoryFile: "hosts.toml", InventoryText: inventory,
		Options: map[string]any{}}
	if sshConfig != "" {
		asked.Options["ssh-config"] = sshConfig
	}
	run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", asked)
	must(t, err)
	return run
}

// TestSuggestedCommandsCanBeExecuted checks that suggested commands can be executed: they use the
// link and the ssh configuration of the run, and each word is quoted for the shells that read it
// (X2).
func TestSuggestedCommandsCanBeExecuted(t *testing.T) {
	const links = "[[host]]\nname = 'box'\nlink = 'docker exec -i {name}'\n[[host]]\nname = 'ws'\n" +
		"link = \"ssh -o 'A=b c' {name}\"\n"
	for _, c := range []struct{ inventory, config, host, file, want string }{
		{"", "", "ws2", "/far/1.1.out", "ssh ws2 cat /far/1.1.out"},
		{"", "/lab/ssh_config", "ws2", "/far/1.1.out", "ssh -F /lab/ssh_config ws2 cat /far/1.1.out"},
		{"", "/my lab/it's", "ws2", "/far off/1.1.out", `ssh -F '/my lab/it'\''s' ws2 cat ''\''/far off/1.1.out'\'''`},
		{links, "", "box", "/far off/1.1.out", `docker exec -i box cat '/far off/1.1.out'`},
		{links, "", "ws", "/far off/1.1.out", `ssh -o 'A=b c' ws cat ''\''/far off/1.1.out'\'''`},
	} {
		same(t, "command", hostCommandLine(runOfHosts(t, c.inventory, c.config), c.host, "cat", c.file), c.want)
	}
}

// TestPruneCommandsRemoveOnlyTheRun checks that the commands that `runs prune` suggests for other
// hosts remove only the run's own directory, whatever location a host has reported (promise 5).
func TestPruneCommandsRemoveOnlyTheRun(t *testing.T) {
	run := runOfHosts(t, "", "")
	for host, c := range map[string]struct{ dir, want string }{
		"ws01": {"/home/me/.dcs-tui/abcdefghjkmn", `ssh ws01 rm -r /home/me/.dcs-tui/abcdefghjkmn`},
		// ssh joins its arguments into one string: without quotes, the remote shell would see two
		// directories.
		"ws02": {"/data/my runs/abcdefghjkmn", `ssh ws02 rm -r ''\''/data/my runs/abcdefghjkmn'\'''`},
		"ws03": {"/home/me", ""},
		"ws04": {"/home/me/x/../abcdefghjkmn", ""},
		"ws05": {"abcdefghjkmn", ""},
		"ws06": {"/", ""},
	} {
		file := host + rundir.HostDirSuffix
		writeFile(t, run.Path(rundir.HostsDir), file, host+":"+c.dir+"\n")
		lines := leftoverLines(run, new(jobs.Table), nil)
		line := lines[len(lines)-1]
		if !strings.HasPrefix(line, host) || !strings.HasSuffix(line, c.want) || c.want == "" &&
			strings.Contains(line, "rm ") {
			t.Errorf("%s in %q: %s", host, c.dir, line)
		}
		os.Remove(run.Path(rundir.HostsDir, file))
	}
}

// TestPruneNamesHostsWithUnreturnedFiles checks that `runs prune` names each host that may keep files
// that a job could not return, once, with the command that removes them.
func TestPruneNamesHostsWithUnreturnedFiles(t *testing.T) {
	run := runOfHosts(t, "", "")
	writeFile(t, run.Path(rundir.HostsDir), "far"+rundir.HostDirSuffix, "far:/data/abcdefghjkmn\n")
	table := &jobs.Table{}
	table.Jobs = append(table.Jobs, jobs.Job{Spec: &jobs.Spec{ID: 1, Command: "a", Options: new(jobs.Options)}})
	for i, host := range []string{"far", "ws01", "ws01", "ws02", "ws03", "here", "gone"} {
		o := &jobs.Outcome{Unreturned: host != "ws03"}
		a := &jobs.Attempt{ID: jobs.AttemptID{Job: 1, N: i + 1}, Host: host, Outcome: o}
		table.Jobs[0].Attempts = append(table.Jobs[0].Attempts, a)
	}
	inventory := []*hosts.Host{{Name: "far", Link: "ssh"}, {Name: "ws01", Link: "ssh", WorkDir: "~/my work"},
		{Name: "ws02", Link: "ssh", WorkDir: "/data"}, {Name: "ws03", Link: "ssh"}, {Name: "here", Link: "local"}}
	same(t, "lines", strings.Join(leftoverLines(run, table, inventory), "\n"),
		`far keeps the outputs of its jobs: ssh far rm -r /data/abcdefghjkmn
ws01 may keep files that jobs could not return: ssh ws01 rm -rf ''\''my work/abcdefghjkmn'\'''
ws02 may keep files that jobs could not return: ssh ws02 rm -rf /data/abcdefghjkmn`)
}

// TestShellOnAHostUsesTheLinkOfTheRun checks that a shell on a host is opened by the same link that
// the run uses.
func TestShellOnAHostUsesTheLinkOfTheRun(t *testing.T) {
	t.Setenv("SHELL", "/bin/mysh")
	run := runOfHosts(t,
		"[[host]]\nname = 'here'\nlink = 'local'\n[[host]]\nname = 'ws'\naddress = '10.0.0.1'\nport = 2222\n"+
			"user = 'me'\njump = 'gate'\n"+
			"[[host]]\nname = 'box'\nlink = 'docker exec -i {name}'\n[[host]]\nname = 'own'\n"+
			"link = 'ssh -o A=b {name}'\n",
		"/lab/config")
	for host, want := range map[string]string{
		"here": "/bin/mysh", "ws": "ssh -t -F /lab/config -l me -J gate -p 2222 -- 10.0.0.1",
		"box": "docker exec -i box /bin/sh -i", "own": "ssh -t -o A=b own",
	} {
		if c, err := shellCommand(run, host); err != nil || strings.Join(c.Args, " ") != want {
			t.Errorf("%s: %v, %v, want %s", host, c, err, want)
		}
	}
	if _, err := shellCommand(run, "-oProxyCommand=x"); err == nil {
		t.Error("a host that the run does not have")
	}
}

// TestPassphraseThroughTheScreen checks that the screen asks for a passphrase that a background
// dispatcher needs, and that no journal, log, or other file of the run contains it.
func TestPassphraseThroughTheScreen(t *testing.T) {
	t.Parallel()
	const secret = "correct horse 7731"
	sshd := hosttest.StartSSHD(t, hosttest.Options{Passphrase: secret})
	inventory := filepath.Join(t.TempDir(), "hosts.toml")
	text := fmt.Sprintf("[[host]]\nname = \"ws01\"\naddress = \"127.0.0.1\"\nport = %d\nslots = 1\nwork_dir = %q\n",
		sshd.Port, t.TempDir())
	must(t, os.WriteFile(inventory, []byte(text), 0o600))
	screen := startRun(t, "true\n", "--hosts", inventory, "--ssh-config", sshd.ConfigFile)
	wrong := screen.awaitSnapshot(t, "it is asked for",
		func(p *runview.Snapshot) bool { return p.Question != nil }).Question
	if !wrong.Secret || !strings.Contains(wrong.Text, sshd.Identity) {
		t.Errorf("got question %+v, want a secret one that names the key", wrong)
	}
	reply := func(q *live.Question, text string) {
		t.Helper()
		must(t, screen.Reply(t.Context(), q.ID, text))
	}
	reply(wrong, "no")
	q := screen.awaitSnapshot(t, "it is asked for again", func(p *runview.Snapshot) bool {
		return p.Question != nil && p.Question.ID != wrong.ID
	}).Question
	var refused *runview.Refused
	if err := screen.Reply(t.Context(), wrong.ID, secret); !errors.As(err, &refused) {
		t.Errorf("a reply to the earlier question: %v, want a refusal", err)
	}
	reply(q, secret)
	screen.awaitSnapshot(t, "the host works",
		func(p *runview.Snapshot) bool { return p.Phases[runview.Succeeded] == 1 && p.Question == nil })
	filepath.WalkDir(screen.run.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, _ := os.ReadFile(path); bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s has the passphrase", path)
			}
		}
		return nil
	})
}

// TestHostKeysOfAGroupAreShown checks that hosts with the same problem are described together, with the
// host key of each, because a person must compare them.
func TestHostKeysOfAGroupAreShown(t *testing.T) {
	var bad []runview.HostText
	keys := map[string]string{}
	for _, name := range []string{"ws01", "ws02"} {
		keys[name] = "ed25519 SHA256:of-" + name
		bad = append(bad, runview.HostText{Host: name, Text: "its host key ed25519 SHA256:of" + name +
			" is not known\nadvice"})
	}
	groups := runview.GroupHosts(bad)
	if len(groups) != 1 {
		t.Fatalf("got %d groups, want 1", len(groups))
	}
	got := strings.Join(badLines(consoleTo(io.Discard), &groups[0], 4, keys), "\n")
	for _, want := range []string{"ws[01-02] (2 hosts)", "ws01: ed25519 SHA256:of-ws01",
		"ws02: ed25519 SHA256:of-ws02"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
	}
}

// TestCheckShowsWhatARunWouldFind checks that hosts check says, as a run does, that a host starts nothing now
// for its owner, its quiet hours, or one of its limits.
func TestCheckShowsWhatARunWouldFind(t *testing.T) {
	free := &hosts.Heartbeat{Load: [3]float64{3, 0, 0}, MemFree: 2 << 30, DiskFree: 1 << 30}
	for _, tt := range []struct {
		host  hosts.Host
		owner string
		want  string
	}{
		{hosts.Host{MaxLoad: 8, MinMemFree: 1 << 30, MinDiskFree: 1 << 20}, "", ""},
		{hosts.Host{MaxLoad: 2}, "alice uses the screen", "alice uses the screen"},
		{hosts.Host{MaxLoad: 2}, "", "its load of 3.0 is over max_load 2"},
		{hosts.Host{MinMemFree: 4 << 30}, "", "its free memory of 2 GiB is below min_mem_free 4 GiB"},
		{hosts.Host{MinDiskFree: 5 << 30}, "", "its free disk space of 1 GiB is below min_disk_free 5 GiB"},
		{hosts.Host{Quiet: []hosts.Quiet{{To: 24 * time.Hour}}}, "", "its quiet hours last all day"},
	} {
		tt.host.Name = "ws01"
		result := &hosts.CheckResult{Host: &tt.host, Hello: &hosts.Hello{Owner: hosts.Owner{Who: tt.owner}},
			Heartbeat: free}
		if held := checkJSONOf(result).Held; held != tt.want {
			t.Errorf("held: got %q, want %q", held, tt.want)
		}
		lines := strings.Join(usableLines(&console{}, result, 4), "\n")
		if now := "starts nothing now: " + tt.want; strings.Contains(lines, now) != (tt.want != "") {
			t.Errorf("got %q, want %q", lines, now)
		}
	}
}
