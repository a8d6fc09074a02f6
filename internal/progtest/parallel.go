package progtest

import (
	"os/exec"
	"strings"
	"testing"
)

// FindParallel returns the path of GNU parallel, and skips the test if it is not installed or the test
// should be short. The test gets a home directory of its own, so parallel has no settings of the user.
func FindParallel(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("parallel")
	if err != nil || testing.Short() {
		t.Skip("needs GNU parallel, and takes long")
	}
	if version, _ := exec.Command(path, "--version").Output(); !strings.HasPrefix(string(version), "GNU parallel") {
		t.Skip(path + " is not GNU parallel")
	}
	t.Setenv("PARALLEL", "")
	for _, v := range HomeEnv(t.TempDir()) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	return path
}
