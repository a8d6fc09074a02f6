package hosttest

import (
	"errors"
	"os"
	"testing"
)

// RequireEnv, set to 1, turns a missing sshd from a skipped test into a failure.
const RequireEnv = "DCS_REQUIRE_SSHD"

// StartSSHD gives a test a real OpenSSH server that ends with the test. Where
// none is installed the test is skipped loudly, or fails when RequireEnv is 1.
func StartSSHD(t testing.TB, opts Options) *SSHD {
	t.Helper()
	s, err := NewSSHD(t.TempDir(), opts)
	if errors.Is(err, ErrNoSSHD) {
		if os.Getenv(RequireEnv) == "1" {
			t.Fatalf("%s=1, but %v", RequireEnv, err)
		}
		LeaveOut(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			if log, err := os.ReadFile(s.LogFile()); err == nil {
				t.Logf("sshd on port %d said:\n%s", s.Port, log)
			}
		}
	})
	return s
}
