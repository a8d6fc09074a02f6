package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// TestEachActionIsComplete checks that each action has a row in
// docs/reference/requests.md, an effect without a dispatcher there, and an event of the core that the simulator
// sends.
func TestEachActionIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/requests.md")
	if err != nil {
		t.Fatal(err)
	}
	effects, rest, _ := strings.Cut(string(page), "## The files")
	simulator := ""
	files, err := filepath.Glob("../../dispatch/sim/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		simulator += string(source)
	}
	// Events of actions that the core does not carry out by name.
	others := map[action.Name][]sched.Event{
		action.Submit: {sched.Submit{}}, action.EndInput: {sched.Submit{}}, action.ReloadHosts: {sched.SetInventory{}},
	}
	for _, a := range action.All {
		q := &action.Request{Do: a.Name, Jobs: jobs.One(1), Host: "a", Edit: new(jobs.Change)}
		for what, text := range map[string]string{"effect": effects, "row": rest} {
			if !strings.Contains(text, fmt.Sprintf("`%s`", a.Name)) {
				t.Errorf("docs/reference/requests.md has no %s of %s", what, a.Name)
			}
		}
		events := append(sched.RequestFor("r", q, 1).Do, others[a.Name]...)
		if len(events) == 0 {
			t.Errorf("the core has no event for %s", a.Name)
		}
		for _, ev := range events {
			if !strings.Contains(simulator, fmt.Sprintf("%T{", ev)) {
				t.Errorf("the simulator never sends %T, which carries out %s", ev, a.Name)
			}
		}
	}
}
