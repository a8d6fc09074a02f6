package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dcs-tui/jobs/rundir"
)

// TestPartialFilesAreRemoved checks that partial files to which nobody has written for long are
// removed, whichever machine a fetch was on. Those of a live fetch, and all other files, stay.
func TestPartialFilesAreRemoved(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		name  string
		age   time.Duration
		stays bool
	}{
		{".1.1.out" + tempMark + "ABC", 0, true},
		{".2.1.out" + tempMark + "ABC", 2 * tempMaxAge, false},
		{".3.1.out", 2 * tempMaxAge, true},
		{"4.1.out" + tempMark + "ABC", 2 * tempMaxAge, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(l.run.Path(rundir.AttemptsDir, "000"), c.name)
			write(t, filepath.Dir(path), map[string]string{c.name: ""})
			then := time.Now().Add(-c.age)
			os.Chtimes(path, then, then)
			SweepFetched(l.run)
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) == c.stays {
				t.Errorf("of age %v: %v", c.age, err)
			}
		})
	}
}
