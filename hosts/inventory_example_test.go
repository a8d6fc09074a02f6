package hosts

import (
	"os"
	"regexp"
	"testing"
)

// hosts.toml.example parses as it is, harmless to copy, and also with everything
// taken out of its comments; it documents every key.
func TestExampleFile(t *testing.T) {
	const file = "../hosts.toml.example"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	commented := regexp.MustCompile(`(?m)^#([a-z_]+ = |\[\[)`)
	for _, c := range []struct {
		text  []byte
		hosts int
	}{{text, 4}, {commented.ReplaceAll(text, []byte("$1")), 21}} {
		inv, warnings, err := Parse(c.text, file)
		if err != nil || len(warnings) > 0 || len(inv.Hosts) != c.hosts {
			t.Fatalf("%v %v %v", inv, err, warnings)
		}
	}
	for key := range inventoryKeys {
		if !regexp.MustCompile(`(?m)^#?` + key + ` = .`).Match(text) {
			t.Errorf("the key %s is not in %s", key, file)
		}
	}
}
