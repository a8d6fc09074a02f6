package hosts

import (
	"os"
	"path/filepath"
	"testing"

	"dcs-tui/internal/polltest"
)

// TestExamplesParse checks that each inventory of examples/ is read without a warning, and has a
// provider.
func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("../examples/*/hosts.toml")
	if err != nil || len(files) < 4 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		polltest.Must(t, err)
		if inv, warnings, err := Parse(text, file); err != nil || len(warnings) > 0 || len(inv.Providers) != 1 {
			t.Errorf("%s: got %+v, %v, %v", file, inv, warnings, err)
		}
	}
}
