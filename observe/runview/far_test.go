package runview

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestOutputsOfAHostThatKeepsThem checks that the outputs of a host of a finished run are read from
// the host if it is reachable (X2). Once they have been fetched, they are read from this machine,
// also by a View that looked before.
func TestOutputsOfAHostThatKeepsThem(t *testing.T) {
	x := sampleRun()
	asked := ""
	b := FromTable(runAt(t.TempDir()), x.Table, Options{
		Far: func(_ context.Context, host string, r Read) ([]byte, int64, error) {
			asked += host + " " + r.Attempt.String() + ";"
			if r.File == jobs.FileErr {
				return nil, 0, errors.New("no route")
			}
			return []byte("there"), 5, nil
		}})
	shareNothing(b, nil)
	id := jobs.AttemptID{Job: 2, N: 2}
	read := func(want string) {
		t.Helper()
		if p, err := b.Read(t.Context(), Read{Attempt: id, File: jobs.FileOut}); err != nil || string(p.Data) != want ||
			!p.Over {
			t.Errorf("%+v, %v; want %q", p, err, want)
		}
	}
	path := jobs.AttemptFile(b.run.Dir, id, jobs.FileOut)
	shown := func() string { return lookAt(t, b, Query{Focus: 2}).Detail.Attempts[1].Far }
	read("there")
	if _, err := b.Read(t.Context(), Read{Attempt: id, File: jobs.FileErr}); err == nil ||
		err.Error() != "the output of 2.2 is only on its host: no route" {
		t.Errorf("Read: got error %v, want one that says where the output is and why it cannot be read", err)
	}
	if asked != "ws01 2.2;ws01 2.2;" || !strings.HasPrefix(shown(), "ws01:/far/") {
		t.Errorf("asked %q, shown %q", asked, shown())
	}
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte("fetched"), 0o600))
	read("fetched")
	b.fetched[id] = true
	read("fetched")
	if asked != "ws01 2.2;ws01 2.2;" || shown() != "" {
		t.Errorf("asked %q, shown %q", asked, shown())
	}
}
