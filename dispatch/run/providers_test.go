package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
)

// TestNothingIsCreatedAfterATakeover checks that no create command runs once another dispatcher owns the
// run, or while it is not known who does: a dispatcher may be suspended between the record of an instance
// and its command.
func TestNothingIsCreatedAfterATakeover(t *testing.T) {
	for _, c := range []struct {
		by   int
		err  error
		want string // part of the answer; "": it is created
	}{
		{2, nil, "another dispatcher has taken the run over (epoch 2)"},
		{0, errors.New("stale file handle"), "stale file handle"},
		{0, nil, ""},
	} {
		made := filepath.Join(t.TempDir(), "made")
		m := &instances{prefix: "dcs-r", fenced: func() (int, error) { return c.by, c.err },
			providers: map[string]*hosts.Provider{"cloud": {Name: "cloud", Create: "touch " + made}}}
		ev := m.answer(context.Background(), sched.CreateInstance{Provider: "cloud", Name: "dcs-r-1"})
		is := ev.(sched.InstanceCreated)
		_, err := os.Stat(made)
		if is.Name != "dcs-r-1" || (is.Err == "") != (c.want == "") || !strings.Contains(is.Err, c.want) ||
			(err == nil) != (c.want == "") {
			t.Errorf("epoch %d, %v: answer %+v, created: %v; want %q", c.by, c.err, is, err == nil, c.want)
		}
	}
}

// TestOnlyListedInstancesAreKnown checks that a host of an instance is found while the last list of its provider
// contains the instance, and forgotten afterwards: a run may create thousands of instances.
func TestOnlyListedInstancesAreKnown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	m := &instances{prefix: "dcs-r", listed: map[string][]*hosts.Host{}, providers: map[string]*hosts.Provider{
		"a": {Name: "a", List: "cat " + file}, "b": {Name: "b", List: "true"}}}
	for _, c := range []struct{ list, want string }{
		{"dcs-r-1 10.0.0.1\ndcs-r-2 10.0.0.2\n", "dcs-r-1 dcs-r-2"},
		{"dcs-r-2 10.0.0.2\n", "dcs-r-2"},
		{"", ""},
	} {
		if err := os.WriteFile(file, []byte(c.list), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, provider := range []string{"a", "b"} {
			if ev := m.list(context.Background(), provider).(sched.InstancesListed); ev.Err != "" {
				t.Fatal(ev.Err)
			}
		}
		var known []string
		for _, name := range []string{"dcs-r-1", "dcs-r-2"} {
			if m.host(name) != nil {
				known = append(known, name)
			}
		}
		if got := strings.Join(known, " "); got != c.want || len(m.listed["a"]) != len(known) {
			t.Errorf("after the list %q: known %q, want %q", c.list, got, c.want)
		}
	}
}
