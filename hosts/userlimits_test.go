package hosts

import (
	"slices"
	"strings"
	"testing"
)

// TestParseUserLimits checks the file in which administrators limit users: the table of a user
// overrides what is there for all, and a key with a problem is named and has no effect.
func TestParseUserLimits(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		want     UserLimits
		problems []string
	}{
		"empty": {"", UserLimits{}, nil},
		"all":   {"slots = 8\nmemory = '64G'\nclosed = 'exam\n week '", UserLimits{}, []string{"line 3"}},
		"for all users": {
			"slots = 8\nmemory = '64G'\nclosed = ' exam\tweek '\n",
			UserLimits{8, 64 << 30, "exam week"},
			nil,
		},
		"for this user": {"slots = 8\nclosed = 'exams'\n[user.ada]\nslots = 16\nclosed = ''\n[user.bob]\nslots = 2\n",
			UserLimits{Slots: 16}, nil},
		"for this uid":    {"memory = 1048576\n[user.1000]\nmemory = 0\nslots = 3\n", UserLimits{Slots: 3}, nil},
		"for other users": {"[user.bob]\nslots = 2\nclosed = 'no'", UserLimits{}, nil},
		"problems": {
			"slots = -1\nmemory = true\nclosed = true\nslot = 3\n[user.ada]\nslots = 2\n[user.bob]\nmemory = 'x'\n",
			UserLimits{Slots: 2},
			[]string{
				"closed: must be a message in quotes, not true or false",
				"memory: must be a size such as \"64G\", not true or false",
				"slot: unknown key; use slots, memory, or closed",
				"slots: must be from 0 to 4096, not -1",
				"user.bob.memory: ",
			},
		},
		"no tables": {
			"user = 3\n",
			UserLimits{},
			[]string{"user: unknown key; use slots, memory, or closed"},
		},
		"a user without a table": {"[user]\nada = 3\n", UserLimits{}, []string{"user.ada must be a table, [user.ada]"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := ParseUserLimits([]byte(c.text), "ada", "1000")
			if got != c.want || len(problems) != len(c.problems) {
				t.Fatalf("got %+v and %q, want %+v and %q", got, problems, c.want, c.problems)
			}
			if !slices.EqualFunc(problems, c.problems, strings.Contains) {
				t.Errorf("problems %q, want %q", problems, c.problems)
			}
		})
	}
}
