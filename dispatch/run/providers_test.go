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
