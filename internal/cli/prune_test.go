package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/jobs/rundir"
)

// What `runs prune` tells a person to run on other hosts removes the run's own
// directory and nothing else, whatever a host has said of where it is (K10).
func TestPruneCommandsForHosts(t *testing.T) {
	run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Asked{UID: "abcdefghjkmn"})
	if err != nil {
		t.Fatal(err)
	}
	for host, c := range map[string]struct{ dir, want string }{
		"ws01": {"/home/me/.dcs-tui/abcdefghjkmn", `ssh ws01 'rm -r /home/me/.dcs-tui/abcdefghjkmn'`},
		// ssh makes one text of its words: unquoted over there it would be two directories.
		"ws02": {"/data/my runs/abcdefghjkmn", `ssh ws02 'rm -r '\''/data/my runs/abcdefghjkmn'\'''`},
		"ws03": {"/home/me", ""},
		"ws04": {"/home/me/x/../abcdefghjkmn", ""},
		"ws05": {"abcdefghjkmn", ""},
		"ws06": {"/", ""},
	} {
		if err := os.WriteFile(run.Path(rundir.HostsDir, host+dirSuffix), []byte(host+":"+c.dir+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		lines := leftOnHosts(run)
		line := lines[len(lines)-1]
		if !strings.HasPrefix(line, host) || !strings.HasSuffix(line, c.want) || c.want == "" && strings.Contains(line, "rm ") {
			t.Errorf("%s in %q: %s", host, c.dir, line)
		}
		os.Remove(run.Path(rundir.HostsDir, host+dirSuffix))
	}
}
