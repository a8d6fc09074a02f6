package jobs

import (
	"slices"
	"strings"
	"testing"
)

// TestTokens checks which tokens a jobs file may contain, which are refused with file and line, and
// that jobs.jsonl keeps them (T7).
func TestTokens(t *testing.T) {
	for _, tt := range []struct{ says, tokens, wrong string }{
		{"tokens=matlab:2", "matlab:2", ""},
		{"tokens=matlab,ansys:3", "ansys:3,matlab:1", ""},
		{"tokens=", "", ""},
		{"tokens=matlab:0", "", "jobs:1: tokens: 0 is not between 1 and 1000000"},
		{"tokens=matlab:many", "", `jobs:1: tokens: "many" is not a whole number`},
		{"tokens=:1", "", `jobs:1: tokens: "" is not a name of tokens`},
		{"tokens='a b:1'", "", `jobs:1: tokens: "a b" is not a name of tokens`},
		{"tokens=a,a:2", "", "jobs:1: tokens: a is given twice"},
		{"queue_slots=0", "", "jobs:1: queue_slots: 0 is not between 1 and 4096"},
	} {
		specs, err := Parse(strings.NewReader("#DCS "+tt.says+"\ntrue\n"), "jobs", false, 1)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: %v, want %s", tt.says, err, tt.wrong)
			}
			continue
		}
		if err != nil || specs[0].TokenText() != tt.tokens {
			t.Errorf("%s: %v, %v", tt.says, specs, err)
			continue
		}
		again, err := new(SpecReader).Read(AppendSpecJSON(nil, specs[0]))
		if err != nil || !slices.Equal(again.Tokens, specs[0].Tokens) || !again.Same(specs[0]) {
			t.Errorf("%s: stored and read it is %v", tt.says, again)
		}
	}
	specs, err := Parse(strings.NewReader(`{"command":"true","tokens":["b:2","a"],"queue_slots":4}`+"\n"), "jobs.jsonl", true, 1)
	if err != nil || specs[0].TokenText() != "a:1,b:2" || specs[0].QueueSlots != 4 {
		t.Errorf("as JSON: %v, %v", specs, err)
	}
}
