package cmdlink_test

import (
	"testing"

	"go.uber.org/goleak"

	"dcs-tui/hosts"
	"dcs-tui/hosts/cmdlink"
	"dcs-tui/hosts/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A command of the user's keeps every promise of hosts.Link, whether it becomes
// the far end (env) or stays in between (a shell that waits).
func TestConformance(t *testing.T) {
	for name, argv := range map[string][]string{
		"becomes it": {"env", "DCS=1"},
		"by a shell": {"sh", "-c", `exec "$@"`, "--"},
	} {
		t.Run(name, func(t *testing.T) {
			hosttest.Conform(t, func(testing.TB) (hosts.Opener, *hosts.Host) {
				return cmdlink.Opener{}, &hosts.Host{Name: "box", Link: "command", Command: argv}
			})
		})
	}
}

// What a person must mend is said when the link is opened, before anything runs.
func TestMisconfigured(t *testing.T) {
	for name, argv := range map[string][]string{
		"no command":         nil,
		"no such program":    {"no-such-program-anywhere", "exec"},
		"not an executable":  {"/etc/passwd"},
		"a directory":        {"/"},
		"a name with spaces": {"docker exec -i box"},
	} {
		l, err := cmdlink.Opener{}.Open(t.Context(), &hosts.Host{Name: "box", Link: "command", Command: argv})
		if err == nil {
			l.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		if hosts.ClassOf(err) != hosts.Misconfigured {
			t.Errorf("%s: class %v of %v", name, hosts.ClassOf(err), err)
		}
	}
}
