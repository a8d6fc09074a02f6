package progtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// CheckRanOnce checks that each of n jobs ran, and that each attempt id ran once. It returns the
// number of attempts. Each attempt of a job has added a line with its id to the file in dir that
// has the job's number as its name.
func CheckRanOnce(t testing.TB, dir string, n int) (attempts int) {
	t.Helper()
	for id := 1; id <= n; id++ {
		b, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(id)))
		if err != nil {
			t.Errorf("job %d never ran", id)
			continue
		}
		seen := map[string]bool{}
		for line := range strings.Lines(string(b)) {
			if seen[line] {
				t.Errorf("attempt %s ran twice", strings.TrimSpace(line))
			}
			seen[line] = true
			attempts++
		}
	}
	return attempts
}
