package rundir

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// TestOnlyAFileOfTheUserNamesAHostDirectory checks that only a small regular file of the user
// counts as the directory of a host.
func TestOnlyAFileOfTheUserNamesAHostDirectory(t *testing.T) {
	run := &Run{Dir: t.TempDir(), Disk: OS}
	must(t, os.Mkdir(run.Path(HostsDir), 0o700))
	must(t, run.WriteHostDir("ws01", "/scratch/x"))
	other := t.TempDir() + "/secret"
	for path, text := range map[string]string{other: "secret", run.Path(HostsDir, "ws02.dir"): strings.Repeat("x",
		maxHostDir+1), run.Path(HostsDir, "ws03.log"): "x"} {
		t.Run(path, func(t *testing.T) {
			must(t, os.WriteFile(path, []byte(text), 0o600))
		})
	}
	must(t, os.Symlink(other, run.Path(HostsDir, "ws04.dir")))
	if got, want := run.HostDirs(), map[string]string{"ws01": "ws01:/scratch/x"}; !maps.Equal(got, want) {
		t.Errorf("the directories are %v, want %v", got, want)
	}
}
