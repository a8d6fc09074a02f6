package locallink_test

import (
	"testing"

	"go.uber.org/goleak"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/locallink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The local link keeps every promise of hosts.Link (issue 2, point 4).
func TestConformance(t *testing.T) {
	hosttest.Conform(t, func(testing.TB) (hosts.Opener, *hosts.Host) {
		return locallink.Opener{}, &hosts.Host{Name: "here", Link: "local"}
	})
}

// A program that is not there is for a person to mend.
func TestMissingProgram(t *testing.T) {
	l := locallink.New("here", nil, "/nonexistent/docker", "exec")
	defer l.Close()
	_, err := l.Start(t.Context(), "true")
	if hosts.ClassOf(err) != hosts.Misconfigured {
		t.Errorf("class %v of %v", hosts.ClassOf(err), err)
	}
}
