package cli

import (
	"fmt"
	"testing"

	"dcs-tui/hosts"
)

// TestTerminationIsConfirmedOnce checks that one question names all dangling instances on which
// attempts may run, so that a refusal changes nothing, and that there is none without such attempts.
func TestTerminationIsConfirmedOnce(t *testing.T) {
	idle := listedInstance{Instance: hosts.Instance{Name: "dcs-a-1"}, ref: "r", dangling: true}
	busy := listedInstance{Instance: hosts.Instance{Name: "dcs-a-2"}, ref: "r", dangling: true, running: 2}
	other := listedInstance{Instance: hosts.Instance{Name: "dcs-b-1"}, ref: "s", dangling: true, running: 1}
	used := listedInstance{Instance: hosts.Instance{Name: "dcs-c-1"}, ref: "u", running: 1}
	for _, tt := range []struct {
		name string
		list []listedInstance
		yes  bool
		want string
	}{
		{"none is dangling", []listedInstance{used}, false, "<nil>"},
		{"nothing runs", []listedInstance{idle, used}, false, "<nil>"},
		{"yes", []listedInstance{busy, other}, true, "<nil>"},
		{"several", []listedInstance{idle, busy, other, used}, false,
			"hosts instances --terminate would terminate 3 instances, although attempts may run there: " +
				"2 attempts of r on dcs-a-2, " +
				"1 attempt of s on dcs-b-1, but cannot ask for confirmation: standard input is not a terminal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprint(new(app).confirmTermination(tt.list, tt.yes)); got != tt.want {
				t.Errorf("error %s, want %s", got, tt.want)
			}
		})
	}
}
