package hosts

import (
	"os"
	"strings"
	"testing"
)

// TestUserLimitsAreAsDocumented checks the limits that docs/sharing.md shows.
func TestUserLimitsAreAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/sharing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(string(page), "```toml\n# for every user")
	file, _, _ = strings.Cut(file, "```\n")
	for user, want := range map[string]UserLimits{
		"ada":    {Slots: 64},
		"backup": {Slots: 16, Memory: 64 << 30, Closed: "not for service accounts"},
		"other":  {Slots: 16, Memory: 64 << 30},
	} {
		if got, problems := ParseUserLimits([]byte("#"+file), user); got != want || len(problems) > 0 {
			t.Errorf("%s: %+v %q", user, got, problems)
		}
	}
}
