//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts"
)

// TestStandbyNeedsTheRunDirectory checks that a host starts no standby if it does not share the run
// directory, or if another directory has the same path there (E7).
func TestStandbyNeedsTheRunDirectory(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "nonce"), []byte("theirs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{t.TempDir(), other, filepath.Join(other, "absent"), ""} {
		err := startStandby(&hosts.Open{Version: hosts.ProtocolVersion, RunDir: dir, Nonce: "ours"})
		if err == nil || !strings.Contains(err.Error(), "does not share") {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
