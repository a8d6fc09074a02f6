package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	runner "dcs-tui/dispatch/run"
	"dcs-tui/jobs/rundir"
)

// Promise 5 of DESIGN 1: what `runs prune` tells a person to run on other hosts removes the run's own
// directory and nothing else, whatever a host has said of where it is.
func TestPruneCommandsForHosts(t *testing.T) {
	run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Asked{UID: "abcdefghjkmn"})
	if err != nil {
		t.Fatal(err)
	}
	for host, c := range map[string]struct{ dir, want string }{
		"ws01": {"/home/me/.dcs-tui/abcdefghjkmn", `ssh ws01 rm -r /home/me/.dcs-tui/abcdefghjkmn`},
		// ssh makes one text of its words: unquoted over there it would be two directories.
		"ws02": {"/data/my runs/abcdefghjkmn", `ssh ws02 rm -r ''\''/data/my runs/abcdefghjkmn'\'''`},
		"ws03": {"/home/me", ""},
		"ws04": {"/home/me/x/../abcdefghjkmn", ""},
		"ws05": {"abcdefghjkmn", ""},
		"ws06": {"/", ""},
	} {
		if err := os.WriteFile(run.Path(rundir.HostsDir, host+rundir.HostDirSuffix), []byte(host+":"+c.dir+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		lines := leftOnHosts(run)
		line := lines[len(lines)-1]
		if !strings.HasPrefix(line, host) || !strings.HasSuffix(line, c.want) || c.want == "" && strings.Contains(line, "rm ") {
			t.Errorf("%s in %q: %s", host, c.dir, line)
		}
		os.Remove(run.Path(rundir.HostsDir, host+rundir.HostDirSuffix))
	}
}

// Promise 5: a run that is reached through a link is not said to be removed when only the link
// would go, and one that is named twice is removed once.
func TestPruneLinks(t *testing.T) {
	base := filepath.Join(t.TempDir(), "runs")
	run, err := rundir.Create(base, "r", rundir.Asked{UID: "abcdefghjkmn"})
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(run.Dir, link); err != nil {
		t.Fatal(err)
	}
	linked, err := rundir.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Remove(linked, nil); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("%v", err)
	}
	if _, err := rundir.Open(link); err != nil {
		t.Errorf("the run through its link: %v", err)
	}
	if dirs, err := new(pruneOptions).candidates([]string{run.Dir, run.Dir + "/."}); err != nil || len(dirs) != 1 {
		t.Errorf("%q, %v", dirs, err)
	}
}
