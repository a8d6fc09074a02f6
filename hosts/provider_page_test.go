package hosts

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestProviderKeysAreDocumented checks that docs/providers.md lists the keys that only providers have,
// docs/slurm.md those that only allocations have, and neither lists a key that does not exist.
func TestProviderKeysAreDocumented(t *testing.T) {
	for file, only := range map[string]scope{"providers.md": providerOnly, "slurm.md": slurmOnly} {
		page, err := os.ReadFile("../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		_, table, found := strings.Cut(string(page), "\n| key | meaning |\n|---|---|\n")
		table, _, _ = strings.Cut(table, "\n\n")
		if !found {
			t.Fatalf("docs/%s has no table of keys", file)
		}
		var documented []string
		for line := range strings.Lines(table) {
			for i, word := range strings.Split(strings.Split(line, "|")[1], "`") {
				if i%2 == 1 {
					documented = append(documented, word)
				}
			}
		}
		for _, name := range documented {
			if findKey(name) == nil {
				t.Errorf("docs/%s lists %s, which is no key", file, name)
			}
		}
		for _, k := range inventoryKeys {
			if k.scope == only && !slices.Contains(documented, k.name) && k.name != "type" {
				t.Errorf("docs/%s does not list %s", file, k.name)
			}
		}
	}
}
