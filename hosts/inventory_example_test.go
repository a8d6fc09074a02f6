package hosts

import (
	"os"
	"regexp"
	"testing"
)

// hosts.toml.example parses and documents every key.
func TestExampleFile(t *testing.T) {
	const file = "../hosts.toml.example"
	inv, warnings, err := Load(file)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v", err, warnings)
	}
	if len(inv.Hosts) < 10 {
		t.Errorf("only %d hosts", len(inv.Hosts))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for key := range inventoryKeys {
		if !regexp.MustCompile(`(?m)^` + key + ` = .`).Match(text) {
			t.Errorf("the key %s is not in %s", key, file)
		}
	}
	for _, table := range []string{`\[defaults\]`, `\[\[host\]\]`} {
		if !regexp.MustCompile(`(?m)^` + table).Match(text) {
			t.Errorf("%s is not in %s", table, file)
		}
	}
}
