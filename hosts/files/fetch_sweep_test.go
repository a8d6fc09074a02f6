package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs/rundir"
)

// TestPartialFilesAreRemoved checks which partial files are removed. Those of a killed fetch on
// this machine are removed at once, whatever their age. Those of a live fetch stay. Those of
// another machine, whose processes cannot be checked here, are removed when they are old. Other
// files stay.
func TestPartialFilesAreRemoved(t *testing.T) {
	l := newLab(t)
	parts := strings.Split(thisProcess(), ".")
	if len(parts) != 4 {
		t.Skipf("/proc does not name this process: %q", thisProcess())
	}
	gone := exec.Command("true")
	must(t, gone.Run())
	dead := fmt.Sprintf("%d.%s", gone.ProcessState.Pid(), strings.Join(parts[1:], "."))
	reused := fmt.Sprintf("%s.1.%s.%s", parts[0], parts[2], parts[3])
	far := strings.Join(parts[:3], ".") + ".c0ffee00-0000-4000-8000-000000000000"
	for i, c := range []struct {
		name  string
		age   time.Duration
		stays bool
	}{
		{tempMark + "ABC." + dead, 0, false},
		{tempMark + "ABC." + reused, 0, false},
		{tempMark + "ABC." + thisProcess(), 2 * tempMaxAge, true},
		{tempMark + "ABC." + far, 0, true},
		{tempMark + "ABC." + far, 2 * tempMaxAge, false},
		{tempMark + "ABC", 0, true},
		{tempMark + "ABC", 2 * tempMaxAge, false},
		{tempMark + "ABC.." + dead, 0, true},
		{"", 2 * tempMaxAge, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(l.run.Path(rundir.AttemptsDir, "000"), fmt.Sprintf(".%d.1.out%s", i, c.name))
			write(t, filepath.Dir(path), map[string]string{filepath.Base(path): ""})
			then := time.Now().Add(-c.age)
			os.Chtimes(path, then, then)
			SweepFetched(l.run)
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) == c.stays {
				t.Errorf("%q of age %v: %v", c.name, c.age, err)
			}
		})
	}
}
